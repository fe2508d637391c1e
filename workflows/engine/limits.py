"""Limits: an attempt of a step with ``limit`` needs a place of its group, which it holds while it runs (MON.10).

Under a rate its admission is a start, whatever it follows: a first try, a retry, or a crash (MON.11).
"""

from __future__ import annotations

from workflows.definitions.plan import Plan, StepPlan
from workflows.engine.draft import Draft
from workflows.facts import Facts, ScopeRow
from workflows.ledger.batch import SlotWish
from workflows.statuses import ScopePhase, WaitsFor

#: How long to wait when the moment of a rate has come here and not yet in the database, in seconds.
TURN_S = 0.05


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
        scope=scope.path,
        group=step.limit["group"],
        max=step.limit.get("max", 0),
        entered_ms=draft.now_ms,
        starts=step.limit.get("starts"),
        per_ms=step.limit.get("per_ms"),
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


def groups_due(plan: Plan, facts: Facts, now_ms: int) -> set[str]:
    """The groups in which a scope of this run is the first of the line, and its moment has come."""
    due: set[str] = set()
    if facts.state.held:
        return due
    for scope in facts.scopes().values():
        if scope.waits_for != WaitsFor.SLOT or scope.phase != ScopePhase.WAITING:
            continue
        turn_ms, limit = facts.turn_ms(scope.path), plan.steps[scope.step].limit
        if limit is not None and turn_ms is not None and turn_ms <= now_ms:
            due.add(str(limit["group"]))
    return due
