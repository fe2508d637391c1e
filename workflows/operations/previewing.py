"""Previews: what an action would do to a run, in words. Nothing is written; what would be refused is refused.

Between a preview and the action the run may have moved on: the ledger decides anew, under its lock.
"""

from __future__ import annotations

from workflows.errors import Refusal
from workflows.ledger.controlling import refuse_when_over, refuse_when_too_many, stored_before
from workflows.ledger.reopening import refuse_when_driven
from workflows.models import Interrupt, Lease, Run, Scope, Slot
from workflows.operations.reasons import checked_reason
from workflows.operations.runs import live_below, step_to_skip
from workflows.statuses import (
    REOPENABLE_STATUSES,
    ControlKind,
    InterruptStatus,
    RunStatus,
    ScopePhase,
    SlotKind,
    WaitsFor,
)


def cancel(run_id: int) -> str:
    run = _run(run_id)
    if stored_before(run, ControlKind.CANCEL, "", {}) is not None:
        return "was cancelled already"
    refuse_when_over(run, ControlKind.CANCEL)
    return f"would be cancelled{_with_children(run_id)}"


def abandon(run_id: int, reason: str) -> str:
    checked_reason(reason, needed_for="Abandoning a run")
    run = _run(run_id)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    opened = Interrupt.objects.filter(run=run, status=InterruptStatus.OPEN).count()
    more = f", {opened} open question{'s' * (opened > 1)} closed" if opened else ""
    driven = ", its worker would stop what runs" if Lease.objects.is_live(run_id) else ""
    return f"would be abandoned while it is {run.status}{_with_children(run_id)}{more}{driven}"


def pause(run_id: int) -> str:
    run = _run(run_id)
    if run.held and not run.is_final:
        return "was held already"
    refuse_when_over(run, ControlKind.PAUSE)
    refuse_when_too_many(run, ControlKind.PAUSE, {})
    return "would be held"


def resume(run_id: int) -> str:
    run = _run(run_id)
    if run.held and not run.is_final:
        return "would no longer be held"
    return _reopened(run)


def retry(run_id: int) -> str:
    run = _run(run_id)
    if run.status in (RunStatus.FAILED, RunStatus.ABANDONED):
        return _reopened(run)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    refuse_when_driven(run)
    waiting = Scope.objects.filter(run=run, phase=ScopePhase.WAITING, waits_for=WaitsFor.RETRY).count()
    if not waiting:
        raise Refusal("run.nothing_to_retry", run=run_id)
    return f"would try {waiting} waiting step{'s' * (waiting > 1)} again now"


def skip(run_id: int, reason: str, visit: int | None) -> str:
    checked_reason(reason, needed_for="Skipping a step")
    run = _run(run_id)
    number = step_to_skip(run, visit)
    if run.status == RunStatus.FAILED:
        _reopened(run)
    return f"v{number} would count as skipped"


def steer(run_id: int, text: str) -> str:
    run = _run(run_id)
    refuse_when_over(run, ControlKind.STEER)
    refuse_when_too_many(run, ControlKind.STEER, {"text": text})
    return f"would get a text of {len(text)} characters"


def _reopened(run: Run) -> str:
    if run.status not in REOPENABLE_STATUSES:
        raise Refusal("run.not_reopenable", run=run.pk, status=run.status)
    refuse_when_driven(run)
    taken = Slot.objects.filter(kind=SlotKind.CONCURRENCY, name=run.concurrency_key).exclude(run=run)
    if run.concurrency_max and taken.count() >= run.concurrency_max:
        holder = taken.filter(number__isnull=False).order_by("given_ms").values_list("run_id", flat=True).first()
        name, most = run.concurrency_key, run.concurrency_max
        raise Refusal("run.concurrency_full", holder=f" (run {holder})", key=name, max=most, holders=[holder])
    if run.status == RunStatus.BLOCKED:
        return "would be looked at again"
    return f"would be opened again; it is {run.status}"


def _with_children(run_id: int) -> str:
    below = len(live_below(run_id))
    return f" with {below} child run{'s' * (below > 1)}" if below else ""


def _run(run_id: int) -> Run:
    run: Run | None = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return run
