"""``assign``: sets variables (docs/format.md, Variables)."""

from __future__ import annotations

from workflows.engine.contract import Entered, Entry, Settled


class AssignKind:
    name = "assign"

    def enter(self, entry: Entry) -> Entered:
        """All values are computed from the variables as they were before any of them changes."""
        values = {name: entry.evaluate(value) for name, value in entry.step.options["set"].items()}
        return Settled(outcome="ok", output=values, variables=values)
