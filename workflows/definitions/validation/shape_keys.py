"""Sentences about keys: missing ones, unknown ones, and steps without a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.definitions.kinds import KINDS, kinds_with_key
from workflows.definitions.models.fields import FIELD_TYPES
from workflows.definitions.models.values import is_name
from workflows.definitions.suggestions import closest, did_you_mean
from workflows.definitions.validation.faults import Fault, keys_allowed
from workflows.definitions.validation.report import Path, Report, last_name
from workflows.definitions.validation.shape_names import wrong_name
from workflows.definitions.wording import article, joined, quoted, sentence, shown, what_it_is

#: What a required key holds, for the hint.
WHAT_IT_HOLDS = {
    "run": "the script",
    "argv": "the program and its arguments",
    "call": "the registered Python function",
    "url": "the address",
    "prompt": "the instructions",
    "checks": "the commands that must pass",
    "set": "the new values",
    "if": "an expression that is true or false",
    "cases": "a list of {when, outcome}",
    "ask": "the question",
    "for": "how long",
    "until": "a point in time",
    "signal": "the name of the signal",
    "over": "the list",
    "do": "the steps for one item",
    "use": "the name of a block",
    "branches": "the branches, each with its steps",
    "ref": "the name of the workflow",
    "queue": "where programs look for work",
    "graph": "the name of the graph",
    "status": "succeeded or failed",
    "attempts": "the total number of attempts",
    "group": "the name of the shared limit",
    "key": "runs with the same key share the slots",
    "cron": "minute hour day month weekday",
    "name": "what is checked",
    "when": "an expression that is true or false",
    "outcome": "the outcome when it is true",
    "secret": "the name of the secret",
    "at_least": "a positive number or a percentage",
    "steps": "a list of steps",
}
RESERVED_KEYS = {"undo": "compensation"}
_KIND_OF_KEY = {
    "run": "shell",
    "argv": "shell",
    "call": "task",
    "url": "http",
    "session": "agent",
    "agent": "agent",
    "prompt": "llm",
    "model": "llm",
    "checks": "verify",
    "set": "assign",
    "if": "condition",
    "cases": "condition",
    "quorum": "approval",
    "by": "approval",
    "not_by": "approval",
    "choices": "question",
    "to": "question",
    "ask": "approval",
    "for": "wait",
    "until": "wait",
    "signal": "wait",
    "over": "map",
    "do": "map",
    "branches": "parallel",
    "use": "block",
    "ref": "workflow",
    "queue": "external",
    "graph": "langgraph",
    "status": "end",
}
#: Keys by which files of other tools are known, the most telling first.
_OTHER_TOOLS = {
    "GitHub Actions": ("on", "jobs", "runs-on", "permissions"),
    "GitLab CI": ("stages", "before_script", "after_script", ".pre", "workflow"),
    "CircleCI": ("orbs", "executors", "workflows"),
    "Argo Workflows": ("apiVersion", "spec", "metadata"),
    "Docker Compose": ("services", "networks", "volumes"),
    "AWS Step Functions": ("StartAt", "States"),
    "Azure Pipelines": ("trigger", "pool"),
    "Drone": ("pipeline",),
    "Ansible": ("hosts", "tasks", "become"),
    "Serverless Workflow": ("document", "dsl", "states"),
}
_TELLING_TOOLS = {tool: _OTHER_TOOLS[tool] for tool in ("GitHub Actions", "GitLab CI", "AWS Step Functions")}


def other_tool(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key of ``document`` that belongs to another tool, and that tool; None when there is none.

    In a file that says which format it is only the most telling keys count; the others may be slips.
    """
    known = _OTHER_TOOLS if "format" not in document else {tool: keys[:2] for tool, keys in _TELLING_TOOLS.items()}
    found = [(key, tool) for key in document for tool, keys in known.items() if key in keys]
    return found[0] if found else None


def keys_of_tool(tool: str) -> tuple[str, ...]:
    """The keys by which a file of ``tool`` is known."""
    return _OTHER_TOOLS[tool]


