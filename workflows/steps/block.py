"""``block``: steps that are defined once in the file, called with parameters."""

from __future__ import annotations

from workflows.engine.contract import Call, Entered, Entry
from workflows.expressions import BadExpression
from workflows.steps.entering import kind_of_value, milliseconds


class BlockKind:
    name = "block"

    def enter(self, entry: Entry) -> Entered:
        params = entry.evaluate(entry.step.options["with"])
        if not isinstance(params, dict):
            raise BadExpression(f'"with" must be a mapping, but it is {kind_of_value(params)}.')
        return Call(params=params, timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"))
