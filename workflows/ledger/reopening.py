"""Reopen, retry now, and wake: a run that stopped goes on (promise ABR.2)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import uuid4

from workflows.clock import database_now_ms, moment
from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.controlling import accept
from workflows.ledger.listeners import announce
from workflows.ledger.records import record_event, record_version
from workflows.ledger.slots import refuse_when_full
from workflows.ledger.transactions import ledger_transaction
from workflows.ledger.unsettling import is_uncertain, open_again, stand_at, unsettle
from workflows.models import Lease, RowVersion, Run, Scope, Visit
from workflows.statuses import REOPENABLE_STATUSES, ControlKind, RunStatus, ScopePhase, Section, VisitStatus, WaitsFor


@ledger_transaction
def reopen(
    *, run_id: int, actor: str, reason: str, now: datetime, skip: bool = False, action: str = "run.resume"
) -> int | None:
    """Let a failed, blocked or abandoned run go on; the number of the visit that was un-settled, None if there is none.

    1. Under the run's lock: it is one of these, nobody holds its lease, and its concurrency slot can be taken again.
    2. *Failed*: exactly the failed visit is open again, with the failed visits it contains: the next try is the next
       attempt of the same visit; ``max_visits`` and retry counts stay. Items that are ok stay so. A refused entry is
       entered anew. Where no step failed (the output did), the end is redone. A run that failed before its first step
       begins anew. The root scope stands at that step in the main section. A write of which nobody knows whether it
       happened is reconciled first, not repeated (ADM.5).
    3. With ``skip`` that step counts as skipped instead: the message that says so is accepted in the same transaction.
    4. *Abandoned*: it goes on from where it stood; a hold is lifted.
    5. *Blocked*: it is woken, to look whether the code is there again; what is to be reconciled stays so.
    6. End time and error are cleared, the run is queued; one event, and an entry of the audit that names
       ``action``: "" for what only follows from the action of a person.

    Loses with ``run.not_found``, ``run.not_reopenable``, ``lease.held``, ``run.concurrency_full``, and with
    ``run.nothing_to_skip`` where no settled step failed.
    """
    run = Run.objects.lock(run_id)
    if run.status not in REOPENABLE_STATUSES:
        raise Refusal("run.not_reopenable", run=run_id, status=run.status)
    refuse_when_driven(run)
    moment_ms = database_now_ms()
    refuse_when_full(run, moment_ms)
    was = run.status
    number, state = None, dict[str, Any]()
    if run.status == RunStatus.FAILED:
        number, state = _stand_at_failure(run, skip, now)
    elif skip:
        raise Refusal("run.nothing_to_skip", run=run_id)
    elif run.status == RunStatus.ABANDONED:
        state = {"status": str(RunStatus.QUEUED), "held": "", "ended_at": None}
    if state:
        record_version(run, "run", "", state)
    record_event(run, "run_reopened", at=now, actor=actor, visit=number, reason=reason[:1000])
    if skip:
        message = {"visit": number, "reason": reason}
        accept(run, kind=ControlKind.SKIP, payload=message, request_id=uuid4().hex, sender=actor, now=now, offset=1)
        state["controls_accepted"] = run.controls_accepted + 1
    wake_at_ms = moment_ms if was == RunStatus.BLOCKED else None
    Run.objects.change(run, events=1 + skip, crashes=0, crashed_at_visits=None, wake_at_ms=wake_at_ms, **state)
    if action:
        told = {"was": str(was), "visit": None if number is None else f"v{number}"}
        record_audit(actor=actor, action=action, at=now, run=run_id, reason=reason, data=told)
    announce(run_id, run.revision)
    return number


def _stand_at_failure(run: Run, skip: bool, now: datetime) -> tuple[int | None, dict[str, Any]]:
    """Un-settle what failed and let the root scope stand there; the visit, and the new state of the run."""
    visit, number = _failed_visit(run), visit_to_skip(run)
    if skip and number is None:
        raise Refusal("run.nothing_to_skip", run=run.pk)
    main = {"section": str(Section.MAIN)}
    if visit is None:
        stand_at(run, "", "" if run.visits else _first_step(run), None, **main)
    elif skip:
        unsettle(run, visit)
        waits_for = WaitsFor.RECONCILE if is_uncertain(run, number) else WaitsFor.CODE
        stand_at(run, "", visit.step, number, waits_for=waits_for, **main)
    else:
        open_again(run, "", visit, now, **main)
    return number, {
        "status": str(RunStatus.QUEUED),
        "reasons": "[]",
        "held": "",
        "closing": "",
        "error": "",
        "output_digest": None,
        "started_at": run.started_at if run.visits else None,
        "ended_at": None,
    }


def refuse_when_driven(run: Run) -> None:
    lease = Lease.objects.get(run=run)
    if lease.expires_ms > database_now_ms():
        expires_at = moment(lease.expires_ms).isoformat("T", "seconds")
        raise Refusal("lease.held", run=run.pk, holder=lease.owner, expires_at=expires_at)


def visit_to_skip(run: Run) -> int | None:
    """The settled visit that failed a run; None where it was refused, or no step failed."""
    visit = _failed_visit(run)
    return None if visit is None or visit.status == VisitStatus.REFUSED else visit.number


def _failed_visit(run: Run) -> Visit | None:
    error = json.loads(run.error) if run.error else {}
    if error.get("visit") is None or error.get("code") == "finally_failed":
        return None
    visit: Visit | None = Visit.objects.filter(run=run, number=error["visit"]).first()
    return visit


def _first_step(run: Run) -> str:
    """Where the run began: its root scope at revision 1."""
    text = RowVersion.objects.values_list("row", flat=True).get(run=run, revision=1, table="scope", key="")
    first: str = json.loads(text)["step"]
    return first


@ledger_transaction
def hurry(*, run_id: int, actor: str, now: datetime, reason: str = "") -> int:
    """Retry now: end the back-off of every scope that waits for its next attempt. Returns how many there were.

    One event, one revision, one entry of the audit. Counts stay as they are.

    Loses with ``run.not_found``, ``run.terminal``, ``lease.held``, ``run.nothing_to_retry``.
    """
    run = Run.objects.lock(run_id)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    refuse_when_driven(run)
    waiting = list(Scope.objects.filter(run=run, phase=ScopePhase.WAITING, waits_for=WaitsFor.RETRY))
    if not waiting:
        raise Refusal("run.nothing_to_retry", run=run_id)
    moment_ms = database_now_ms()
    for scope in waiting:
        Scope.objects.filter(pk=scope.pk).update(wake_at_ms=moment_ms)
        record_version(run, "scope", scope.path, {"wake_at_ms": moment_ms})
    record_event(run, "retry_hurried", at=now, actor=actor, scopes=len(waiting))
    record_audit(
        actor=actor,
        action="run.retry",
        at=now,
        run=run_id,
        reason=reason,
        data={"was": run.status, "scopes": len(waiting)},
    )
    Run.objects.change(run, wake_at_ms=moment_ms)
    announce(run_id, run.revision)
    return len(waiting)


@ledger_transaction
def wake(*, run_id: int) -> bool:
    """Let a parked run be looked at again (missing code is back); no revision. False when it has ended.

    Loses with ``run.not_found``, and with ``run.concurrency_full`` when it was blocked and its slot is taken.
    """
    run = Run.objects.lock(run_id)
    if run.is_final:
        return False
    if run.status == RunStatus.BLOCKED:
        refuse_when_full(run, database_now_ms())
    Run.objects.change(run, revisions=0, events=0, wake_at_ms=database_now_ms())
    announce(run_id, run.revision)
    return True
