"""``condition``: chooses a route; its output is its outcome."""

from __future__ import annotations

from workflows.engine.contract import Entered, Entry, Settled
from workflows.expressions import BadExpression, Value
from workflows.steps.entering import kind_of_value


class ConditionKind:
    name = "condition"

    def enter(self, entry: Entry) -> Entered:
        outcome = _outcome(entry)
        return Settled(outcome=outcome, output=outcome)


def _outcome(entry: Entry) -> str:
    options = entry.step.options
    if options.get("if") is not None:
        return "then" if _is_true(entry, options["if"], "if") else "else"
    for number, (when, outcome) in enumerate(options["cases"]):
        if _is_true(entry, when, f"cases[{number}].when"):
            return str(outcome)
    return "else"


def _is_true(entry: Entry, value: Value, key: str) -> bool:
    given = entry.evaluate(value)
    if not isinstance(given, bool):
        raise BadExpression(f'"{key}" must be true or false, but it is {kind_of_value(given)}.')
    return given
