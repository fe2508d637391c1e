"""Schedules as they are: the list, one with its next times, and what became of those that have come."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db.models import OuterRef, QuerySet, Subquery

from workflows.clock import database_now_ms, moment
from workflows.definitions.compiler import compiled
from workflows.definitions.timetables import Timetable
from workflows.errors import Refusal
from workflows.models import Run, Schedule, ScheduleFire, Workflow
from workflows.queries.runs import moment_text
from workflows.statuses import FireStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Times that a page shows ahead, and times that have come.
NEXT_TIMES = 5
MOST_FIRES = 50
MOST_LISTED = 500
#: What stands for the value of a sensitive parameter.
HIDDEN = "(hidden)"


def _utc(at: datetime | None) -> str | None:
    return None if at is None else moment_text(at.astimezone(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class FireRow:
    """A time that has come, by the clock of its zone. ``run`` was started, or is why it was skipped; ``run_status`` is
    None for one that was pruned. ``times`` many were missed since ``first_at``."""

    at: datetime
    status: str
    run: int | None = None
    run_status: str | None = None
    code: str = ""
    message: str = ""
    first_at: datetime | None = None
    times: int = 1
    made_up: bool = False
    by: str = ""
    reason: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether more were missed than were counted."""
        return self.times >= 900

    def as_json(self) -> dict[str, Any]:
        return {
            "at": _utc(self.at),
            "status": self.status,
            "run": self.run,
            "run_status": self.run_status,
            "code": self.code,
            "message": self.message,
            "first_at": _utc(self.first_at),
            "times": self.times,
            "by": self.by,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A schedule with its last time. Moments are by the clock of its zone; ``next_at`` None: paused, or never."""

    number: int
    workflow: str
    workflow_title: str
    title: str
    cron: str
    timezone: str
    params: dict[str, Any] = field(repr=False)
    if_running: str
    catch_up: str
    of_file: bool
    position: int
    owner: str
    edition: int
    created_at: datetime
    next_at: datetime | None
    paused_at: datetime | None
    paused_by: str
    paused_reason: str
    removed_at: datetime | None
    removed_by: str
    last: FireRow | None = None

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None

    @property
    def is_removed(self) -> bool:
        return self.removed_at is not None

    @property
    def never_comes(self) -> bool:
        return self.next_at is None and not self.is_paused and not self.is_removed

    @property
    def needs_operator(self) -> bool:
        """Whether its last time was refused."""
        return self.last is not None and self.last.status == FireStatus.REFUSED

    def as_json(self) -> dict[str, Any]:
        return {
            "schedule": self.number,
            "workflow": self.workflow,
            "title": self.title,
            "cron": self.cron,
            "timezone": self.timezone,
            "params": self.params,
            "if_running": self.if_running,
            "catch_up": self.catch_up,
            "from": "file" if self.of_file else "people",
            "owner": self.owner,
            "edition": self.edition,
            "created_at": _utc(self.created_at),
            "next_at": _utc(self.next_at),
            "paused_at": _utc(self.paused_at),
            "paused_by": self.paused_by,
            "paused_reason": self.paused_reason,
            "removed_at": _utc(self.removed_at),
            "last": self.last.as_json() if self.last is not None else None,
        }


def schedule_list(
    user: AbstractUser | AnonymousUser | None = None, *, workflow: str = "", limit: int = MOST_LISTED
) -> list[ScheduleRow]:
    """The schedules that were not removed and that ``user`` may see (None: all), by workflow. Three queries."""
    rows = Schedule.objects.current()
    if user is not None:
        rows = rows.visible_to(user)
    if workflow:
        rows = rows.filter(workflow__name=workflow)
    return _listed(rows.order_by("workflow__name", "-of_file", "position", "pk")[:limit])


def refused_schedules(user: AbstractUser | AnonymousUser, *, limit: int) -> list[ScheduleRow]:
    """The schedules whose last time was refused and that go on, the latest first. Three queries."""
    last = ScheduleFire.objects.filter(schedule=OuterRef("pk")).order_by("-at")
    rows = Schedule.objects.current().visible_to(user).filter(paused_at=None)
    rows = rows.annotate(last_status=Subquery(last.values("status")[:1]), last_at=Subquery(last.values("at")[:1]))
    return _listed(rows.filter(last_status=FireStatus.REFUSED).order_by("-last_at")[:limit])


def schedule_of(number: int, user: AbstractUser | AnonymousUser | None = None) -> ScheduleRow:
    """One schedule, also one that was removed. Raises ``schedule.not_found``, also for what ``user`` may not see."""
    rows = Schedule.objects.filter(pk=number)
    if user is not None:
        rows = rows.visible_to(user)
    found = _listed(rows)
    if not found:
        raise Refusal("schedule.not_found", schedule=number)
    return found[0]


def shown_params(row: ScheduleRow) -> dict[str, Any]:
    """The parameters of a schedule, without the values of those that the current version declares as sensitive."""
    if not row.params:
        return {}
    workflow = Workflow.objects.select_related("current").filter(name=row.workflow).first()
    current = workflow.current if workflow is not None else None
    try:
        declared = compiled(current.hash, current.document).params if current is not None else None
    except Refusal:
        declared = None
    if declared is None:  # which of them are sensitive cannot be known
        return dict.fromkeys(row.params, HIDDEN)
    hidden = {one["name"] for one in declared if one.get("sensitive")}
    return {name: HIDDEN if name in hidden else value for name, value in row.params.items()}


def next_of(row: ScheduleRow, *, count: int = NEXT_TIMES, now: datetime | None = None) -> list[datetime]:
    """The next times of a schedule by the clock of its zone, also while it is paused; none for one that was removed."""
    if row.is_removed:
        return []
    table = Timetable(cron=row.cron, zone=row.timezone)
    after = now or moment(database_now_ms())
    if row.next_at is not None and row.next_at <= after:
        return [row.next_at, *_times(table, after, count - 1)]
    return _times(table, after, count)


def _times(table: Timetable, after: datetime, count: int) -> list[datetime]:
    try:
        return [table.local(at) for at in islice(table.times_after(after), count)]
    except ValueError:  # a zone that this machine does not know
        return []


def fires_of(row: ScheduleRow, *, before: datetime | None = None, limit: int = MOST_FIRES) -> list[FireRow]:
    """What became of the times of a schedule, the latest first. Two queries."""
    rows = ScheduleFire.objects.filter(schedule=row.number)
    if before is not None:
        rows = rows.filter(at__lt=before)
    return _fires(rows.order_by("-at")[:limit], {row.number: Timetable(cron=row.cron, zone=row.timezone)})


def schedule_of_run(run: int) -> int | None:
    """The number of the schedule that started a run; who sees the run sees its schedule's number."""
    started = ScheduleFire.objects.filter(run=run, status=FireStatus.STARTED)
    number: int | None = started.values_list("schedule", flat=True).first()
    return number


def _listed(rows: QuerySet[Schedule]) -> list[ScheduleRow]:
    found = list(rows.select_related("workflow"))
    if not found:
        return []
    zones = {row.pk: Timetable(cron=row.cron, zone=row.timezone) for row in found}
    latest = ScheduleFire.objects.filter(schedule=OuterRef("pk")).order_by("-at").values("pk")[:1]
    last_ones = Schedule.objects.filter(pk__in=list(zones)).annotate(fire=Subquery(latest)).values("fire")
    last = {
        fire.schedule_id: row
        for fire, row in _paired(ScheduleFire.objects.filter(pk__in=last_ones.values("fire")), zones)
    }
    return [_row(row, zones[row.pk], last.get(row.pk)) for row in found]


def _row(row: Schedule, table: Timetable, last: FireRow | None) -> ScheduleRow:
    is_off = row.paused_at is not None or row.removed_at is not None
    return ScheduleRow(
        number=row.pk,
        workflow=row.workflow.name,
        workflow_title=row.workflow.title or row.workflow.name,
        title=row.title,
        cron=row.cron,
        timezone=row.timezone,
        params=json.loads(row.params),
        if_running=row.if_running,
        catch_up=row.catch_up,
        of_file=row.of_file,
        position=row.position,
        owner=row.owner,
        edition=row.edition,
        created_at=row.created_at,
        next_at=None if is_off or row.next_at is None else table.local(row.next_at),
        paused_at=row.paused_at,
        paused_by=row.paused_by,
        paused_reason=row.paused_reason,
        removed_at=row.removed_at,
        removed_by=row.removed_by,
        last=last,
    )


def _fires(rows: Iterable[ScheduleFire], tables: dict[int, Timetable]) -> list[FireRow]:
    return [row for _, row in _paired(rows, tables)]


def _paired(rows: Iterable[ScheduleFire], tables: dict[int, Timetable]) -> list[tuple[ScheduleFire, FireRow]]:
    found = list(rows)
    runs = {fire.run for fire in found if fire.run is not None}
    known = dict(Run.objects.filter(pk__in=runs).values_list("pk", "status")) if runs else {}
    return [(fire, _fire(fire, tables[fire.schedule_id], known)) for fire in found]


def _fire(fire: ScheduleFire, table: Timetable, statuses: dict[int, str]) -> FireRow:
    return FireRow(
        at=table.local(fire.at),
        status=fire.status,
        run=fire.run,
        run_status=statuses.get(fire.run) if fire.run is not None else None,
        code=fire.code,
        message=fire.message,
        first_at=table.local(fire.first_at) if fire.first_at is not None else None,
        times=fire.times,
        made_up=fire.made_up,
        by=fire.by,
        reason=fire.reason,
    )
