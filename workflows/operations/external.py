"""External work: what programs ask for and bring, checked at the door before it is stored (promises EXT)."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef
from django.utils import timezone

from workflows.definitions.plan import StepPlan
from workflows.engine.memory import read_plan
from workflows.engine.output_schema import schema_mismatch
from workflows.engine.results import short
from workflows.engine.settling import OUTPUT_LIMIT
from workflows.errors import FAILURES, Failure, Problem, Refusal
from workflows.jsonvalue import NotStorable, Stored, check_storable, decode, store
from workflows.ledger import external as ledger
from workflows.ledger.external import Brought, Finished, Reservation
from workflows.models import ControlMessage, ExternalOffer, Payload, Run, Visit, Workflow
from workflows.operations.access import require, sees_run
from workflows.operations.people import Actor
from workflows.seats import SEATS
from workflows.statuses import LIVE_STATUSES, ControlKind, OfferStatus

logger = logging.getLogger(__name__)

#: The permission that it needs.
WORK = "work_externaloffer"
#: The longest that a program may wait for work in one request, in seconds, and how often it is looked for meanwhile.
MOST_WAIT_S = 20.0
LOOK_S = 0.5
MOST_QUEUES = 20
MOST_NAME = 200
#: Offers that are tried before a program is told that there is nothing.
_TRIED_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work that a program has been given. Whoever knows ``token`` may renew and finish it."""

    token: str = field(repr=False)
    reservation: Reservation
    input: Any


def reserve(
    queues: Collection[str],
    *,
    worker: str,
    actor: Actor,
    wait_s: float = 0.0,
    pause: Callable[[float], object] = time.sleep,
) -> Work | None:
    """Give a program the next work of its queues; None when there was none within ``wait_s`` seconds.

    Work of runs with a higher priority comes first, then what waits longest, of those workflows that the actor may
    see. No connection to the database is held while this waits. When no seat is free in this process, it answers at
    once.

    Raises ``access.denied``, ``input.invalid``.
    """
    _admit(actor, "external.reserve")
    _refuse_bad_names(queues, worker)
    work = _reserve_now(queues, worker, actor)
    if work is not None or wait_s <= 0 or not SEATS.take():
        return work
    try:
        until = time.monotonic() + min(wait_s, MOST_WAIT_S)
        while work is None and (left_s := until - time.monotonic()) > 0:
            connection.close()
            pause(min(LOOK_S, left_s))
            work = _reserve_now(queues, worker, actor)
        return work
    finally:
        SEATS.leave()


def _admit(actor: Actor, action: str) -> None:
    """Whoever works for runs may look at them, too. Raises ``access.denied``."""
    require(actor, WORK, action=action)
    require(actor, "view_run", action=action)


def _refuse_bad_names(queues: Collection[str], worker: str) -> None:
    if not 1 <= len(queues) <= MOST_QUEUES:
        raise Refusal("input.invalid", reason=f"Name 1 to {MOST_QUEUES} queues; there are {len(queues)}.")
    problems = check_storable([*queues, worker], "names")
    if problems or not worker.strip() or len(worker) > MOST_NAME:
        raise Refusal("input.invalid", reason=f"The program needs a name of at most {MOST_NAME} characters.")


def _reserve_now(queues: Collection[str], worker: str, actor: Actor) -> Work | None:
    offer_again(queues)
    offers = _open_offers(queues, actor)
    for waits in (False, True):  # first what nobody is at, so that programs do not stand in line for one run
        for offer_id in offers:
            token = secrets.token_urlsafe(32)
            reservation = ledger.reserve(
                offer_id=offer_id,
                token_hash=ledger.hash_of(token),
                worker=worker,
                recorded=actor.recorded,
                now=timezone.now(),
                waits=waits,
            )
            if reservation is not None:
                return Work(token=token, reservation=reservation, input=_input(reservation.input_digest))
    return None


def _open_offers(queues: Collection[str], actor: Actor) -> list[int]:
    """The offers that may be given out now, the next one first."""
    about_to_stop = ControlMessage.objects.filter(
        run_id=OuterRef("run_id"), kind__in=(ControlKind.CANCEL, ControlKind.PAUSE), consumed_at=None
    )
    offers = ExternalOffer.objects.filter(
        ~Exists(about_to_stop),
        status=OfferStatus.OPEN,
        queue__in=list(queues),
        run__status__in=sorted(LIVE_STATUSES),
        run__held="",
    )
    if actor.user is not None:
        offers = offers.filter(run__workflow__in=Workflow.objects.visible_to(actor.user))
    ordered = offers.order_by("-run__priority", "offered_ms", "pk")
    return list(ordered.values_list("pk", flat=True)[:_TRIED_AT_ONCE])


