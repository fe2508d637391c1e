"""Controls: what a cancel, a pause or a resume does to a run, in its driver's next decision (BEHAVIOURS CTL)."""

from __future__ import annotations

import json

from workflows.engine import stopping
from workflows.engine.draft import Draft
from workflows.facts import ControlRow
from workflows.ledger.records import compact
from workflows.statuses import ControlKind, RunStatus


def apply(draft: Draft, message: ControlRow) -> None:
    """Carry out one accepted message; a signal stays pending until a wait consumes it."""
    if message.kind == ControlKind.CANCEL:
        draft.controls.append(message.sequence)
        cancel(draft, message)
    elif message.kind == ControlKind.SIGNAL:
        draft.signals.append(message)
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
    stopping.stop(draft, draft.live_scopes())


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
