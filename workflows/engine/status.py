"""A scope parks, a run derives: the status of a run from its scopes (docs/architecture.md)."""

from __future__ import annotations

from workflows.engine.draft import Draft
from workflows.facts import ScopeRow
from workflows.ledger.records import compact
from workflows.statuses import BLOCKING_CAUSES, WAITING_CAUSES, RunStatus, ScopePhase, WaitsFor

#: Reasons are for people: a map of thousands waiting items is summed up.
MOST_REASONS = 20


def derive(draft: Draft) -> int | None:
    """Record the run's status and reasons if they changed; returns the next moment to wake at, if any."""
    if draft.ended:
        return None
    waiting = [scope for scope in draft.scopes.values() if scope.phase == ScopePhase.WAITING]
    causes = [scope for scope in waiting if scope.waits_for != WaitsFor.JOIN]
    status = derived_status(draft, causes)
    reasons = [] if status == RunStatus.RUNNING else [_reason(scope) for scope in causes[:MOST_REASONS]]
    if draft.state.held and status == RunStatus.PAUSED:
        reasons.insert(0, {"cause": "held"})
    changes: dict[str, object] = {}
    if status != draft.state.status:
        changes["status"] = str(status)
    if (text := compact(reasons)) != draft.state.reasons:
        changes["reasons"] = text
    if draft.state.started_at is None:
        changes["started_at"] = draft.now
    if changes:
        _record(draft, changes)
    moments = [moment_of(draft, scope) for scope in waiting if has_moments(draft, scope)]
    return min((moment for moment in moments if moment is not None), default=None)


def moment_of(draft: Draft, scope: ScopeRow) -> int | None:
    """When a waiting scope goes on by itself. Its turn in the line of a limit is no fact of the scope."""
    return draft.facts.turn_ms(scope.path) if scope.waits_for == WaitsFor.SLOT else scope.wake_at_ms


def has_moments(draft: Draft, scope: ScopeRow) -> bool:
    """Whether time passes for a waiting scope: in a held run only the deadlines of people go on (CTL.4)."""
    return not draft.state.held or scope.waits_for == WaitsFor.PEOPLE


def derived_status(draft: Draft, waiting: list[ScopeRow]) -> RunStatus:
    if any(scope.phase == ScopePhase.EFFECT for scope in draft.scopes.values()):
        return RunStatus.RUNNING
    if draft.state.held:
        return RunStatus.PAUSED
    if any(scope.phase == ScopePhase.READY for scope in draft.scopes.values()):
        return RunStatus.RUNNING
    causes = {scope.waits_for for scope in waiting}
    if causes & WAITING_CAUSES:
        return RunStatus.WAITING
    if causes & BLOCKING_CAUSES:
        return RunStatus.BLOCKED
    return RunStatus.PAUSED if causes else RunStatus.RUNNING


def _record(draft: Draft, changes: dict[str, object]) -> None:
    before = draft.state.status
    status = changes.get("status", before)
    announced = status != before and status != RunStatus.RUNNING
    if draft.revision == draft.facts.revision:
        draft.begin_revision()
        if not announced:
            draft.event(f"run_{status}")
    if announced:
        draft.event(f"run_{status}")
    draft.set_state(**changes)


def _reason(scope: ScopeRow) -> dict[str, object]:
    reason: dict[str, object] = {"cause": scope.waits_for, "step": scope.step}
    if scope.visit is not None:
        reason["visit"] = scope.visit
    if scope.path:
        reason["scope"] = scope.path
    if scope.wake_at_ms is not None:
        reason["until_ms"] = scope.wake_at_ms
    return reason
