"""Controls: what a cancel, a pause or a resume does to a run, in its driver's next decision (BEHAVIOURS CTL)."""

from __future__ import annotations

import json

from workflows.engine import closing, settling
from workflows.engine.draft import Draft
from workflows.facts import ControlRow, ScopeRow
from workflows.ledger.records import compact
from workflows.statuses import ControlKind, RunStatus, ScopePhase, WaitsFor


def apply(draft: Draft, message: ControlRow) -> None:
    """Carry out one accepted message; kinds that somebody else consumes stay pending."""
    if message.kind == ControlKind.CANCEL:
        draft.controls.append(message.sequence)
        cancel(draft, message)
    elif message.kind in (ControlKind.PAUSE, ControlKind.RESUME):
        draft.controls.append(message.sequence)
        hold(draft, message)


def cancel(draft: Draft, message: ControlRow) -> None:
    """Fix *cancelled* as the end of the run and stop what runs; closing steps follow. A run that closes goes on."""
    if draft.ended or draft.closing:
        return
    draft.begin_revision()
    closing.set_closing(draft, {"status": str(RunStatus.CANCELLED), "by": message.sender})
    if draft.state.held:
        draft.set_state(held="")
    stop_scopes(draft)


def stop_scopes(draft: Draft) -> None:
    """Reach every live scope of a cancelled run: running effects are told to stop, the others end now."""
    for scope in draft.live_scopes():
        if scope.phase == ScopePhase.EFFECT and scope.visit is not None:
            draft.cancelled_visits.append(scope.visit)
        else:
            stop_scope(draft, scope)


def stop_scope(draft: Draft, scope: ScopeRow) -> None:
    if scope.visit is None:
        closing.begin_finally(draft, scope)
        return
    visit = draft.visit(scope.visit)
    attempts = draft.attempts(visit.number)
    if scope.waits_for == WaitsFor.RECONCILE and attempts:
        draft.event("step_unreconciled", visit=visit.number, attempt=attempts[-1].number)
    settling.cancel_visit(draft, scope, visit)


def hold(draft: Draft, message: ControlRow) -> None:
    """Pause: running effects settle, nothing starts. Resume: go on."""
    wanted = message.kind == ControlKind.PAUSE
    if draft.ended or wanted == bool(draft.state.held):
        return
    draft.begin_revision()
    draft.event("run_held" if wanted else "run_resumed", by=message.sender)
    reason = json.loads(message.payload).get("reason", "")
    held = {"by": message.sender, "since": draft.now.isoformat(), "reason": reason}
    draft.set_state(held=compact(held) if wanted else "")
