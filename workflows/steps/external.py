"""``external``: work that another program reserves and finishes through the API."""

from __future__ import annotations

from workflows.engine.contract import Entered, Entry, Work
from workflows.jsonvalue import store
from workflows.statuses import Access
from workflows.steps.entering import milliseconds

#: Bytes of canonical text that a program may be given.
INPUT_LIMIT = 1024 * 1024


class ExternalKind:
    name = "external"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        value = None if options["input"] is None else entry.evaluate(options["input"])
        store(value, limit=INPUT_LIMIT)
        return Work(
            queue=options["queue"],
            inputs={"queue": options["queue"], "input": value},
            access=entry.step.access or Access.WRITE,
            lease_ms=options["lease_ms"],
            timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"),
        )
