"""A page of the run list, fast however many runs there are (promise WEB.3): pages by keys, bounded counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import IntegerField, Subquery

from workflows.models import Run, RunFilter, Slot
from workflows.models.run_order import RunOrder
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
#: Runs in which one page looks for a part of a title.
MOST_SEARCHED = 20_000
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
    """``newer`` and ``older`` are the numbers to ask ``after`` and ``before`` for the pages beside this one, further up
    and further down by number; in another order than by number they are before and behind it. ``searched_to``: a text
    was looked for in runs down to this number, and ``older`` goes on there."""

    rows: list[RunRow] = field(default_factory=list)
    newer: int | None = None
    older: int | None = None
    searched_to: int | None = None


def run_page(
    wanted: RunFilter,
    user: AbstractUser | AnonymousUser,
    *,
    oldest_first: bool = False,
    order: RunOrder | None = None,
    limit: int = PAGE,
) -> RunPage:
    """One page of the runs that a person sees, the newest first. Two queries, whatever the number of runs, a
    third when some stand in line; in another order than by number one more for the place of a further page.

    With ``after`` alone it is the page that ends just before that number, as for a step back.
    """
    order = order or RunOrder(goes_up=oldest_first)
    goes_on, steps_back = (wanted.after, wanted.before) if order.goes_up else (wanted.before, wanted.after)
    number = goes_on if goes_on is not None else steps_back
    goes_back = goes_on is None and steps_back is not None
    read = order.turned if goes_back else order
    rows = replace(wanted, before=None, after=None).rows(seen_runs(user))
    rows = read.beyond(rows, number) if number is not None else rows
    floor = _floor(wanted, read, number)
    rows = rows.filter(pk__gt=floor) if floor else rows
    found = list(read.sort(rows).select_related("workflow", "plan").only(*_COLUMNS)[: limit + 1])
    has_more = len(found) > limit
    found = found[:limit]
    if goes_back:
        found.reverse()
    if not found:
        return RunPage(older=floor + 1, searched_to=floor + 1) if floor else RunPage()
    is_before, is_behind = (has_more, number is not None) if goes_back else (number is not None, has_more)
    first, last = found[0].pk, found[-1].pk
    if floor and not is_behind:
        last, is_behind = floor + 1, True
    beside = (first if is_before else None, last if is_behind else None)
    newer, older = beside if not order.goes_up else beside[::-1]
    return RunPage(
        rows=_rows(found),
        newer=newer,
        older=older,
        searched_to=floor + 1 if floor and not has_more and not goes_back else None,
    )


def _floor(wanted: RunFilter, read: RunOrder, number: int | None) -> int:
    """No index helps to find a part of a text, so one page looks at so many runs at most; 0: at all that are left."""
    if not wanted.text or read != RunOrder():
        return 0
    floor = (number or newest_number() + 1) - 1 - MOST_SEARCHED
    return floor if floor > 0 and Run.objects.filter(pk__lte=floor).exists() else 0


def newest_number() -> int:
    """The number of the newest run, 0 when there is none. One query."""
    return Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def counts_by_status(wanted: RunFilter, user: AbstractUser | AnonymousUser) -> dict[str, int]:
    """How many runs of each status a filter means, whatever statuses it names; ``MOST_COUNTED`` stands for that many or
    more. Each status is counted up to that number, all of them in one statement; a text is looked for in the newest
    runs only."""
    wanted = replace(wanted, statuses=(), before=None, after=None)
    rows = wanted.rows(seen_runs(user))
    if floor := _floor(wanted, RunOrder(), None):
        rows = rows.filter(pk__gt=floor)
    counts = {f"in_{status}": _Counted(rows.filter(status=status)) for status in RunStatus.values}
    found = Run.objects.order_by().values(**counts)[:1]
    counted: dict[str, int] = next(iter(found), {})
    return {status: counted.get(f"in_{status}", 0) for status in RunStatus.values}


class _Counted(Subquery):
    """The number of rows of a query, up to ``MOST_COUNTED``."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: Any) -> None:
        super().__init__(rows.order_by().values("pk")[:MOST_COUNTED])


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
