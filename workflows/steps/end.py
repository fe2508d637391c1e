"""``end``: ends the run, or the body it stands in, with a status."""

from __future__ import annotations

from workflows.engine.contract import EndBody, Entered, Entry
from workflows.jsonvalue import text_of


class EndKind:
    name = "end"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        reason = None if options.get("reason") is None else entry.evaluate(options["reason"])
        output = options.get("output")
        return EndBody(
            succeeded=options["status"] == "succeeded",
            reason=None if reason is None else text_of(reason),
            output=None if output is None else entry.evaluate(output),
            replaces=output is not None,
        )
