"""``approval``: asks people for a decision; a quorum approves, one rejection rejects."""

from __future__ import annotations

from workflows.engine.contract import Ask, Entered, Entry
from workflows.steps import people
from workflows.steps.entering import milliseconds


class ApprovalKind:
    name = "approval"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        return Ask(
            kind=self.name,
            ask=people.rendered_text(entry, options["ask"]),
            show=people.shown(entry),
            form=options["form"],
            audience=people.audience(entry, options["by"]),
            not_by=people.names(entry.evaluate(options["not_by"]), "not_by"),
            quorum=options["quorum"],
            timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"),
            remind_ms=options["remind_ms"],
        )
