"""External work: other programs reserve it, renew their reservation and finish it (promises EXT).

A reservation has a token that only its holder knows, new each time; the ledger keeps its SHA-256. Every verb but
``renew`` locks the run, so that a result, a timeout, a cancel and another program meet one after the other: the first
one wins, and the others are told.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import connection

from workflows.clock import database_now_ms
from workflows.errors import Failure, Refusal
from workflows.facts import OfferRow, column_names
from workflows.jsonvalue import Stored
from workflows.ledger.auditing import record_audit
from workflows.ledger.batch import Batch
from workflows.ledger.listeners import announce
from workflows.ledger.publishing import store_payloads
from workflows.ledger.records import compact, record_event, record_version
from workflows.ledger.slots import come_back
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, ControlMessage, ExternalOffer, Run, Scope, Visit
from workflows.statuses import ControlKind, OfferStatus, ScopePhase, WaitsFor

#: Pending messages that keep the work of a run from being given out: the run is about to stop or to be held.
_STOPPING = (ControlKind.CANCEL, ControlKind.PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Work that a program has: everything it is told but its token. Times are Unix milliseconds."""

    run_id: int
    workflow: str
    step: str
    scope: str
    round: int
    visit: int
    attempt: int
    offer: int
    queue: str
    dispatch_id: str
    input_digest: str | None
    lease_ms: int
    lease_until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a program says came of its work. ``failure`` with ``retryable`` False: no policy repeats it."""

    outcome: str
    output: Stored | None = None
    failure: Failure | None = None
    retryable: bool = True

    @property
    def error(self) -> str:
        """The failure as it is stored, "" for none."""
        if self.failure is None:
            return ""
        told = {"code": self.failure.code, "message": self.failure.message, "retryable": self.retryable}
        return compact(told)

    @property
    def digest(self) -> str:
        """What makes two results the same."""
        output = self.output.digest if self.output else ""
        text = f"{self.outcome}\n{output}\n{self.error}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """``new`` False: the same result was stored before. ``lost`` says why the result was not used, "" when it was;
    then ``kept`` says whether it is kept as a late one."""

    run_id: int
    visit: int
    attempt: int
    outcome: str
    new: bool = True
    lost: str = ""
    kept: bool = False


def hash_of(token: str) -> str:
    """What the ledger keeps of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _find_mine(*, offer_id: int, token_hash: str, **rest: Any) -> Any:
    """The reservation that this call made, when the reply to its COMMIT was lost."""
    offer = ExternalOffer.objects.filter(pk=offer_id, token_hash=token_hash, status=OfferStatus.RESERVED).first()
    return None if offer is None else reservation_of(offer)


@ledger_transaction(already_mine=_find_mine)
def reserve(
    *,
    offer_id: int,
    token_hash: str,
    worker: str,
    recorded: str,
    now: datetime,
    now_ms: int | None = None,
    waits: bool = True,
) -> Reservation | None:
    """Give an open offer to a program; None when it cannot be had (any more), and then nothing is written.

    1. Under the run's lock; with ``waits`` False a run that somebody else has locked is left alone.
    2. The run starts new work: it has not ended, nobody holds it, and nobody has asked to cancel or hold it.
    3. The offer goes from open to reserved under this token, until its lease has passed.
    4. With the first reservation of an attempt the timeout of its step begins, and the run is woken at its end.
    5. One event, one revision, one entry of the audit.
    """
    offer = ExternalOffer.objects.filter(pk=offer_id, status=OfferStatus.OPEN).first()
    run = None if offer is None else _locked(offer.run_id, waits)
    if offer is None or run is None or not starts_work(run):
        return None
    moment_ms = database_now_ms() if now_ms is None else now_ms
    taken: dict[str, Any] = {"token_hash": token_hash, "worker": worker, "reserved_by": recorded}
    taken |= {"reserved_ms": moment_ms}
    if not ExternalOffer.objects.take(offer_id=offer_id, lease_ms=offer.lease_ms, **taken):
        return None
    columns = _begin_timeout(run, offer, moment_ms)
    place: dict[str, Any] = {"visit": offer.visit, "attempt": offer.attempt}
    record_event(run, "work_reserved", at=now, actor=recorded, worker=worker, offer=offer.number, **place)
    told = {"work": f"v{offer.visit}.{offer.attempt}", "queue": offer.queue, "worker": worker}
    record_audit(actor=recorded, action="external.reserve", at=now, run=run.pk, data=told)
    Run.objects.change(run, **columns)
    announce(run.pk, run.revision)
    offer.lease_until_ms = moment_ms + offer.lease_ms
    return reservation_of(offer)


def _locked(run_id: int, waits: bool) -> Run | None:
    if waits or not connection.features.has_select_for_update_skip_locked:
        return Run.objects.lock(run_id)
    run: Run | None = Run.objects.filter(pk=run_id).select_for_update(skip_locked=True).first()
    return run