def report_other_tool(key: str, tool: str, report: Report) -> None:
    """E106."""
    report.add(
        "E106",
        (key,),
        f'"{key}" looks like {tool}, not like this format.',
        "Rewrite it in this format: docs/format.md shows how jobs, steps and needs map.",
    )


def step_name(fault: Fault) -> str:
    """``shell step "a"`` for the step that a fault is in."""
    step_id = fault.step.get("id") if fault.step else None
    return (
        f'{fault.kind} step "{step_id}"'
        if isinstance(step_id, str)
        else f"{fault.kind} step {_number(fault.step_path)}"
    )


def _number(step_path: Path) -> int:
    return int(step_path[-1]) + 1 if step_path else 0


# ---- missing ---------------------------------------------------------------------------------------------------------


def missing(fault: Fault, report: Report) -> None:
    """A required key is not there, and no other key is a misspelling of it."""
    key = str(fault.path[-1])
    if is_misspelled(key, fault.value, keys_allowed(fault)):
        return
    if not fault.step_path and len(fault.path) == 1:
        _missing_at_the_top(key, report)
    elif fault.is_field_key:
        _missing_type(fault, report)
    elif fault.step_path and key == "id" and len(fault.inner) == 1:
        step_without_id(fault.step_path, report)
    elif fault.step_path and len(fault.inner) == 1:
        needs(fault.step_path, step_name(fault), (key,), report)
    else:
        message = f'"{last_name(fault.container)}" needs "{key}".'
        report.add("E209", fault.container, message, f"Add `{key}:` ({WHAT_IT_HOLDS[key]}).")


def is_misspelled(key: str, holder: Any, allowed: list[str]) -> bool:
    """Whether an unknown key of the mapping ``holder`` is close to ``key``, which is reported there."""
    unknown_keys = [other for other in holder if other not in allowed] if isinstance(holder, Mapping) else []
    return any(closest(other, allowed) == key for other in unknown_keys)


def needs(path: Path, name: str, keys: tuple[str, ...], report: Report) -> None:
    """E209: the step ``name`` needs one of ``keys``."""
    message = f"The {name} needs {quoted(keys, 'or')}."
    adds = joined([f"`{key}:` ({WHAT_IT_HOLDS[key]})" for key in keys], "or")
    report.add("E209", path, message, f"Add {adds}.")


def _missing_at_the_top(key: str, report: Report) -> None:
    if key == "format":
        report.add("E101", (), '"format" is missing.', "Add `format: 1` as the first line.")
    elif key == "name":
        hint = "Add a name in lower-case letters, e.g. `name: nightly_import`."
        report.add("E103", (), '"name" is missing.', hint)
    else:
        report.add("E107", (), "A workflow needs at least one step.", "Add `steps:` with a list of steps.")


def _missing_type(fault: Fault, report: Report) -> None:
    name = fault.container[-1]
    kind = "Field" if fault.step_path else "Parameter"
    report.add(
        "E122",
        fault.container,
        f'{kind} "{name}" has no type.',
        f"Add `type: string`. Types: {', '.join(FIELD_TYPES)}.",
    )


def step_without_id(step_path: Path, report: Report) -> None:
    """E201."""
    hint = "Add `id:`; routes and expressions use it."
    report.add("E201", step_path, f"Step {_number(step_path)} has no id.", hint)


# ---- unknown ---------------------------------------------------------------------------------------------------------


def unknown(fault: Fault, report: Report) -> None:
    """A key that does not exist here."""
    key = str(fault.path[-1])
    if fault.is_field_key and key == "required":
        report.add(
            "E124",
            fault.path,
            'There is no "required" key: a parameter is required unless it has `default` or `optional: true`.',
            "Remove `required`; add `optional: true` if it may be left out.",
        )
    elif len(fault.path) > 1 and fault.path[-2] == "budget":
        _unknown_budget(fault, key, report)
    elif fault.step_path and len(fault.inner) == 1:
        _unknown_in_step(fault, key, report)
    else:
        what = "field key" if fault.is_field_key else "workflow key" if len(fault.path) == 1 else "step key"
        where = f" in the {step_name(fault)}" if fault.step_path else ""
        code = "E207" if fault.step_path else "E105"
        report.add(code, fault.path, f'Unknown key "{key}"{where}.', _key_hint(fault, key, what))


