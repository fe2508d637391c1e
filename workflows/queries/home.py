"""What home shows: what waits for the person, what an operator should look at, what goes on, and who works."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Min
from django.utils import timezone

from workflows.clock import database_now_ms, moment
from workflows.conf import conf
from workflows.models import Lease, RunFilter
from workflows.queries.inbox import Inbox, waiting_for
from workflows.queries.run_list import RunRow, counts_by_status, run_page
from workflows.queries.schedules import ScheduleRow, refused_schedules
from workflows.queries.visible import seen_runs
from workflows.statuses import LIVE_STATUSES, RunStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Entries of each list.
MOST_SHOWN = 8
#: How long a failed run stays on home.
LATELY = timedelta(days=1)
#: Heartbeats that may be missed before a worker counts as silent.
_MISSED_BEATS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A process that drives runs. ``is_silent``: heartbeats are missing."""

    name: str
    runs: int
    heartbeat_at: datetime
    since: datetime
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """``waits_for_nobody``: runs could go on, and no worker drives any. ``refused``: schedules whose last time was."""

    inbox: Inbox
    counts: dict[str, int]
    blocked: list[RunRow]
    stalled: list[RunRow]
    failed: list[RunRow]
    live: list[RunRow]
    refused: list[ScheduleRow]
    workers: list[WorkerRow]

    @property
    def waits_for_nobody(self) -> bool:
        return bool(self.stalled) and not self.workers


def home_of(user: AbstractUser | AnonymousUser) -> Home:
    """Home of a person, with nothing of workflows that they do not see. About 25 bounded queries."""
    lately = timezone.now() - LATELY
    going_on = (RunStatus.RUNNING, RunStatus.WAITING, RunStatus.QUEUED)
    return Home(
        inbox=waiting_for(user, limit=MOST_SHOWN),
        counts=counts_by_status(RunFilter(), user),
        blocked=_rows(user, statuses=(RunStatus.BLOCKED,)),
        stalled=_rows(user, is_stalled=True),
        failed=_rows(user, statuses=(RunStatus.FAILED,), ended_from=lately),
        live=_rows(user, statuses=going_on),
        refused=refused_schedules(user, limit=MOST_SHOWN) if user.has_perm("workflows.view_schedule") else [],
        workers=workers(user),
    )


def workers(user: AbstractUser | AnonymousUser) -> list[WorkerRow]:
    """The workers that hold a lease on a run that the person sees, the longest silent first. Two queries."""
    now_ms = database_now_ms()
    leases = Lease.objects.filter(run__in=seen_runs(user).filter(status__in=LIVE_STATUSES), expires_ms__gt=now_ms)
    rows = leases.values("owner").annotate(runs=Count("run"), beat=Max("heartbeat_ms"), first=Min("acquired_ms"))
    silent_ms = conf().heartbeat_ms * _MISSED_BEATS
    return [
        WorkerRow(
            name=row["owner"],
            runs=row["runs"],
            heartbeat_at=moment(row["beat"]),
            since=moment(row["first"]),
            is_silent=now_ms - row["beat"] > silent_ms,
        )
        for row in rows.order_by("beat")
    ]


def _rows(user: AbstractUser | AnonymousUser, **chosen: object) -> list[RunRow]:
    return run_page(RunFilter(**chosen), user, limit=MOST_SHOWN).rows  # type: ignore[arg-type]
