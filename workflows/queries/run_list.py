"""A page of the run list, fast however many runs there are (promise WEB.3): pages by number, bounded counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Count

from workflows.models import Run, RunFilter, Slot
from workflows.queries.runs import run_error
from workflows.queries.visible import seen_runs
from workflows.queries.waiting import LATER, starts_later
from workflows.statuses import RunStatus, SlotKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

PAGE = 50
#: A count is exact below this number and "1 000+" from there.
MOST_COUNTED = 1_000
MOST_MESSAGE = 200
#: The cause of a run that has no slot of its concurrency key yet; it has no reason of its own.
IN_LINE = "concurrency"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as a list shows it. ``causes`` are what it waits for; ``took`` is its length, None while it lives."""

    number: int
    workflow: str
    workflow_title: str
    version: int | None
    title: str
    status: str
    causes: tuple[str, ...]
    is_held: bool
    started_by: str
    origin: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    took: timedelta | None
    error: Mapping[str, Any] | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """``newer`` and ``older`` are the numbers to ask ``after`` and ``before`` for the pages beside this one."""

    rows: list[RunRow] = field(default_factory=list)
    newer: int | None = None
    older: int | None = None


def run_page(
    wanted: RunFilter, user: AbstractUser | AnonymousUser, *, oldest_first: bool = False, limit: int = PAGE
) -> RunPage:
    """One page of the runs that a person sees, the newest first. Two queries, whatever the number of runs, a
    third when some stand in line.

    With ``after`` alone it is the page that ends just before that number, as for a step back.
    """
    rows = wanted.rows(seen_runs(user)).select_related("workflow", "plan").only(*_COLUMNS)
    goes_up = oldest_first if wanted.after is None and wanted.before is None else wanted.after is not None
    found = list(rows.order_by("pk" if goes_up else "-pk")[: limit + 1])
    has_more = len(found) > limit
    found = found[:limit]
    if goes_up != oldest_first:
        found.reverse()
    if not found:
        return RunPage()
    highest, lowest = max(run.pk for run in found), min(run.pk for run in found)
    came_from = wanted.before is not None or wanted.after is not None
    is_beyond_up, is_beyond_down = (has_more, came_from) if goes_up else (came_from, has_more)
    return RunPage(
        rows=_rows(found),
        newer=highest if is_beyond_up else None,
        older=lowest if is_beyond_down else None,
    )


def newest_number() -> int:
    """The number of the newest run, 0 when there is none. One query."""
    return Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def counts_by_status(wanted: RunFilter, user: AbstractUser | AnonymousUser) -> dict[str, int]:
    """How many runs of each status a filter means, whatever statuses it names; ``MOST_COUNTED`` stands for that many or
    more. Without a filter each status is counted in its index up to that number; with one, all in a single pass."""
    wanted = replace(wanted, statuses=(), before=None, after=None)
    rows = wanted.rows(seen_runs(user))
    if wanted.is_empty:
        return {status: _bounded(rows.filter(status=status)) for status in RunStatus.values}
    found = dict(rows.order_by().values_list("status").annotate(count=Count("pk")))
    return {status: min(found.get(status, 0), MOST_COUNTED) for status in RunStatus.values}


def _bounded(rows: Any) -> int:
    return int(rows.order_by()[:MOST_COUNTED].count())


_COLUMNS = (
    "status", "reasons", "held", "title", "started_by", "origin", "created_at", "started_at", "ended_at", "error",
    "start_at_ms", "closing",
    "parent_run", "concurrency_max", "workflow__name", "workflow__title", "plan__version",
)  # fmt: skip


def _rows(found: list[Run]) -> list[RunRow]:
    """A further query when one of the runs may stand in line."""
    maybe = [run.pk for run in found if run.concurrency_max and run.status in (RunStatus.QUEUED, RunStatus.BLOCKED)]
    waiting = (
        Slot.objects.filter(run__in=maybe, kind=SlotKind.CONCURRENCY, number=None) if maybe else Slot.objects.none()
    )
    in_line = set(waiting.values_list("run_id", flat=True))
    return [_row(run, _more_causes(run, in_line)) for run in found]


def _more_causes(run: Run, in_line: set[int]) -> tuple[str, ...]:
    if starts_later(run):
        return (LATER,)
    return (IN_LINE,) if run.pk in in_line else ()


def _row(run: Run, more_causes: tuple[str, ...]) -> RunRow:
    error = run_error(run.error)
    if error is not None:
        error["message"] = (error.get("message") or "")[:MOST_MESSAGE]
    return RunRow(
        number=run.pk,
        workflow=run.workflow.name,
        workflow_title=run.workflow.title,
        version=run.plan.version,
        title=run.title,
        status=run.status,
        causes=(*more_causes, *dict.fromkeys(reason.get("cause", "") for reason in json.loads(run.reasons))),
        is_held=bool(run.held),
        started_by=run.started_by,
        origin=run.origin,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        took=run.ended_at - (run.started_at or run.created_at) if run.ended_at is not None else None,
        error=error,
        parent=run.parent_run_id,
    )
