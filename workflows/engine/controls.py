"""Controls: what a cancel, a pause or a resume does to a run, in its driver's next decision (promises CTL)."""

from __future__ import annotations

import json

from workflows.engine import children, limits, settling, stopping
from workflows.engine.draft import Draft
from workflows.facts import ControlRow
from workflows.ledger.records import compact
from workflows.statuses import ControlKind, InterruptStatus, RunStatus, ScopePhase, Section, WaitsFor


def apply(draft: Draft, message: ControlRow) -> None:
    """Carry out one accepted message; a signal stays pending until a wait consumes it."""
    if message.kind == ControlKind.CANCEL:
        draft.controls.append(message.sequence)
        cancel(draft, message)
    elif message.kind == ControlKind.SIGNAL:
        draft.signals.append(message)
    elif message.kind == ControlKind.SKIP:
        draft.controls.append(message.sequence)
        skip(draft, message)
    elif message.kind in (ControlKind.PAUSE, ControlKind.RESUME):
        draft.controls.append(message.sequence)
        hold(draft, message)


def cancel(draft: Draft, message: ControlRow) -> None:
    """Fix *cancelled* as the end of the run and stop what runs; closing steps follow. A run that closes goes on."""
    if draft.ended or draft.closing.get("status", RunStatus.CANCELLED) != RunStatus.CANCELLED:
        return
    draft.begin_revision()
    draft.event("run_cancelling", by=message.sender)
    if not draft.closing:
        draft.set_state(closing=compact({"status": str(RunStatus.CANCELLED), "by": message.sender}))
    if draft.state.held:
        draft.set_state(held="")
    stopping.stop(draft, [scope for scope in draft.live_scopes() if scope.section == Section.MAIN])


def skip(draft: Draft, message: ControlRow) -> None:
    """An operator lets a waiting step count as skipped: its visit ends so, and the flow goes on from there.

    A step that went on meanwhile, or whose effect runs, is left alone.
    """
    content = json.loads(message.payload)
    scope = next((one for one in draft.live_scopes() if one.visit == content["visit"]), None)
    if scope is None or scope.visit is None or scope.phase != ScopePhase.WAITING or scope.waits_for == WaitsFor.JOIN:
        return
    visit = draft.visit(scope.visit)
    if scope.waits_for == WaitsFor.CHILD:
        children.stop_child(draft, scope)
    draft.begin_revision()
    draft.event("skip_carried_out", visit=visit.number, by=message.sender, reason=content.get("reason", "")[:1000])
    attempt = settling.close_question(draft, visit, InterruptStatus.CLOSED)
    limits.give_back(draft, scope, draft.plan.steps[visit.step])
    settling.finish(draft, scope, draft.plan.steps[visit.step], visit, outcome="skipped", attempt=attempt)


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
