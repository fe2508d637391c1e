"""``parallel``: fixed branches side by side."""

from __future__ import annotations

from workflows.engine.contract import Entered, Entry, FanOut
from workflows.steps.entering import milliseconds


class ParallelKind:
    name = "parallel"

    def enter(self, entry: Entry) -> Entered:
        names = list(entry.step.bodies)
        return FanOut(values=names, keys=names, timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"))
