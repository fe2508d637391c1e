"""Writing a batch with the managers: the reference for what ``hot_path`` does with generated SQL.

Called inside the transaction of ``ledger.advance``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import F, Model

from workflows.clock import DatabaseNow
from workflows.facts import RunState, column_names
from workflows.ledger.batch import ATTEMPT_CHANGES, SCOPE_CHANGES, VISIT_CHANGES, Batch
from workflows.ledger.side_rows import write_side_rows
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    Fanout,
    Interrupt,
    Lease,
    Payload,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Visit,
)
from workflows.statuses import InterruptStatus

STATE_COLUMNS = column_names(RunState)


def write(batch: Batch, *, now: Any = None) -> None:
    """Fence, then write every row of the batch. Raises ``lease.lost``, ``run.conflict``, ``attempt.conflict``."""
    Run.objects.fence(run_id=batch.run_id, epoch=batch.epoch, expected=batch.expected, now=now, **run_columns(batch))
    Payload.objects.bulk_create([Payload(**columns(row)) for row in batch.payloads], ignore_conflicts=True)
    settle_attempts(batch)
    for visit in batch.visits_changed:
        Visit.objects.filter(run_id=batch.run_id, number=visit.number).update(**picked(visit, VISIT_CHANGES))
    for scope in batch.scopes_changed:
        Scope.objects.filter(run_id=batch.run_id, path=scope.path).update(**picked(scope, SCOPE_CHANGES))
    for path, values in batch.variables.items():
        ScopeVars.objects.filter(run_id=batch.run_id, path=path).update(values=values)
    insert(batch, Visit, batch.visits_new)
    for attempt in batch.attempts_new:
        Attempt.objects.reserve(run_id=batch.run_id, **columns(attempt))
    insert(batch, Scope, batch.scopes_new)
    fresh = [ScopeVars(run_id=batch.run_id, path=path, values=text) for path, text in batch.variables_new.items()]
    ScopeVars.objects.bulk_create(fresh)
    insert(batch, Fanout, batch.fanouts)
    insert(batch, Interrupt, batch.interrupts_new)
    for row in batch.interrupts_closed:
        Interrupt.objects.close(
            run_id=batch.run_id,
            visit=row.visit,
            status=InterruptStatus(row.status),
            revision_settled=row.revision_settled,
        )
    insert(batch, Event, batch.events)
    insert(batch, RowVersion, batch.versions)
    if batch.controls:
        pending = ControlMessage.objects.filter(run_id=batch.run_id, sequence__in=batch.controls)
        pending.update(consumed_by="driver", consumed_at=batch.controls_at)
    if batch.release:
        release(batch, now=now)
    write_side_rows(batch)


def run_columns(batch: Batch) -> dict[str, Any]:
    """What the fence statement sets on the run."""
    values: dict[str, Any] = {
        "revision": batch.revision,
        "next_event": batch.next_event,
        "visits": batch.visits,
        "last_commit": batch.commit_id,
    }
    if batch.state is not None:
        values |= picked(batch.state, STATE_COLUMNS)
    if batch.parks:
        values["wake_at_ms"] = batch.wake_at_ms
    if batch.controls:
        values["controls_seen"] = F("controls_seen") + len(batch.controls)
    return values


def settle_attempts(batch: Batch) -> None:
    for row in batch.attempts_settled:
        Attempt.objects.finish(
            run_id=batch.run_id,
            visit=row.visit,
            number=row.number,
            epoch=batch.epoch,
            dispatch_id=row.dispatch_id,
            **picked(row, ATTEMPT_CHANGES),
        )
    for row in batch.attempts_closed:
        this = Attempt.objects.filter(run_id=batch.run_id, visit=row.visit, number=row.number)
        this.update(**picked(row, ATTEMPT_CHANGES))


def release(batch: Batch, *, now: Any = None) -> None:
    """End the lease in the transaction that parks or ends the run, and copy the active time to the run."""
    moment = DatabaseNow() if now is None else now
    Lease.objects.filter(run_id=batch.run_id, epoch=batch.epoch).update(
        expires_ms=0, owner="", active_ms=F("active_ms") + moment - F("acquired_ms")
    )
    active = Lease.objects.filter(run_id=batch.run_id).values_list("active_ms", flat=True).first() or 0
    Run.objects.filter(pk=batch.run_id).update(active_ms=active)


def insert(batch: Batch, model: type[Model], rows: Iterable[Any]) -> None:
    model.objects.bulk_create([model(run_id=batch.run_id, **columns(row)) for row in rows])  # type: ignore[attr-defined]


def columns(row: Any, *, but: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: getattr(row, name) for name in column_names(row.__class__) if name not in but}


def picked(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
