"""``question``: asks people for data or a choice."""

from __future__ import annotations

from workflows.engine.contract import Ask, Entered, Entry
from workflows.steps import people
from workflows.steps.entering import milliseconds


class QuestionKind:
    name = "question"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        return Ask(
            kind=self.name,
            ask=people.rendered_text(entry, options["ask"]),
            show=people.shown(entry),
            form=options["form"],
            choices=options["choices"],
            audience=people.audience(entry, options["to"]),
            timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"),
            remind_ms=options["remind_ms"],
        )
