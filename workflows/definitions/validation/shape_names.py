"""Sentences about names that are not written as names."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.definitions.validation.faults import Fault
from workflows.definitions.validation.report import Path, Report
from workflows.definitions.wording import as_name, joined, name_hint, sentence, shown

#: Outcomes that the format gives a meaning of its own, so that nothing else can be named like them.
RESERVED_OUTCOMES: dict[str, tuple[str, ...]] = {
    "choices": ("answered", "expired", "failed", "skipped", "exhausted"),
    "cases": ("else", "failed", "skipped", "exhausted"),
    "exits": ("ok", "failed", "timed_out", "skipped", "exhausted"),
    "statuses": ("ok", "failed", "timed_out", "skipped", "exhausted"),
    "outcomes": ("ok", "failed", "timed_out", "skipped", "exhausted"),
}
_BECOME_OUTCOMES = {
    "choices": ("choice", "choices"),
    "cases": ("case", "cases"),
    "exits": ("name in `exits`", "names in `exits`"),
    "statuses": ("name in `statuses`", "names in `statuses`"),
    "outcomes": ("name in `outcomes`", "names in `outcomes`"),
}


def wrong_name(fault: Fault, report: Report) -> None:
    """A name with other characters than names have, or a value that is no text at all."""
    role = str(fault.details["role"])
    if role == "workflow":
        _workflow(fault, report)
    elif role == "step":
        _step_id(fault, report)
    elif role == "secret":
        _secret(fault, report)
    elif role in ("choice", "outcome"):
        not_an_outcome(fault.value, fault, report)
    else:
        report.add(
            "E121",
            fault.path,
            f"{shown(fault.value)} is not a valid {role} name.",
            name_hint(fault.value),
        )


def _workflow(fault: Fault, report: Report) -> None:
    if fault.value is None:
        report.add(
            "E103", fault.path, '"name" is missing.', "Add a name in lower-case letters, e.g. `name: nightly_import`."
        )
        return
    message = f"{shown(fault.value)} is not a valid workflow name."
    report.add("E104", fault.path, message, name_hint(fault.value, must_start=True))


def _step_id(fault: Fault, report: Report) -> None:
    if fault.value is None:
        position = fault.step_path[-1]
        report.add(
            "E201",
            fault.step_path,
            f"Step {int(position) + 1} has no id.",
            "Add `id:`; routes and expressions use it.",
        )
        return
    minus = '("-" would mean minus in an expression.)' if isinstance(fault.value, str) and "-" in fault.value else ""
    report.add(
        "E202",
        fault.path,
        f"{shown(fault.value)} is not a valid step id.",
        sentence(name_hint(fault.value), minus),
    )


def _secret(fault: Fault, report: Report) -> None:
    if fault.key != "secrets":
        if not isinstance(fault.value, str):
            message = f"A secret is used by its name, not by {shown(fault.value)}."
            report.add("E221", fault.path, message, "Write `{ secret: NAME }`.")
        return
    name = fault.value
    if isinstance(name, Mapping) and name:
        name = next(iter(name))
    elif isinstance(name, str):
        name = name.partition("=")[0].partition(":")[0].strip()
    not_a_secret_name(name, fault.path, report)


def not_a_secret_name(name: object, path: Path, report: Report) -> None:
    """E126; a value that stands beside the name is never shown."""
    proposal = as_name(name) if isinstance(name, str) else ""
    report.add("E126", path, f"{shown(name)} is not a secret name.", _secret_hint(proposal or "NAME"))


def _secret_hint(name: str) -> str:
    variable = f"WAYPOST_SECRET_{name.upper()}"
    return f"List names only; the value comes from the server's environment ({variable})."


def not_an_outcome(name: object, fault: Fault, report: Report) -> None:
    """E220: a name that would become an outcome and cannot."""
    owner = next((part for part in fault.path if part in _BECOME_OUTCOMES), "choices")
    refuse_outcome(str(owner), name, fault.path, report)


def refuse_outcome(owner: str, name: object, path: Path, report: Report) -> None:
    """E220 for ``name`` in the key ``owner`` of a step."""
    one, many = _BECOME_OUTCOMES[owner]
    rule = f"Use lower-case names other than {joined(RESERVED_OUTCOMES[owner])}"
    advice = '; put the button text in `choices: {name: "Text"}`.' if owner == "choices" else "."
    report.add("E220", path, f"{shown(name)} cannot be a {one}: {many} become outcomes.", rule + advice)
