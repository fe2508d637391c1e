"""Routes: outcomes and targets that exist, outcomes that need a route, and what follows for the list as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workflows.definitions.kinds import (
    CONTINUE,
    DONE,
    EXHAUSTED,
    FAIL,
    KINDS,
    RESERVED_TARGETS,
    SKIPPED,
    default_route,
)
from workflows.definitions.models.values import is_name
from workflows.definitions.suggestions import closest, did_you_mean
from workflows.definitions.validation.flow import Flow, endless_loops, unreachable
from workflows.definitions.validation.known import Known
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.validation.shape_names import RESERVED_OUTCOMES
from workflows.definitions.validation.tree import (
    BLOCK,
    BRANCH,
    FINALLY,
    ITEM,
    MAIN,
    ON_FAILURE,
    StepList,
    StepNode,
    Tree,
)
from workflows.definitions.wording import quoted, sentence

_NEEDED_KEY = {SKIPPED: "only_if", EXHAUSTED: "max_visits"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Routes:
    """Where a target is looked up, and where its problems go."""

    tree: Tree
    known: Known
    report: Report


def check_routes(tree: Tree, known: Known, report: Report) -> dict[int, Flow]:
    """Report E301 to E311 and W106; the graph of every list, by ``id()`` of the list, for the checks that follow."""
    routes = _Routes(tree=tree, known=known, report=report)
    flows: dict[int, Flow] = {}
    for steps in tree.lists:
        size = len(steps.steps)
        flow = Flow(
            steps=steps, edges=[[] for _ in range(size)], guesses=[set() for _ in range(size)], uncertain=steps.broken
        )
        for step in steps.steps:
            _check_step(routes, flow, step)
        if len({step.id for step in steps.steps}) < size:
            flow.uncertain = True
        _check_list(flow, report)
        flows[id(steps)] = flow
    return flows


def _check_list(flow: Flow, report: Report) -> None:
    steps = flow.steps.steps
    if not flow.uncertain:
        for position in unreachable(flow):
            name = steps[position].id
            report.add(
                "E303",
                steps[position].path,
                f'Step "{name}" can never run: no route leads to it.',
                f'Route an outcome of another step to "{name}" or remove it.',
            )
    for cycle in endless_loops(flow):
        names = [steps[position].id or "" for position in [*cycle, cycle[0]]]
        report.add(
            "E304",
            steps[cycle[-1]].path,
            f"{' → '.join(names)} is a loop without a limit.",
            _loop_hint([steps[position] for position in cycle]),
        )


def _loop_hint(cycle: list[StepNode]) -> str:
    if all(step.raw.get("max_visits") is not None for step in cycle):
        return "Every step of it is left only by `exhausted`; route one of these to a step outside of the loop."
    return "Add `max_visits: N` to one of these steps; its outcome `exhausted` says what happens after N visits."


# ---- one step --------------------------------------------------------------------------------------------------------


def _check_step(routes: _Routes, flow: Flow, step: StepNode) -> None:
    written = step.raw.get("next")
    path = (*step.path, "next")
    if step.kind is None:
        _targets_only(routes, flow, step, written)
        return
    if isinstance(written, str):
        _one_target(routes, flow, step, written)
    elif isinstance(written, Mapping):
        _mapping(routes, flow, step, written)
    elif written is None:
        _complete(routes, flow, step, {}, path)
    else:
        flow.uncertain = True


def _targets_only(routes: _Routes, flow: Flow, step: StepNode, written: object) -> None:
    path: Path = (*step.path, "next")
    if isinstance(written, str):
        _follow(routes, flow, step, "", written, path)
    elif isinstance(written, Mapping):
        for outcome, target in written.items():
            if isinstance(target, str):
                _follow(routes, flow, step, outcome, target, (*path, outcome))
    _follow(routes, flow, step, "", CONTINUE, path)


def _one_target(routes: _Routes, flow: Flow, step: StepNode, target: str) -> None:
    path: Path = (*step.path, "next")
    outcomes = step.outcomes
    if outcomes.main is not None:
        _follow(routes, flow, step, outcomes.main, target, path)
        _complete(routes, flow, step, {outcomes.main: target}, path)
        return
    flow.uncertain = True
    if step.kind == "end":
        message = f"The {step.name} ends here, so it has no outcome to route."
        routes.report.add("E301", path, message, "Remove `next`.")
        return
    routes.report.add(
        "E308",
        path,
        f'"{step.id}" has several outcomes ({", ".join(outcomes.all)}), so one target is not enough.',
        "Write a mapping outcome: target.",
    )
    _follow(routes, flow, step, "", target, path)


def _mapping(routes: _Routes, flow: Flow, step: StepNode, written: Mapping[str, object]) -> None:
    path: Path = (*step.path, "next")
    taken: dict[str, str] = {}
    for outcome, target in written.items():
        if outcome not in step.outcomes.all and not _may_be_declared(routes.known, step, outcome):
            meant = _unknown_outcome(routes, step, outcome)
            if meant is None:
                flow.uncertain = True
            elif isinstance(target, str):
                taken.setdefault(meant, target)
        elif isinstance(target, str):
            taken[outcome] = target
        else:
            flow.uncertain = True
            taken[outcome] = CONTINUE
        if isinstance(target, str):
            _follow(routes, flow, step, outcome, target, (*path, outcome))
    _complete(routes, flow, step, taken, path)
    if not flow.uncertain:
        _warn_of_defaults(routes, step, written)


def _may_be_declared(known: Known, step: StepNode, outcome: str) -> bool:
    """Whether an outcome that the format does not know may come from a task function that is not known here."""
    if step.kind != "task":
        return False
    call = step.raw.get("call")
    if known.functions is not None and call in known.functions:
        return False
    return closest(outcome, step.outcomes.all) is None and outcome not in _NEEDED_KEY


def _unknown_outcome(routes: _Routes, step: StepNode, outcome: str) -> str | None:
    available = step.outcomes.all
    key = _NEEDED_KEY.get(outcome)
    suggestion = None if key else closest(outcome, available, "outcome")
    routes.report.add(
        "E301",
        (*step.path, "next", outcome),
        f'"{outcome}" is not an outcome of the {step.name}.',
        sentence(
            f"A step has it only with `{key}`." if key else "",
            f'Did you mean "{suggestion}"?' if suggestion else "",
            f"Outcomes: {', '.join(available)}." if available else "It has no outcomes; remove `next`.",
        ),
    )
    return suggestion


def _complete(routes: _Routes, flow: Flow, step: StepNode, taken: Mapping[str, str], path: Path) -> None:
    """Follow the default routes of the outcomes that `next` does not list; report those that have none."""
    reserved = set(RESERVED_OUTCOMES.get(KINDS[step.kind or ""].named_in or "", ())) - {"else"}
    for outcome in step.outcomes.all:
        if outcome in taken:
            continue
        target = default_route(outcome, taken, step.outcomes)
        if target is not None:
            _follow(routes, flow, step, outcome, target, path, quietly=True)
            continue
        flow.uncertain = True
        if outcome in reserved or not is_name(outcome):
            continue  # a name that cannot be used is refused where it is written
        if step.kind == "condition" and outcome == "else":
            routes.report.add(
                "E311",
                step.path,
                f'The condition "{step.id}" does not say what happens when no case matches.',
                "Add `else:` to its `next`, e.g. `else: continue`.",
            )
        else:
            routes.report.add(
                "E305",
                step.path,
                f'"{step.id}" does not route its outcome "{outcome}".',
                f"Add `{outcome}: <step>` to its `next` (or `{outcome}: continue`, `done`, `fail`).",
            )


def _warn_of_defaults(routes: _Routes, step: StepNode, written: Mapping[str, object]) -> None:
    """W106; a condition that spells out both of its ways is left alone."""
    if step.kind == "condition":
        return
    taken = {outcome: target for outcome, target in written.items() if isinstance(target, str)}
    useless = []
    for outcome, target in taken.items():
        others = {key: value for key, value in taken.items() if key != outcome}
        if outcome in step.outcomes.all and default_route(outcome, others, step.outcomes) == target:
            useless.append(outcome)
    if useless:
        routes.report.add(
            "W106",
            (*step.path, "next"),
            f'Step "{step.id}" routes {quoted(useless)} to the same place as the default; the entry can be left out.',
        )


# ---- targets ---------------------------------------------------------------------------------------------------------


def _follow(
    routes: _Routes, flow: Flow, step: StepNode, outcome: str, target: str, path: Path, *, quietly: bool = False
) -> None:
    """Add the route to the graph, or report that its target does not exist in the list."""
    if target == CONTINUE:
        if step.position + 1 < len(step.body.steps):
            flow.edges[step.position].append((outcome, step.position + 1))
        return
    if target in (DONE, FAIL) or "${" in target:
        return
    aim = step.body.by_id(target)
    if aim is not None:
        flow.edges[step.position].append((outcome, aim.position))
    elif not quietly:
        _no_such_target(routes, flow, step, target, path)


def _no_such_target(routes: _Routes, flow: Flow, step: StepNode, target: str, path: Path) -> None:
    elsewhere = routes.tree.by_id.get(target)
    if elsewhere is None:
        _unknown_target(routes, flow, step, target, path)
        return
    flow.uncertain = True
    home, here = elsewhere.body, step.body
    if here.kind in (ON_FAILURE, FINALLY) and home.kind == MAIN:
        routes.report.add(
            "E309",
            path,
            f'"{target}" is one of the main steps; `{here.name}` steps cannot go back to them.',
            "Handle the failure with a route in the main steps instead.",
        )
    elif here.kind in (ITEM, BRANCH, BLOCK) and not _is_below(home, here):
        routes.report.add(
            "E306",
            path,
            f'"{target}" is outside the body of "{here.owner_name}"; a body cannot be left by a route.',
            _BODY_HINTS[here.kind],
        )
    else:
        routes.report.add("E302", path, f'There is no step "{target}" in this list.', _elsewhere_hint(target, home))


_BODY_HINTS = {
    ITEM: "Use done (this item is finished) or fail (this item failed) and route the outcome of the map.",
    BRANCH: (
        "Use done (this branch is finished) or fail (this branch failed) and route the outcome of the parallel step."
    ),
    BLOCK: "Use done (the block is finished) or fail (the block failed) and route the outcome of the block step.",
}


def _is_below(inner: StepList, outer: StepList) -> bool:
    steps: StepList | None = inner
    while steps is not None:
        if steps is outer:
            return True
        steps = steps.outer
    return False


def _elsewhere_hint(target: str, home: StepList) -> str:
    place = f'inside "{home.owner_name}"' if home.kind in (ITEM, BRANCH, BLOCK) else f"one of the `{home.name}` steps"
    return f'"{target}" is {place}; a route leads to a step of the same list, or to done, fail or continue.'


def _unknown_target(routes: _Routes, flow: Flow, step: StepNode, target: str, path: Path) -> None:
    here = [other.id for other in step.body.steps if other.id is not None]
    suggestion = closest(target, [*here, *RESERVED_TARGETS])
    aim = step.body.by_id(suggestion) if suggestion else None
    if aim is not None:
        flow.guesses[step.position].add(aim.position)
    elif suggestion is None:
        flow.uncertain = True
    hint = did_you_mean(target, [suggestion]) if suggestion else f"Steps of this list: {', '.join(here)}."
    routes.report.add("E302", path, f'There is no step "{target}".', hint)
