"""Reserving: the next attempt of a visit, as a row of the present revision."""

from __future__ import annotations

from workflows.engine.draft import Draft
from workflows.facts import AttemptRow, VisitRow
from workflows.statuses import AttemptStatus


def reserve(draft: Draft, visit: VisitRow, *, dispatch_id: str, inputs: str) -> AttemptRow:
    """An attempt that starts once this is committed. ``inputs`` is the hash of what its effect depends on."""
    return _add(draft, visit, AttemptStatus.RUNNING, dispatch_id, inputs)


def pause(draft: Draft, visit: VisitRow, *, dispatch_id: str = "", inputs: str = "") -> AttemptRow:
    """An attempt that waits outside of every worker: for people, for a child run, or for another program.
    ``dispatch_id`` "": a new one."""
    return _add(draft, visit, AttemptStatus.PAUSED, dispatch_id or draft.new_id(), inputs)


def _add(draft: Draft, visit: VisitRow, status: AttemptStatus, dispatch_id: str, inputs: str) -> AttemptRow:
    attempts = draft.attempts(visit.number)
    return draft.add_attempt(
        AttemptRow(
            visit=visit.number,
            number=attempts[-1].number + 1 if attempts else 1,
            dispatch_id=dispatch_id,
            input_hash=inputs,
            status=status.value,
            epoch=draft.facts.epoch,
            worker=draft.facts.worker,
            revision_created=draft.revision,
            started_at=draft.now,
        )
    )
