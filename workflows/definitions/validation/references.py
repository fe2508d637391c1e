"""What a file refers to by name: workflows, blocks, task functions, models, agents, graphs, receipts, variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workflows.definitions.suggestions import did_you_mean
from workflows.definitions.validation.known import Known, is_required
from workflows.definitions.validation.names import report_variable
from workflows.definitions.validation.places import Place
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.scopes import shared_variable_owner
from workflows.definitions.validation.tree import BLOCK, BRANCH, StepList, StepNode, Tree
from workflows.definitions.wording import sentence

_NO_RECURSION = "Use a loop with `max_visits` instead."


def check_references(document: Mapping[str, Any], tree: Tree, known: Known, report: Report) -> None:
    """Report E405, E508 to E511 and W107."""
    for step in tree.steps:
        if step.kind == "workflow":
            _check_workflow(document, step, known, report)
        elif step.kind in ("block", "map") and "use" in step.raw:
            _check_block(document, step, tree, report)
        elif step.kind == "end":
            _check_receipts(step, tree, report)
        _check_registered(step, known, report)
    defaults = document.get("defaults")
    for key, names in (("model", known.models), ("agent", known.agents)):
        if isinstance(defaults, Mapping):
            _warn_unless_known(defaults.get(key), names, key, ("defaults", key), report)


# ---- other workflows -------------------------------------------------------------------------------------------------


def _check_workflow(document: Mapping[str, Any], step: StepNode, known: Known, report: Report) -> None:
    ref, own = step.raw.get("ref"), document.get("name")
    if not isinstance(ref, str) or "${" in ref or known.workflows is None:
        if isinstance(ref, str) and ref == own:
            _report_recursion("workflow", [ref, ref], (*step.path, "ref"), report)
        return
    way = [own, *_way_back(ref, str(own), known)] if isinstance(own, str) else []
    if len(way) > 1:
        _report_recursion("workflow", [str(name) for name in way], (*step.path, "ref"), report)
        return
    called = known.workflow(ref)
    if called is None:
        others = [name for name in known.workflows if name != own]
        listed = f"Workflows: {', '.join(sorted(others))}." if others else "There are no other workflows here."
        hint = did_you_mean(ref, others) or listed
        report.add("E508", (*step.path, "ref"), f'There is no workflow "{ref}".', hint)
        return
    _check_arguments(step, "Workflow", ref, called.params, report)


def _way_back(ref: str, own: str, known: Known) -> list[str]:
    """The shortest chain of calls from ``ref`` to the workflow ``own``, both included; empty when there is none."""
    ways = [[ref]]
    seen = {ref}
    while ways:
        way = ways.pop(0)
        if way[-1] == own:
            return way
        called = known.workflow(way[-1])
        for name in called.calls if called is not None else ():
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


def _report_recursion(what: str, way: list[str], path: Path, report: Report) -> None:
    report.add("E510", path, f"This {what} would call itself: {' → '.join(way)}.", _NO_RECURSION)


def _check_arguments(step: StepNode, what: str, name: str, params: Mapping[str, bool | None], report: Report) -> None:
    given = step.raw.get("with", {})
    if not isinstance(given, Mapping):
        return
    for argument in given:
        if argument not in params:
            listed = f"Parameters: {', '.join(params)}." if params else "It has no parameters."
            report.add(
                "E511",
                (*step.path, "with", argument),
                f'{what} "{name}" has no parameter "{argument}".',
                did_you_mean(argument, params) or listed,
            )
    meant = {did_you_mean(argument, params) for argument in given if argument not in params}
    for param, required in params.items():
        if required and param not in given and f'Did you mean "{param}"?' not in meant:
            report.add(
                "E511",
                (*step.path, "with") if "with" in step.raw else step.path,
                f'{what} "{name}" needs the parameter "{param}".',
                f"Add `{param}: …` to `with:`.",
            )


# ---- blocks ----------------------------------------------------------------------------------------------------------


def _check_block(document: Mapping[str, Any], step: StepNode, tree: Tree, report: Report) -> None:
    use, blocks = step.raw["use"], document.get("blocks", {})
    if not isinstance(use, str) or "${" in use or not isinstance(blocks, Mapping):
        return
    path = (*step.path, "use")
    if use not in blocks:
        listed = f"Blocks: {', '.join(blocks)}." if blocks else "Declare it under `blocks:`."
        report.add("E509", path, f'There is no block "{use}".', did_you_mean(use, blocks) or listed)
        return
    home = _block_of(step.body)
    if home is not None and (way := _block_way(use, home, tree)):
        _report_recursion("block", [home, *way], path, report)
    declared = blocks[use].get("params", {}) if isinstance(blocks[use], Mapping) else {}
    if isinstance(declared, Mapping):
        params = {name: isinstance(field, Mapping) and is_required(field) for name, field in declared.items()}
        _check_arguments(step, "Block", use, params, report)


def _block_of(steps: StepList) -> str | None:
    while steps.owner is not None:
        steps = steps.owner.body
    return steps.name if steps.kind == BLOCK else None


def _block_way(start: str, goal: str, tree: Tree) -> list[str]:
    """The chain of uses from block ``start`` to block ``goal``; empty when there is none."""
    uses: dict[str, list[str]] = {}
    for step in tree.steps:
        home, use = _block_of(step.body), step.raw.get("use")
        if home is not None and isinstance(use, str):
            uses.setdefault(home, []).append(use)
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == goal:
            return way
        for name in uses.get(way[-1], []):
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


# ---- receipts, functions, models -------------------------------------------------------------------------------------


def _check_receipts(step: StepNode, tree: Tree, report: Report) -> None:
    requires = step.raw.get("requires")
    verifying = [each.id for each in tree.steps if each.kind == "verify" and each.id is not None]
    for index, name in enumerate(requires if isinstance(requires, list) else []):
        path = (*step.path, "requires", index)
        listed = f"Verify steps: {', '.join(verifying)}." if verifying else "Add a verify step."
        if not isinstance(name, str) or name not in tree.by_id:
            hint = (did_you_mean(name, verifying) if isinstance(name, str) else "") or listed
            report.add("E405", path, f'There is no step "{name}".', hint)
        elif tree.by_id[name].kind != "verify":
            message = f'"{name}" is not a verify step, so it leaves no receipt.'
            report.add("E221", path, message, listed)


def _check_registered(step: StepNode, known: Known, report: Report) -> None:
    functions = known.functions
    if step.kind == "task":
        _warn_unless_known(step.raw.get("call"), functions, "task function", (*step.path, "call"), report)
    elif step.kind == "llm":
        _warn_unless_known(step.raw.get("model"), known.models, "model", (*step.path, "model"), report)
    elif step.kind == "agent":
        _warn_unless_known(step.raw.get("agent"), known.agents, "agent", (*step.path, "agent"), report)
    elif step.kind == "langgraph":
        _warn_unless_known(step.raw.get("graph"), known.graphs, "graph", (*step.path, "graph"), report)


def _warn_unless_known(
    name: Any, known: Collection[str] | Mapping[str, Any] | None, what: str, path: Path, report: Report
) -> None:
    if known is None or not isinstance(name, str) or "${" in name or name in known:
        return
    message = f'The {what} "{name}" is not registered on this server.'
    report.add("W107", path, message, did_you_mean(name, known))


# ---- assignments -----------------------------------------------------------------------------------------------------


def check_assignments(places: Iterable[Place], report: Report) -> None:
    """Report E414 and E415 for what `assign` steps set."""
    for place in places:
        if place.key != "set" or place.step is None or not isinstance(place.value, Mapping):
            continue
        for name in place.value:
            variable = place.scope.variables.get(name)
            path = (*place.path, name)
            if variable is None:
                report_variable(name, list(place.scope.variables), path, report)
                continue
            body = shared_variable_owner(place.step.body, variable)
            if body is not None:
                _refuse_shared(name, variable.home, body, path, report)


def _refuse_shared(name: str, home: StepList | None, body: StepList, path: Path, report: Report) -> None:
    if home is None:
        owner = "the workflow"
    elif home.kind == BLOCK:
        owner = f'the block "{home.name}"'
    else:
        owner = f'the items of "{home.owner_name}"'
    if body.kind == BRANCH:
        who, advice = (
            "a branch cannot change it (branches run side by side)",
            ("Return the value as the output of the branch's last step and set the variable after the parallel step."),
        )
    else:
        who, advice = (
            "a map item cannot change it (items run side by side)",
            sentence(
                "Return the value with `collect:` and combine the results after the map,",
                "or declare the variable in the map's own `vars:`.",
            ),
        )
    report.add("E415", path, f'"{name}" belongs to {owner}; {who}.', advice)
