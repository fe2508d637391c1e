"""Acquire, renew and release: who drives a run, under which epoch (promises LEASE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from workflows.clock import database_now_ms, moment
from workflows.errors import Refusal
from workflows.ledger.records import record_event
from workflows.ledger.slots import holds_slot
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Lease, Run
from workflows.statuses import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A lease that was given. ``recovered``: its former owner died; ``crashes``: how often in a row at this visit."""

    run_id: int
    epoch: int
    owner: str
    expires_ms: int
    recovered: bool
    crashes: int
    active_ms: int


@ledger_transaction
def acquire(*, run_id: int, owner: str, ttl_ms: int, engine_versions: frozenset[int], now: int | None = None) -> Grant:
    """Take the right to drive a run. ``now`` (Unix ms) is the database clock unless a test passes it.

    1. The run row is locked first, so no fenced write of an older epoch can be in between.
    2. The run is one a worker may take: not ended, of a known engine version, without a live lease, and queued,
       running, or parked and woken.
       One that starts later is taken when its moment has come, or when it is being ended.
    3. The epoch grows by one on the run and on the lease; the time of a dead lease counts as active up to its expiry.
    4. Only when the former owner died: a revision with the event ``lease_recovered``, and one more crash.

    Loses with ``run.not_found``, ``run.terminal``, ``run.unknown_engine``, ``lease.held``, ``run.later``,
    ``run.queued``, ``run.parked``.
    """
    run = Run.objects.lock(run_id)
    moment_ms = database_now_ms() if now is None else now
    lease = Lease.objects.get(run_id=run_id)
    _refuse_unless_runnable(run, lease, engine_versions, moment_ms)
    epoch = run.lease_epoch + 1
    recovered = lease.expires_ms > 0
    columns: dict[str, Any] = {"lease_epoch": epoch}
    active_ms = lease.active_ms
    if recovered:
        active_ms += lease.expires_ms - lease.acquired_ms
        columns |= _one_more_crash(run)
        record_event(run, "lease_recovered", at=timezone.now(), previous_epoch=lease.epoch, epoch=epoch)
    Run.objects.change(run, revisions=int(recovered), events=int(recovered), **columns)
    Lease.objects.take(run_id=run_id, owner=owner, epoch=epoch, ttl_ms=ttl_ms, active_ms=active_ms, now=moment_ms)
    return Grant(
        run_id=run_id,
        epoch=epoch,
        owner=owner,
        expires_ms=moment_ms + ttl_ms,
        recovered=recovered,
        crashes=run.crashes,
        active_ms=active_ms,
    )


def _refuse_unless_runnable(run: Run, lease: Lease, engine_versions: frozenset[int], now_ms: int) -> None:
    if run.is_final:
        raise Refusal("run.terminal", run=run.pk, status=run.status)
    if run.engine_version not in engine_versions:
        raise Refusal("run.unknown_engine", run=run.pk, engine_version=run.engine_version)
    if lease.expires_ms > now_ms:
        raise Refusal(
            "lease.held", run=run.pk, holder=lease.owner, expires_at=moment(lease.expires_ms).isoformat("T", "seconds")
        )
    if run.start_at_ms is not None and run.start_at_ms > now_ms and not run.closing:
        raise Refusal("run.later", run=run.pk, starts_at=moment(run.start_at_ms).isoformat("T", "seconds"))
    if run.concurrency_max and not run.closing and not holds_slot(run.pk):
        raise Refusal("run.queued", run=run.pk, key=run.concurrency_key)
    woken = run.wake_at_ms is not None and run.wake_at_ms <= now_ms
    if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING) and not woken and not lease.expires_ms:
        raise Refusal("run.parked", run=run.pk, status=run.status, reasons=run.reasons)


def _one_more_crash(run: Run) -> dict[str, Any]:
    """Crashes in a row: those since the run last made a visit."""
    same = run.crashed_at_visits == run.visits
    return {"crashes": run.crashes + 1 if same else 1, "crashed_at_visits": run.visits}


@ledger_transaction
def count_crash(*, run_id: int, epoch: int) -> int:
    """An exception of the engine itself counts like a death of the driver. Returns the crashes in a row."""
    run = Run.objects.lock(run_id)
    if run.lease_epoch != epoch:
        raise Run.objects.why_fenced_off(run_id=run_id, epoch=epoch)
    Run.objects.change(run, revisions=0, events=0, **_one_more_crash(run))
    return run.crashes


@ledger_transaction
def renew(*, run_id: int, epoch: int, ttl_ms: int, polled_ms: int | None = None, now: int | None = None) -> bool:
    """Move the expiry of a live lease; False when it was lost. Touches the lease row only and makes no revision."""
    return Lease.objects.renew(run_id=run_id, epoch=epoch, ttl_ms=ttl_ms, polled_ms=polled_ms, now=now)


@ledger_transaction
def release(*, run_id: int, epoch: int, now: int | None = None) -> bool:
    """Hand the run back. Releasing a lost lease is quiet and writes nothing; False then."""
    Run.objects.lock(run_id)
    return Lease.objects.release(run_id=run_id, epoch=epoch, now=now)
