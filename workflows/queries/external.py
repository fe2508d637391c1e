"""External work as people see it: what waits in which queue, and which program has what until when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q

from workflows.clock import moment
from workflows.models import ExternalOffer, Run
from workflows.models.external import LIVE_OFFERS
from workflows.statuses import OfferStatus

#: Offers of a visit that a page shows.
MOST_OFFERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """A queue: how much waits in it, since when, and how much programs have."""

    name: str
    open: int
    reserved: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFacts:
    """One offer. ``since`` is when it was offered, ``worker`` the program that has or had it until ``until``."""

    attempt: int
    number: int
    queue: str
    status: str
    since: datetime
    worker: str
    by: str
    reserved_at: datetime | None
    until: datetime | None
    renewals: int
    ended_at: datetime | None
    late_outcome: str

    @property
    def is_open(self) -> bool:
        return self.status == OfferStatus.OPEN

    @property
    def is_reserved(self) -> bool:
        return self.status == OfferStatus.RESERVED


def queues_of(user: Any = None) -> list[QueueFacts]:
    """The queues of the runs that a user may see (None: all) in which there is live work, by name. One query."""
    live = ExternalOffer.objects.filter(status__in=LIVE_OFFERS)
    if user is not None:
        live = live.filter(run__in=Run.objects.visible_to(user))
    is_open = Q(status=OfferStatus.OPEN)
    counted = live.values("queue").order_by("queue")
    rows = counted.annotate(
        waiting=Count("pk", filter=is_open),
        reserved=Count("pk", filter=~is_open),
        oldest=Min("offered_ms", filter=is_open),
    )
    return [
        QueueFacts(name=row["queue"], open=row["waiting"], reserved=row["reserved"], oldest=_moment(row["oldest"]))
        for row in rows
    ]


def offers_of(run_id: int, visit: int) -> list[OfferFacts]:
    """The offers of a visit, the latest first. One query."""
    rows = ExternalOffer.objects.filter(run_id=run_id, visit=visit).order_by("-attempt", "-number")[:MOST_OFFERS]
    return [_facts(row) for row in rows]


def live_offers(run_id: int, visits: Collection[int]) -> dict[int, OfferFacts]:
    """The open or reserved offers of visits. One query at most."""
    if not visits:
        return {}
    rows = ExternalOffer.objects.filter(run_id=run_id, visit__in=visits, status__in=LIVE_OFFERS)
    return {row.visit: _facts(row) for row in rows}


def _facts(row: ExternalOffer) -> OfferFacts:
    too_late = row.status in (OfferStatus.LAPSED, OfferStatus.WITHDRAWN)
    return OfferFacts(
        attempt=row.attempt,
        number=row.number,
        queue=row.queue,
        status=row.status,
        since=moment(row.offered_ms),
        worker=row.worker,
        by=row.reserved_by,
        reserved_at=_moment(row.reserved_ms),
        until=_moment(row.lease_until_ms),
        renewals=row.renewals,
        ended_at=_moment(row.ended_ms),
        late_outcome=row.outcome if too_late else "",
    )


def _moment(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else moment(unix_ms)
