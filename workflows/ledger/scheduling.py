"""Schedules: made, changed, paused, removed; their times claimed, carried out and settled (promises SCH).

The times of a schedule until ``handled_until`` are dealt with. Whoever finds the next one due claims it with everything
that passed meanwhile: a compare-and-swap moves ``handled_until`` on, and rows of ``ScheduleFire`` say what is to
become of each time, in the same transaction. Rows without ``settled_at`` are open: one worker at a time takes all open
ones of a schedule, for a while, and settles them. A run is started under a key that is made of the schedule and the
time, so whoever dies between the claim, the start and the settlement leaves something that is done again and has an
effect once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from workflows.definitions.timetables import Timetable
from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Schedule, ScheduleFire
from workflows.statuses import FireStatus

#: Settled times that are kept of each schedule.
KEPT_FIRES = 1_000
_DELETED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a schedule says. ``params`` is canonical JSON."""

    cron: str
    timezone: str
    params: str
    if_running: str
    catch_up: str
    title: str = ""

    def columns(self) -> dict[str, Any]:
        return {
            "cron": self.cron,
            "timezone": self.timezone,
            "params": self.params,
            "if_running": self.if_running,
            "catch_up": self.catch_up,
            "title": self.title,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who changes a schedule and when. ``name`` becomes the owner, ``recorded`` is what the audit keeps."""

    name: str
    recorded: str
    now: datetime
    is_user: bool = False


def next_time(cron: str, timezone: str, after: datetime) -> datetime | None:
    """The first time after ``after``; None when none comes, or none can be computed with this machine's zone data."""
    try:
        return Timetable(cron=cron, zone=timezone).next_after(after)
    except ValueError:
        return None


# ---- by people -------------------------------------------------------------------------------------------------------


@ledger_transaction
def create_schedule(*, workflow_id: int, workflow: str, terms: Terms, by: By) -> int:
    """Make a schedule that belongs to a person; its first time is the first one after now. Audited. Its number."""
    row = Schedule.objects.create(
        workflow_id=workflow_id,
        owner=by.name,
        owner_is_user=by.is_user,
        created_at=by.now,
        handled_until=by.now,
        next_at=next_time(terms.cron, terms.timezone, by.now),
        **terms.columns(),
    )
    _audit("schedule.add", row.pk, workflow, by, data={"cron": terms.cron, "timezone": terms.timezone})
    return int(row.pk)


@ledger_transaction
def change_schedule(*, schedule_id: int, edition: int, terms: Terms, by: By) -> None:
    """Change what a schedule of a person says; who changes it becomes its owner. Audited.

    Times before now are dealt with: what was due under the old terms and not claimed yet is gone. Loses with
    ``schedule.not_found``, ``schedule.of_file``, ``schedule.conflict`` (changed since ``edition``).
    """
    row = _own(schedule_id)
    _refuse_unless(row.edition == edition, row)
    columns = terms.columns() | {
        "owner": by.name,
        "owner_is_user": by.is_user,
        "handled_until": by.now,
        "next_at": next_time(terms.cron, terms.timezone, by.now),
    }
    _change(row, columns)
    _audit("schedule.change", row.pk, row.workflow.name, by, data={"cron": terms.cron, "timezone": terms.timezone})


@ledger_transaction
def pause_schedule(*, schedule_id: int, by: By, reason: str) -> bool:
    """Let no time of a schedule start a run until it is resumed; False when it is paused already. Audited.

    Loses with ``schedule.not_found``, ``schedule.conflict``.
    """
    row = _current(schedule_id)
    if row.paused_at is not None:
        return False
    _change(row, {"paused_at": by.now, "paused_by": by.recorded[:200], "paused_reason": reason})
    _audit("schedule.pause", row.pk, row.workflow.name, by, reason=reason)
    return True


@ledger_transaction
def resume_schedule(*, schedule_id: int, by: By, reason: str) -> bool:
    """Let a schedule go on with its first time after now; False when it is not paused. Audited.

    What passed while it was paused was not wanted: it is neither made up for nor missed. Loses with
    ``schedule.not_found``, ``schedule.conflict``.
    """
    row = _current(schedule_id)
    if row.paused_at is None:
        return False
    columns = {
        "paused_at": None,
        "paused_by": "",
        "paused_reason": "",
        "handled_until": by.now,
        "next_at": next_time(row.cron, row.timezone, by.now),
    }
    _change(row, columns)
    _audit("schedule.resume", row.pk, row.workflow.name, by, reason=reason)
    return True


@ledger_transaction
def remove_schedule(*, schedule_id: int, by: By, reason: str) -> None:
    """Remove a schedule of a person; what became of its times stays. Audited.

    Loses with ``schedule.not_found``, ``schedule.of_file``, ``schedule.conflict``.
    """
    row = _own(schedule_id)
    _change(row, _removed(by.now, by.recorded))
    _audit("schedule.delete", row.pk, row.workflow.name, by, reason=reason)


def _removed(now: datetime, who: str) -> dict[str, Any]:
    return {"removed_at": now, "removed_by": who[:200], "next_at": None}


def _current(schedule_id: int) -> Schedule:
    """The row, locked where the database locks rows. Raises ``schedule.not_found``."""
    rows = Schedule.objects.current().filter(pk=schedule_id).select_related("workflow")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    row: Schedule | None = rows.first()
    if row is None:
        raise Refusal("schedule.not_found", schedule=schedule_id)
    return row


def _own(schedule_id: int) -> Schedule:
    row = _current(schedule_id)
    if row.of_file:
        raise Refusal("schedule.of_file", schedule=schedule_id, workflow=row.workflow.name)
    return row


def _change(row: Schedule, columns: Mapping[str, Any]) -> None:
    _refuse_unless(Schedule.objects.change(schedule=row, **columns), row)


def _refuse_unless(holds: bool, row: Schedule) -> None:
    if not holds:
        raise Refusal("schedule.conflict", schedule=row.pk)


def _audit(
    action: str, number: int, workflow: str, by: By, *, reason: str = "", data: Mapping[str, Any] | None = None
) -> None:
    record_audit(
        actor=by.recorded,
        action=action,
        at=by.now,
        workflow=workflow,
        reason=reason,
        data={"schedule": number, **(data or {})},
    )


# ---- by the worker ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is to become of a time, or of many that were missed. ``is_open``: it is to be carried out;
    ``made_up``: it is one of those that ``catch_up: all`` makes up for, each in its turn."""

    at: datetime
    status: FireStatus
    first_at: datetime | None = None
    times: int = 1
    made_up: bool = False
    code: str = ""
    message: str = ""


@ledger_transaction
def claim(
    *, schedule: Schedule, handled_until: datetime, next_at: datetime | None, dues: Sequence[Due], now: datetime
) -> bool:
    """Deal with the times of a schedule until ``handled_until``; False when somebody else did, or it changed.

    1. The schedule moves on, guarded by the next time and the edition that were read.
    2. A row for each time that is to be carried out, and one for those that were missed.
    """
    if not Schedule.objects.advance(schedule=schedule, handled_until=handled_until, next_at=next_at):
        return False
    open_ = (FireStatus.DUE, FireStatus.WAITING)
    rows = [
        ScheduleFire(
            schedule_id=schedule.pk,
            at=due.at,
            first_at=due.first_at,
            times=due.times,
            status=due.status,
            made_up=due.made_up,
            code=due.code,
            message=due.message,
            recorded_at=now,
            settled_at=None if due.status in open_ else now,
        )
        for due in dues
    ]
    ScheduleFire.objects.bulk_create(rows, ignore_conflicts=True)
    return True


@ledger_transaction
def record_at_once(*, schedule_id: int, by: By, reason: str, request_id: str, taken_until: datetime) -> ScheduleFire:
    """Note that a person starts a run of a schedule now, and take it. The same request again finds the first.

    Audited. Loses with ``schedule.not_found``.
    """
    row = _current(schedule_id)
    known: ScheduleFire | None = ScheduleFire.objects.filter(schedule=row, request_id=request_id).first()
    if known is not None:
        return known
    fire: ScheduleFire = ScheduleFire.objects.create(
        schedule=row,
        at=by.now,
        status=FireStatus.DUE,
        by=by.recorded[:200],
        reason=reason,
        request_id=request_id,
        recorded_at=by.now,
        taken_until=taken_until,
        token=request_id,
    )
    _audit("schedule.run_now", row.pk, row.workflow.name, by, reason=reason)
    return fire


@ledger_transaction
def take_open(*, schedule_id: int, token: str, now: datetime, until: datetime) -> list[ScheduleFire]:
    """Take all open times of a schedule until ``until``, the earliest first; none while somebody else has one."""
    _lock(schedule_id)
    rows = list(ScheduleFire.objects.filter(schedule=schedule_id, settled_at=None).order_by("at"))
    if any(row.taken_until is not None and row.taken_until > now for row in rows):
        return []
    ScheduleFire.objects.filter(pk__in=[row.pk for row in rows]).update(token=token, taken_until=until)
    return rows


def _lock(schedule_id: int) -> None:
    if connection.features.has_select_for_update:
        Schedule.objects.select_for_update().filter(pk=schedule_id).first()


@ledger_transaction
def settle_fire(
    *,
    fire_id: int,
    token: str,
    status: FireStatus,
    now: datetime,
    run: int | None = None,
    code: str = "",
    message: str = "",
) -> bool:
    """Say what became of a time; False when somebody else has taken it since, or said it.

    That a run was started is true whoever says it, and whatever was said before: the run is there.
    """
    if status == FireStatus.STARTED:
        mine = ScheduleFire.objects.filter(pk=fire_id).exclude(status__in=(FireStatus.STARTED, FireStatus.MISSED))
    else:
        mine = ScheduleFire.objects.filter(pk=fire_id, token=token, settled_at=None)
    columns = {"status": status, "run": run, "code": code, "message": message[:2_000], "settled_at": now}
    return bool(mine.update(**columns, token="", taken_until=None))


@ledger_transaction
def let_wait(*, token: str, waiting: Iterable[int]) -> None:
    """Give back what was taken under ``token`` and is not settled; those of ``waiting`` wait for an earlier run."""
    mine = ScheduleFire.objects.filter(token=token, settled_at=None)
    mine.filter(pk__in=list(waiting)).update(status=FireStatus.WAITING)
    mine.update(token="", taken_until=None)


@ledger_transaction
def recount(*, schedule: Schedule, next_at: datetime | None) -> bool:
    """Correct the next time of a schedule, after the zone data of the machine changed; False when it moved on."""
    return Schedule.objects.advance(schedule=schedule, handled_until=schedule.handled_until, next_at=next_at)


@ledger_transaction
def trim_fires(*, schedule_id: int, keep: int = KEPT_FIRES) -> int:
    """Delete the oldest settled times of a schedule but the newest ``keep``; how many, at most 5 000 at once."""
    settled = ScheduleFire.objects.filter(schedule=schedule_id, settled_at__isnull=False).order_by("-at", "-pk")
    old = list(settled.values_list("pk", flat=True)[keep : keep + _DELETED_AT_ONCE])
    ScheduleFire.objects.filter(pk__in=old).delete()
    return len(old)
