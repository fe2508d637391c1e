"""What home shows: what waits for the person, what an operator should look at, what goes on, and who works."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from workflows.models import RunFilter
from workflows.queries.inbox import Inbox, waiting_for
from workflows.queries.run_list import RunRow, counts_by_status, run_page
from workflows.queries.schedules import ScheduleRow, refused_schedules
from workflows.queries.workers import WorkerRow, WorkerState, workers
from workflows.statuses import LIVE_STATUSES, RunStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Entries of each list.
MOST_SHOWN = 8
#: How long a failed run stays on home.
LATELY = timedelta(days=1)


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
        return bool(self.stalled) and not any(row.state is WorkerState.AT_WORK for row in self.workers)


def home_of(user: AbstractUser | AnonymousUser) -> Home:
    """Home of a person, with nothing of workflows that they do not see. About 20 bounded queries; none for a list of
    which the counts say that it is empty."""
    lately = timezone.now() - LATELY
    going_on = (RunStatus.RUNNING, RunStatus.WAITING, RunStatus.QUEUED)
    counts = counts_by_status(RunFilter(), user)
    lives = any(counts[status] for status in LIVE_STATUSES)
    return Home(
        inbox=waiting_for(user, limit=MOST_SHOWN),
        counts=counts,
        blocked=_rows(user, statuses=(RunStatus.BLOCKED,)) if counts[RunStatus.BLOCKED] else [],
        stalled=_rows(user, is_stalled=True) if lives else [],
        failed=_rows(user, statuses=(RunStatus.FAILED,), ended_from=lately) if counts[RunStatus.FAILED] else [],
        live=_rows(user, statuses=going_on) if any(counts[status] for status in going_on) else [],
        refused=refused_schedules(user, limit=MOST_SHOWN) if user.has_perm("workflows.view_schedule") else [],
        workers=[row for row in workers(user) if row.state is not WorkerState.STOPPED],
    )


def _rows(user: AbstractUser | AnonymousUser, **chosen: object) -> list[RunRow]:
    return run_page(RunFilter(**chosen), user, limit=MOST_SHOWN).rows  # type: ignore[arg-type]
