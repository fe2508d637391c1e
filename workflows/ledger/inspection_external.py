"""Inspect the work that a run offers to other programs. See ``inspection``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from workflows.ledger.inspection_rows import RunRows, dense
from workflows.ledger.inspection_steps import revisions
from workflows.models import Attempt, ExternalOffer
from workflows.models.external import LIVE_OFFERS
from workflows.statuses import AttemptStatus, OfferStatus, VisitStatus


def offers(rows: RunRows) -> Iterator[str]:
    """Work is offered, or finished, as long as its attempt is paused; each reservation has a holder and an end."""
    by_attempt: dict[tuple[int, int], list[ExternalOffer]] = defaultdict(list)
    for offer in rows.offers:
        by_attempt[offer.visit, offer.attempt].append(offer)
        yield from _offer(rows, offer)
    for (visit, attempt), made in by_attempt.items():
        if not rows.run.fork_of_id:
            yield from dense([offer.number for offer in made], f"offers of v{visit}.{attempt}")
        yield from _attempt(rows.attempt_by_place.get((visit, attempt)), made[-1])
    kinds = {number: visit.kind for number, visit in rows.visit_by_number.items()}
    for one in rows.attempts:
        is_waiting = one.status == AttemptStatus.PAUSED and kinds.get(one.visit) == "external"
        if is_waiting and (one.visit, one.number) not in by_attempt:
            yield f"v{one.visit}.{one.number} waits for another program and is not offered"


def _offer(rows: RunRows, offer: ExternalOffer) -> Iterator[str]:
    name, is_live = f"offer {offer.number} of v{offer.visit}.{offer.attempt}", offer.status in LIVE_OFFERS
    visit = rows.visit_by_number.get(offer.visit)
    if visit is None or visit.kind != "external":
        yield f"{name} belongs to a visit that offers nothing"
    elif is_live and visit.status != VisitStatus.OPEN:
        yield f"{name} is {offer.status}, but its visit is {visit.status}"
    if is_live != (offer.revision_settled is None) or is_live != (offer.ended_ms is None):
        yield f"{name} is {offer.status}, settled at revision {offer.revision_settled}"
    if offer.status != OfferStatus.WITHDRAWN:
        was_reserved = offer.reserved_ms is not None and offer.lease_until_ms is not None
        if was_reserved == (offer.status == OfferStatus.OPEN):
            yield f"{name} is {offer.status}, reserved at {offer.reserved_ms} until {offer.lease_until_ms}"
    if (offer.status == OfferStatus.FINISHED and not offer.digest) or (is_live and offer.digest):
        yield f"{name} is {offer.status} with the result {offer.outcome or 'none'}"
    yield from revisions(rows, name, offer.revision_created, offer.revision_settled)


def _attempt(attempt: Attempt | None, last: ExternalOffer) -> Iterator[str]:
    name = f"offer {last.number} of v{last.visit}.{last.attempt}"
    if attempt is None:
        yield f"{name} has no attempt"
    elif last.status in LIVE_OFFERS and attempt.status != AttemptStatus.PAUSED:
        yield f"{name} is {last.status}, but its attempt is {attempt.status}"
    elif last.status in (OfferStatus.LAPSED, OfferStatus.WITHDRAWN) and attempt.status == AttemptStatus.PAUSED:
        yield f"{name} is {last.status}, but its attempt is paused"
