"""Sentences about values that a key cannot have."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.definitions.durations import EXAMPLES
from workflows.definitions.models.fields import FIELD_TYPES
from workflows.definitions.models.steps import MAX_STEPS
from workflows.definitions.models.values import RETRYABLE_ERRORS
from workflows.definitions.suggestions import did_you_mean
from workflows.definitions.validation.faults import Fault
from workflows.definitions.validation.report import Path, Report, last_name
from workflows.definitions.validation.shape_names import not_a_secret_name
from workflows.definitions.wording import cut, flow, sentence, shown, what_it_is

_FORMS = {
    "env": "`env: { NAME: value }`",
    "auth": "`auth: { secret: NAME }`",
    "headers": "`headers: { Name: value }`",
    "next": "a step, or a mapping outcome: target",
    "params": "`params: { name: { type: string } }`",
    "form": "`form: { name: { type: string } }`",
    "by": "`by: { groups: [leads], users: [alice] }`",
    "to": "`to: { groups: [leads], users: [alice] }`",
    "limit": "`limit: { group: builders, max: 2 }`",
    "concurrency": "`concurrency: { key: …, max: 1 }`",
    "budget": "`budget: { cost_usd: 10.0 }`",
    "schedule": '`schedule: [{ cron: "0 2 * * *" }]`',
    "exits": "`exits: { unchanged: [10] }`",
    "statuses": "`statuses: { not_found: [404] }`",
    "choices": "`choices: { go: Go ahead, stop: Stop here }`",
    "argv": "`argv: [program, argument]`",
    "secrets": "`secrets: [name]`",
    "cases": "`cases: [{ when: …, outcome: … }]`",
    "checks": "`checks: [{ name: tests, run: pytest -q }]`",
    "branches": "`branches: { left: [ … ], right: [ … ] }`",
    "vars": "`vars: { name: value }`",
    "blocks": "`blocks: { name: { steps: [ … ] } }`",
    "schema": "`schema: { type: object }`",
    "returns": "`returns: { type: object }`",
    "errors": "`errors: [timeout, network]`",
}


def must_be(fault: Fault, wanted: str, report: Report, hint: str = "") -> None:
    """E221: a value of another form."""
    got = shown(fault.value) if not isinstance(fault.value, list | dict) else what_it_is(fault.value)
    report.add("E221", fault.path, f'"{last_name(fault.path)}" must be {wanted}, got {got}.', hint or _form_hint(fault))


def _form_hint(fault: Fault) -> str:
    if fault.value is None:
        return f"Write a value after `{fault.key}:` or remove the key."
    form = _FORMS.get(fault.key) if fault.path[-1] == fault.key else None
    return f"Write {form}." if form else ""


def not_text(fault: Fault, report: Report) -> None:
    """A value where text is needed."""
    if fault.value is None or isinstance(fault.value, list | dict):
        lines = "Use `argv:` for a list of arguments, or `run: |` for several lines." if fault.key == "run" else ""
        must_be(fault, "text", report, lines if isinstance(fault.value, list) else "")
        return
    must_be(fault, "text", report, f'Put it in quotes: "{shown(fault.value)}".')


def not_fixed(fault: Fault, report: Report) -> None:
    """E412."""
    key = "next" if "next" in fault.inner else fault.key
    message = f'"{key}" must be fixed text; expressions are not evaluated here.'
    report.add("E412", fault.path, message, "Write the value itself.")


def not_a_duration(fault: Fault, report: Report) -> None:
    """E211 for a number without a unit, E212 for everything else."""
    if not fault.details["without_unit"]:
        report.add("E212", fault.path, f"{shown(fault.value)} is not a duration.", f"Examples: {EXAMPLES}.")
        return
    number = str(fault.value)
    report.add(
        "E211",
        fault.path,
        f'"{fault.key}" must be a duration with a unit, got {shown(fault.value)}.',
        _units(number),
    )


def _units(number: str) -> str:
    if number.isdigit():
        return f'Write "{number}s" for seconds or "{number}m" for minutes.'
    seconds = float(number)
    proposals = [f'"{round(seconds * 1000)}ms" for seconds'] if seconds < 1000 else []
    proposals.append(f'"{round(seconds * 60)}s" for minutes')
    return f"Write {' or '.join(proposals)}."


def out_of_range(fault: Fault, report: Report) -> None:
    """E213."""
    got = shown(fault.value) if not isinstance(fault.value, list | dict) else what_it_is(fault.value)
    report.add(
        "E213",
        fault.path,
        f'"{last_name(fault.path)}" must be {fault.details["noun"]}, got {got}.',
        "Expressions are not allowed here: the limit must be readable in the file.",
    )


def not_allowed(fault: Fault, report: Report) -> None:
    """E221: not one of a closed list of words."""
    values = list(fault.details["values"])
    written = fault.value if isinstance(fault.value, str) else ""
    suggestion = did_you_mean(written, values, "value") if written else ""
    hint = sentence(suggestion, f"Values: {', '.join(values)}.")
    got = shown(fault.value) if not isinstance(fault.value, list | dict) else what_it_is(fault.value).capitalize()
    report.add("E221", fault.path, f'{got} is not a value of "{fault.key}".', hint)


def not_a_rate(fault: Fault, report: Report) -> None:
    """E221."""
    report.add("E221", fault.path, f"{shown(fault.value)} is not a rate.", "Example: 60/1m (60 starts a minute).")


def not_a_condition(fault: Fault, report: Report) -> None:
    """E413 for a value that cannot be a condition in any file."""
    got = shown(fault.value) if not isinstance(fault.value, list | dict) else what_it_is(fault.value)
    message = f'"{fault.key}" must be true or false, but it is {got}.'
    report.add("E413", fault.path, message, "Write an expression, e.g. `${ params.count > 10 }`.")


def not_a_target(fault: Fault, report: Report) -> None:
    """E221."""
    must_be(fault, "the name of a step, done, fail or continue", report, "Write one target per outcome.")


def wrong_format(fault: Fault, report: Report) -> None:
    """E101, E102."""
    if fault.value is None:
        report.add("E101", fault.path, '"format" is missing.', "Add `format: 1` as the first line.")
        return
    message = f"This server reads format 1, but the file says {shown(fault.value)}."
    report.add("E102", fault.path, message, "Write `format: 1` or update the server.")


def wrong_share(fault: Fault, report: Report) -> None:
    """E507."""
    report.add(
        "E507",
        fault.path,
        f'"at_least" must be a positive number or a percentage, got {shown(fault.value)}.',
        'Examples: `at_least: 3`, `at_least: "80%"`.',
    )


def retries_nothing(fault: Fault, report: Report) -> None:
    """E501."""
    refuse_retry(fault.path, "retry", int(fault.details["attempts"]), report)


def refuse_retry(path: Path, key: str, attempts: int, report: Report) -> None:
    """E501 for ``key: attempts``."""
    many = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    report.add(
        "E501",
        path,
        f'"{key}: {attempts}" means {many} in total, so nothing is retried.',
        "Write the total number of attempts, at least 2.",
    )


def not_retryable(fault: Fault, report: Report) -> None:
    """E502."""
    written = fault.value if isinstance(fault.value, str) else ""
    suggestion = did_you_mean(written, RETRYABLE_ERRORS, "retry error") if written else ""
    report.add(
        "E502",
        fault.path,
        f"{shown(fault.value)} is not an error that can be retried.",
        sentence(suggestion, f"Errors: {', '.join(RETRYABLE_ERRORS)}."),
    )


def wrong_field_type(fault: Fault, report: Report) -> None:
    """E122."""
    written = fault.value if isinstance(fault.value, str) else ""
    suggestion = did_you_mean(written, FIELD_TYPES, "field type") if written else ""
    report.add(
        "E122",
        fault.path,
        f"{shown(fault.value)} is not a parameter type.",
        sentence(suggestion, f"Types: {', '.join(FIELD_TYPES)}."),
    )


# ---- lists and mappings ----------------------------------------------------------------------------------------------


def too_short(fault: Fault, report: Report) -> None:
    """A list or mapping with too few entries; E107 and E218 for lists of steps."""
    key = fault.key
    if fault.path == ("steps",):
        report.add("E107", fault.path, "A workflow needs at least one step.", "Add `steps:` with a list of steps.")
    elif _is_body(fault):
        empty_body(fault, report)
    elif key == "choices":
        must_be(fault, "at least two choices", report, "Write `choices: { go: Go ahead, stop: Stop here }`.")
    else:
        report.add(
            "E221", fault.path, f'"{last_name(fault.path)}" is empty.', _form_hint(fault) or "Add at least one entry."
        )


def _is_body(fault: Fault) -> bool:
    if not fault.step_path:
        return fault.path[-1] in ("steps", "on_failure", "finally")
    return fault.inner[0] in ("do", "branches")


def empty_body(fault: Fault, report: Report) -> None:
    """E218."""
    owner = fault.path[0]
    if fault.step_path:
        owner = (fault.step or {}).get("id", "")
    elif fault.path[0] == "blocks":
        owner = fault.path[1]
    what = "branch" if fault.path[-1] == "branches" else "step"
    hint = f"Add at least one {what} under `{fault.path[-1]}:`."
    report.add("E218", fault.path, f'The body of "{owner}" is empty.', hint)


def too_long(fault: Fault, report: Report) -> None:
    """More steps than a file may hold; counted for the whole file elsewhere."""
    report.add(
        "E213",
        fault.path,
        f"A file may hold {MAX_STEPS} steps, but this list has {len(fault.value)}.",
        "Move a part into a workflow of its own and call it with `kind: workflow`.",
    )


def not_a_list(fault: Fault, report: Report) -> None:
    """Something else where a list is needed."""
    if fault.value is None and fault.path == ("steps",):
        report.add("E107", fault.path, "A workflow needs at least one step.", "Add `steps:` with a list of steps.")
    elif fault.value is None and _is_body(fault):
        empty_body(fault, report)
    elif fault.path == ("secrets",) and isinstance(fault.value, Mapping) and fault.value:
        for name in fault.value:
            not_a_secret_name(name, (*fault.path, name), report)
    else:
        is_one = isinstance(fault.value, str | int | float) and fault.path[-1] == fault.key
        hint = f"Write `{fault.key}: [{cut(flow(fault.value))}]`." if is_one else ""
        must_be(fault, "a list", report, hint)


def not_a_mapping(fault: Fault, report: Report) -> None:
    """Something else where a mapping is needed."""
    hint = ""
    if _is_declaration(fault.path) and isinstance(fault.value, str):
        kind = fault.value if fault.value in FIELD_TYPES else "string"
        hint = f"Write `{fault.key}: {{ type: {kind} }}`."
    must_be(fault, "a mapping", report, hint)


def _is_declaration(path: Path) -> bool:
    return len(path) > 1 and path[-2] in ("params", "form") and not isinstance(path[-1], int)
