"""What runs wait for, in words."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.statuses import WaitsFor

CAUSES: Mapping[str, str] = {
    WaitsFor.PEOPLE: "people",
    WaitsFor.RECONCILE: "somebody to reconcile a step",
    WaitsFor.CODE: "missing code",
    WaitsFor.TIMER: "a moment",
    WaitsFor.RETRY: "the next try",
    WaitsFor.SIGNAL: "a signal",
    WaitsFor.CHILD: "a child run",
    WaitsFor.SLOT: "a free place",
    WaitsFor.EXTERNAL: "work elsewhere",
}