def starts_work(run: Run) -> bool:
    """Whether a program may begin something for this run now."""
    if run.is_final or run.held:
        return False
    return not ControlMessage.objects.filter(run=run, kind__in=_STOPPING, consumed_at=None).exists()


def _begin_timeout(run: Run, offer: ExternalOffer, now_ms: int) -> dict[str, Any]:
    """Let the timeout of an attempt begin, once; the columns of the run that follow from it."""
    waiting = Scope.objects.filter(run=run, visit=offer.visit, phase=ScopePhase.WAITING, waits_for=WaitsFor.EXTERNAL)
    scope = waiting.first()
    if offer.timeout_ms is None or scope is None or scope.wake_at_ms is not None:
        return {}
    ends_ms = now_ms + offer.timeout_ms
    waiting.update(wake_at_ms=ends_ms)
    record_version(run, "scope", scope.path, {"wake_at_ms": ends_ms})
    return {"wake_at_ms": ends_ms if run.wake_at_ms is None else min(run.wake_at_ms, ends_ms)}


def reservation_of(offer: ExternalOffer) -> Reservation:
    """What a program is told about the work it has."""
    visit = Visit.objects.get(run_id=offer.run_id, number=offer.visit)
    attempts = Attempt.objects.filter(run_id=offer.run_id, visit=offer.visit, number=offer.attempt)
    return Reservation(
        run_id=offer.run_id,
        workflow=Run.objects.values_list("workflow__name", flat=True).get(pk=offer.run_id),
        step=visit.step,
        scope=visit.scope,
        round=visit.round or 1,
        visit=offer.visit,
        attempt=offer.attempt,
        offer=offer.number,
        queue=offer.queue,
        dispatch_id=attempts.values_list("dispatch_id", flat=True).get(),
        input_digest=offer.input_digest,
        lease_ms=offer.lease_ms,
        lease_until_ms=offer.lease_until_ms or 0,
    )


@ledger_transaction
def renew(*, token_hash: str, now: Any = None) -> int:
    """Keep a reservation for another lease from now; until when, in Unix milliseconds. No revision, and no lock but
    that of the offer: a run that is being driven never keeps a program waiting.

    Loses with ``offer.not_found``, ``offer.lost`` (it has ended, also at this very moment).
    """
    renewed = ExternalOffer.objects.renew(token_hash=token_hash, now=now)
    offer = find(token_hash)
    if not renewed:
        raise lost(offer)
    return offer.lease_until_ms or 0


def find(token_hash: str) -> ExternalOffer:
    """The offer that was reserved under a token. Raises ``offer.not_found``."""
    offer: ExternalOffer | None = None
    if token_hash:
        offer = ExternalOffer.objects.filter(token_hash=token_hash, inherited=False).first()
    if offer is None:
        raise Refusal("offer.not_found")
    return offer


def lost(offer: ExternalOffer) -> Refusal:
    """Why a reservation is no more, as a refusal."""
    work = f"v{offer.visit}.{offer.attempt}"
    return Refusal("offer.lost", run=offer.run_id, work=work, reason=why_lost(offer))


def why_lost(offer: ExternalOffer) -> str:
    match offer.status:
        case OfferStatus.FINISHED:
            return "it is finished"
        case OfferStatus.LAPSED:
            return "it was not renewed in time, and the work was offered again"
        case OfferStatus.WITHDRAWN:
            return _WITHDRAWN.get(offer.reason, "the work was withdrawn")
    return "it was not renewed in time"


_WITHDRAWN = {
    "timed_out": "the timeout of the step has passed",
    "abandoned": "the run was abandoned",
    "stopped": "the step was stopped",
}


@ledger_transaction
def lapse(*, offer_id: int, now: datetime, now_ms: int | None = None) -> bool:
    """Offer work again whose reservation has ended, under the same key; False when it was renewed or is over.

    1. Under the run's lock the reservation lapses: its token finishes nothing any more.
    2. The same attempt is offered again, last in its queue. One event, one revision.
    """
    offer = ExternalOffer.objects.filter(pk=offer_id, status=OfferStatus.RESERVED).first()
    if offer is None:
        return False
    run = Run.objects.lock(offer.run_id)
    moment_ms = database_now_ms() if now_ms is None else now_ms
    ended: dict[str, Any] = {"revision_settled": run.revision + 1, "ended_ms": moment_ms}
    if not ExternalOffer.objects.lapse(offer_id=offer_id, now_ms=moment_ms, **ended):
        return False
    ExternalOffer.objects.create(
        run=run,
        visit=offer.visit,
        attempt=offer.attempt,
        number=offer.number + 1,
        queue=offer.queue,
        input_digest=offer.input_digest,
        lease_ms=offer.lease_ms,
        timeout_ms=offer.timeout_ms,
        offered_ms=moment_ms,
        revision_created=run.revision + 1,
    )
    place: dict[str, Any] = {"visit": offer.visit, "attempt": offer.attempt}
    record_event(run, "work_lapsed", at=now, worker=offer.worker, offer=offer.number, **place)
    Run.objects.change(run)
    announce(run.pk, run.revision)
    return True


