"""Stopping: what a cancel, a timeout or a decided join does to the scopes it reaches."""

from __future__ import annotations

from collections.abc import Iterable

from workflows.engine import children, closing, limits, settling
from workflows.engine.draft import Draft
from workflows.facts import ScopeRow, VisitRow
from workflows.statuses import ScopePhase, Section, Stopping, WaitsFor


def stop(draft: Draft, scopes: Iterable[ScopeRow]) -> None:
    """Stop scopes in the present revision: effects are told to end, containers wait for theirs, the rest ends now."""
    for scope in scopes:
        current = draft.scopes.get(scope.path)
        if current is not None and not (current.parent_visit is None and current.section != Section.MAIN):
            stop_scope(draft, current)


def stop_scope(draft: Draft, scope: ScopeRow) -> None:
    if scope.phase == ScopePhase.EFFECT and scope.visit is not None:
        stop_effect(draft, scope, draft.visit(scope.visit))
    elif scope.waits_for == WaitsFor.JOIN and scope.visit is not None:
        draft.change_scope(scope, stopping=Stopping.CANCELLED.value, wake_at_ms=None)
        draft.pending_joins.append(scope.visit)
    elif scope.visit is None:
        if scope.step:
            limits.give_back(draft, scope, draft.plan.steps[scope.step])
        closing.end_cancelled(draft, scope)
    else:
        visit = draft.visit(scope.visit)
        if scope.waits_for == WaitsFor.CHILD:
            children.stop_child(draft, scope)
        if scope.waits_for == WaitsFor.RECONCILE:
            draft.event("step_unreconciled", visit=visit.number)
        settling.cancel_visit(draft, scope, visit)


def stop_effect(draft: Draft, scope: ScopeRow, visit: VisitRow) -> None:
    """Tell an effect to end; its scope ends with it. One that this very decision admitted never starts."""
    admitted = next((one for one in draft.admissions if one.visit.number == visit.number), None)
    if admitted is None:
        draft.cancelled_visits.append(visit.number)
    else:
        draft.admissions.remove(admitted)
        settling.cancel_attempt(draft, scope, visit, admitted.attempt, None)