def _key_hint(fault: Fault, key: str, what: str) -> str:
    allowed = keys_allowed(fault)
    return did_you_mean(key, allowed, what) or (f"Possible here: {', '.join(allowed)}." if allowed else "Remove it.")


def _unknown_budget(fault: Fault, key: str, report: Report) -> None:
    budgets = keys_allowed(fault)
    hint = sentence(did_you_mean(key, budgets, "budget"), f"Budgets: {', '.join(budgets)}.")
    report.add("E506", fault.path, f'"{key}" is not a budget.', hint)


def _unknown_in_step(fault: Fault, key: str, report: Report) -> None:
    if key in RESERVED_KEYS:
        message = f'"{key}" is reserved for a later version of the format ({RESERVED_KEYS[key]}).'
        report.add("E110", fault.path, message, "Remove it for now.")
    elif key == "retry":
        report.add(
            "E503",
            fault.path,
            f"{fault.kind.capitalize()} steps cannot be retried.",
            "Loop back with `next` and `max_visits` instead.",
        )
    elif kinds := kinds_with_key(key):
        step_id = fault.step.get("id") if fault.step else None
        name = f'"{step_id}"' if isinstance(step_id, str) else f"step {_number(fault.step_path)}"
        report.add(
            "E208",
            fault.path,
            f'"{key}" belongs to {joined(kinds)} steps, but {name} is {article(fault.kind)} step.',
            f"Remove it or change the kind to {joined(kinds, 'or')}.",
        )
    else:
        message = f'Unknown key "{key}" in the {step_name(fault)}.'
        report.add("E207", fault.path, message, _key_hint(fault, key, "step key"))


# ---- steps without a kind --------------------------------------------------------------------------------------------


def not_a_step(fault: Fault, report: Report) -> None:
    """An entry of a list of steps that is no mapping, or has no kind or an unknown one."""
    step = fault.value
    if not isinstance(step, Mapping):
        message = f"A step must be a mapping, got {shown(step) if isinstance(step, str) else what_it_is(step)}."
        report.add("E221", fault.path, message, "Write `- id: …` and `kind: …` for each step.")
        return
    if step.get("id") is None:
        step_without_id(fault.path, report)
    elif not is_name(step["id"]):
        wrong_name(_id_fault(fault, step["id"]), report)
    if step.get("kind") is None:
        _no_kind(fault.path, step, report)
    else:
        _unknown_kind(fault.path, step["kind"], report)
    for key in step:
        if key in RESERVED_KEYS:
            message = f'"{key}" is reserved for a later version of the format ({RESERVED_KEYS[key]}).'
            report.add("E110", (*fault.path, key), message, "Remove it for now.")


def _id_fault(fault: Fault, step_id: object) -> Fault:
    return Fault(
        type="name",
        path=(*fault.path, "id"),
        value=step_id,
        details={"role": "step"},
        step_path=fault.path,
        step=fault.value,
    )


def _no_kind(path: Path, step: Mapping[str, Any], report: Report) -> None:
    step_id = step.get("id")
    name = f'Step "{step_id}"' if isinstance(step_id, str) else f"Step {_number(path)}"
    likely = next((kind for key, kind in _KIND_OF_KEY.items() if key in step), "shell")
    report.add("E205", path, f"{name} has no kind.", f"Add `kind: {likely}`.")


def _unknown_kind(path: Path, kind: object, report: Report) -> None:
    suggested = closest(kind, KINDS, "kind") if isinstance(kind, str) else None
    hint = sentence(f'Did you mean "{suggested}"?' if suggested else "", f"Kinds: {', '.join(KINDS)}.")
    report.add("E206", (*path, "kind"), f"{shown(kind)} is not a step kind.", hint)