@ledger_transaction
def finish(*, token_hash: str, brought: Brought, recorded: str, now: datetime) -> Finished:
    """Store what a program brought, before anybody goes on with it.

    1. Under the run's lock: the same result under the same token changes nothing and is told so.
    2. The offer goes from reserved to finished with exactly this result, and the run is woken to use it. A lease that
       has ended does not matter as long as the work was not offered again.
    3. A result for work that was offered again, or withdrawn, is kept once as a late one and moves nothing.

    Loses with ``offer.not_found``, ``attempt.conflict`` (finished with another result).
    """
    known = find(token_hash)
    run = Run.objects.lock(known.run_id)
    offer = find(token_hash)
    finished = Finished(run_id=run.pk, visit=offer.visit, attempt=offer.attempt, outcome=brought.outcome)
    if offer.status == OfferStatus.FINISHED:
        if offer.digest != brought.digest:
            raise Refusal("attempt.conflict", run=run.pk, attempt=f"v{offer.visit}.{offer.attempt}")
        return replace(finished, new=False)
    if offer.status != OfferStatus.RESERVED:
        return replace(finished, lost=why_lost(offer), kept=_keep_late(run, offer, brought, now))
    moment_ms = database_now_ms()
    stored = _columns(brought) | {"revision_settled": run.revision + 1, "ended_ms": moment_ms}
    ExternalOffer.objects.finish(offer_id=offer.pk, token_hash=token_hash, **stored)
    come_back(run, moment_ms)
    told: dict[str, Any] = {"worker": offer.worker, "outcome": brought.outcome}
    if brought.failure is not None:
        told["code"] = brought.failure.code
    record_event(run, "work_finished", at=now, actor=recorded, visit=offer.visit, attempt=offer.attempt, **told)
    action = "external.finish" if brought.failure is None else "external.fail"
    told = {"work": f"v{offer.visit}.{offer.attempt}", **told}
    record_audit(actor=recorded, action=action, at=now, run=run.pk, data=told)
    Run.objects.change(run, wake_at_ms=moment_ms)
    announce(run.pk, run.revision)
    return finished


def _columns(brought: Brought) -> dict[str, Any]:
    if brought.output is not None:
        store_payloads([brought.output])
    return {
        "outcome": brought.outcome,
        "output_digest": brought.output.digest if brought.output else None,
        "error": brought.error,
        "digest": brought.digest,
    }


def _keep_late(run: Run, offer: ExternalOffer, brought: Brought, now: datetime) -> bool:
    """Keep what came too late with its offer; whether this is it, now or from before."""
    if offer.digest:
        return bool(offer.digest == brought.digest)
    ExternalOffer.objects.filter(pk=offer.pk).update(**_columns(brought))
    place: dict[str, Any] = {"visit": offer.visit, "attempt": offer.attempt}
    record_event(run, "late_result", at=now, outcome=brought.outcome, worker=offer.worker, **place)
    Run.objects.change(run)
    announce(run.pk, run.revision)
    return True


def write_offers(batch: Batch) -> None:
    """The offers of a driver's decision, in its transaction: new ones, and those that nobody is to do any more."""
    fresh = [row for row in batch.offers if row.revision_created > batch.expected]
    if fresh:
        ExternalOffer.objects.bulk_create([_inserted(batch.run_id, row) for row in fresh])
    for row in batch.offers:
        if row.revision_created <= batch.expected:
            ended = {"reason": row.reason, "ended_ms": row.ended_ms, "revision_settled": row.revision_settled}
            ExternalOffer.objects.withdraw(run_id=batch.run_id, visit=row.visit, **ended)


def _inserted(run_id: int, row: OfferRow) -> ExternalOffer:
    return ExternalOffer(run_id=run_id, **{name: getattr(row, name) for name in column_names(OfferRow)})


def lapsed(*, queues: Collection[str] | None = None, limit: int = 500, now_ms: int | None = None) -> list[int]:
    """Offers of these queues, or of all, whose reservation has ended, the longest ended first."""
    moment_ms = database_now_ms() if now_ms is None else now_ms
    ended = ExternalOffer.objects.filter(status=OfferStatus.RESERVED, lease_until_ms__lte=moment_ms)
    if queues is not None:
        ended = ended.filter(queue__in=list(queues))
    return list(ended.order_by("lease_until_ms", "pk").values_list("pk", flat=True)[:limit])