def _input(digest: str | None) -> Any:
    return None if digest is None else decode(Payload.objects.values_list("text", flat=True).get(digest=digest))


def renew(token: str, *, actor: Actor) -> int:
    """Keep a reservation for another lease; until when, in Unix milliseconds.

    Raises ``access.denied``, ``offer.not_found``, ``offer.lost``.
    """
    _admit(actor, "external.renew")
    _find(token, actor)
    return ledger.renew(token_hash=ledger.hash_of(token))


def finish(token: str, *, actor: Actor, outcome: str = "ok", output: Any = None) -> Finished:
    """Store a result. One that does not fit is refused with everything that is wrong, and the work stays reserved.

    Raises ``access.denied``, ``offer.not_found``, ``offer.invalid``, ``offer.lost``, ``attempt.conflict``.
    """
    _admit(actor, "external.finish")
    step = _step_of(_find(token, actor))
    problems = [*_outcome_problems(step, outcome), *check_storable(output, "output")]
    stored = None if problems else _stored(output, problems)
    if not problems and (mismatch := schema_mismatch(step.options["schema"], output)) is not None:
        problems.append(Problem(code="E602", path="output", message=mismatch))
    return _bring(token, Brought(outcome=outcome, output=stored), problems, actor)


def fail(token: str, *, actor: Actor, message: str = "", code: str = "task_error", retryable: bool = True) -> Finished:
    """Store that the work failed. A ``code`` that ``retry`` of a workflow can name is kept; another one, the program's
    own, stands before the message of a ``task_error``. With ``retryable`` False no policy repeats it.

    Raises what ``finish`` raises.
    """
    _admit(actor, "external.fail")
    _find(token, actor)
    problems = [*check_storable(message, "message"), *check_storable(code, "code")]
    if not 1 <= len(code) <= MOST_NAME:
        problems.append(Problem(code="E613", path="code", message=f'"code" has 1 to {MOST_NAME} characters.'))
    known = code in FAILURES and FAILURES[code].retryable
    told = message or "The program that did the work said that it failed."
    failure = Failure(code=code if known else "task_error", message=short(told if known else f"{code}: {told}"))
    outcome = "timed_out" if failure.code == "timeout" else "failed"
    return _bring(token, Brought(outcome=outcome, failure=failure, retryable=retryable), problems, actor)


def _bring(token: str, brought: Brought, problems: list[Problem], actor: Actor) -> Finished:
    if problems:
        raise Refusal("offer.invalid", count=len(problems), problems=tuple(problems))
    finished = ledger.finish(
        token_hash=ledger.hash_of(token), brought=brought, recorded=actor.recorded, now=timezone.now()
    )
    if finished.lost:
        work = f"v{finished.visit}.{finished.attempt}"
        raise Refusal("offer.lost", run=finished.run_id, work=work, reason=finished.lost, kept=finished.kept)
    return finished


def _find(token: str, actor: Actor) -> ExternalOffer:
    """The offer of a token, for whoever may see its run. Raises ``offer.not_found``."""
    offer = ledger.find(ledger.hash_of(token))
    if actor.user is not None and not sees_run(actor.user, offer.run_id):
        raise Refusal("offer.not_found")
    return offer


def _step_of(offer: ExternalOffer) -> StepPlan:
    run = Run.objects.select_related("plan").get(pk=offer.run_id)
    step = Visit.objects.values_list("step", flat=True).get(run=run, number=offer.visit)
    return read_plan(run.plan).steps[step]


def _outcome_problems(step: StepPlan, outcome: str) -> list[Problem]:
    allowed = ("ok", *step.options["outcomes"])
    if outcome in allowed:
        return []
    told = outcome if len(outcome) <= 80 else f"{outcome[:80]}…"
    message = f'The outcome must be one of {", ".join(allowed)}; it is "{told}".'
    hint = "Work that failed is told with fail." if outcome in ("failed", "timed_out") else ""
    return [*check_storable(outcome, "outcome"), Problem(code="E604", path="outcome", message=message, hint=hint)]


def _stored(output: Any, problems: list[Problem]) -> Stored | None:
    try:
        return None if output is None else store(output, limit=OUTPUT_LIMIT)
    except NotStorable as error:
        problems.append(Problem(code="E608", path=error.path or "output", message=error.message))
        return None


def offer_again(queues: Collection[str] | None = None) -> int:
    """Offer work again whose reservation has ended, of these queues or of all; how much. Any number of workers and
    programs may do it at once."""
    return sum(ledger.lapse(offer_id=offer, now=timezone.now()) for offer in ledger.lapsed(queues=queues))
