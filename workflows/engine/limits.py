"""Limits: an attempt of a step with ``limit`` needs a place of its group, which it holds while it runs (MON.10)."""

from __future__ import annotations

from workflows.definitions.plan import StepPlan
from workflows.engine.draft import Draft
from workflows.facts import ScopeRow
from workflows.ledger.batch import SlotWish
from workflows.statuses import ScopePhase, WaitsFor


def has_place(draft: Draft, scope: ScopeRow, step: StepPlan) -> bool:
    """Whether the attempt may be admitted as far as its limit goes."""
    if step.limit is None:
        return True
    return scope.path not in draft.slots_freed and draft.facts.place(scope.path) == "given"


def stand_in_line(draft: Draft, scope: ScopeRow, step: StepPlan) -> None:
    """Park the scope until it gets a place; its visit, if it has one, stays open."""
    assert step.limit is not None
    draft.begin_revision()
    draft.event("slot_awaited", visit=scope.visit, step=step.id, group=step.limit["group"])
    draft.slots_wanted[scope.path] = SlotWish(
        scope=scope.path, group=step.limit["group"], max=step.limit["max"], entered_ms=draft.now_ms
    )
    draft.change_scope(scope, phase=ScopePhase.WAITING.value, waits_for=WaitsFor.SLOT.value, wake_at_ms=None)


def give_back(draft: Draft, scope: ScopeRow, step: StepPlan) -> None:
    """Free the place of a scope, or its place in line, with this decision; nothing happens when it has none."""
    if step.limit is None:
        return
    draft.slots_wanted.pop(scope.path, None)
    if draft.facts.place(scope.path):
        draft.slots_freed[scope.path] = step.limit["group"]


def got_place(draft: Draft, scope: ScopeRow) -> bool:
    """A scope that waits goes on once it has a place; whether it has."""
    if draft.facts.place(scope.path) != "given":
        return False
    draft.begin_revision()
    draft.event("slot_taken", visit=scope.visit, step=scope.step)
    draft.change_scope(scope, phase=ScopePhase.READY.value, waits_for="")
    return True
