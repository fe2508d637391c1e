"""Firing: what a worker does about the schedules whose time has come (promises SCH.2, SCH.3).

``tick`` claims the times that are due and carries out everything that is open, whoever claimed it. It may be called by
any number of workers at once, as often as they like. A schedule that fails stops no other one, and a time that is
refused stops no later one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from uuid import uuid4

from django.contrib.auth import get_user_model

from workflows.clock import database_now_ms, moment
from workflows.definitions.timetables import Timetable
from workflows.errors import Refusal
from workflows.ledger import scheduling as ledger
from workflows.ledger.scheduling import Due
from workflows.models import Run, Schedule, ScheduleFire
from workflows.operations import runs
from workflows.operations.people import Actor
from workflows.operations.versions import version_definition
from workflows.statuses import CatchUp, FireStatus, IfRunning

logger = logging.getLogger(__name__)

#: A time that nobody noticed for longer than this was missed.
ON_TIME = timedelta(minutes=5)
#: Missed times that ``catch_up: all`` makes up for at most, the latest ones.
MOST_MADE_UP = 100
#: Missed times that are counted at most.
MOST_COUNTED = 1_000
#: How long the open times of a schedule are a worker's. Carrying them out takes far less.
TAKEN = timedelta(minutes=1)
#: Schedules that one tick claims at most.
MOST_AT_ONCE = 200
#: Refusals that say nothing about the schedule: it is tried again with the next tick.
_TRANSIENT = frozenset({"store.contended", "store.unavailable"})
#: Refusals that say that there is no room for the run, as the workflow wants it.
_NO_ROOM = frozenset({"run.concurrency_full"})


def tick(*, now: datetime | None = None) -> int:
    """Claim what is due and carry out what is open; how many runs were started. ``now``: by the database's clock."""
    at = moment(database_now_ms()) if now is None else now
    for schedule in Schedule.objects.due(at)[:MOST_AT_ONCE]:
        _guarded(schedule.pk, partial(claim_due, schedule, now=at))
    open_ = ScheduleFire.objects.filter(settled_at=None).order_by("schedule").values_list("schedule", flat=True)
    return sum(_guarded(number, partial(carry_out, number, now=at)) for number in sorted(set(open_)))


def _guarded(number: int, do: Callable[[], int]) -> int:
    try:
        return do()
    except Exception:
        logger.exception("Schedule %d could not be looked after; it is tried again.", number)
        return 0


# ---- claiming --------------------------------------------------------------------------------------------------------


def claim_due(schedule: Schedule, *, now: datetime) -> bool:
    """Claim every time of a schedule that has come; False when somebody else did."""
    table = Timetable(cron=schedule.cron, zone=schedule.timezone)
    try:
        passed = takewhile(lambda at: at > schedule.handled_until, table.times_before(now))
        times = list(islice(passed, MOST_COUNTED))
        next_at = table.next_after(now)
    except ValueError as error:
        return _claim_unknown(schedule, str(error), now)
    # no time at all: the zone data of this machine is not what it was when the next time was computed
    return ledger.claim(
        schedule=schedule,
        handled_until=times[0] if times else schedule.handled_until,
        next_at=next_at,
        dues=chosen_times(schedule, times, now=now),
        now=now,
    )


def _claim_unknown(schedule: Schedule, message: str, now: datetime) -> bool:
    assert schedule.next_at is not None
    refused = Due(at=schedule.next_at, status=FireStatus.REFUSED, code="schedule.invalid", message=f"{message}.")
    return ledger.claim(schedule=schedule, handled_until=schedule.handled_until, next_at=None, dues=[refused], now=now)


def chosen_times(schedule: Schedule, times: Sequence[datetime], *, now: datetime) -> list[Due]:
    """What is to become of the times that have come, the latest first: which are carried out, which were missed."""
    if not times:
        return []
    is_on_time = now - times[0] <= ON_TIME
    match schedule.catch_up:
        case CatchUp.ALL:
            wanted = times[:MOST_MADE_UP]
        case CatchUp.LAST:
            wanted = times[:1]
        case _:
            wanted = times[:1] if is_on_time else ()
    made_up = schedule.catch_up == CatchUp.ALL and (len(wanted) > 1 or not is_on_time)
    dues = [Due(at=at, status=FireStatus.DUE, made_up=made_up) for at in wanted]
    missed = times[len(wanted) :]
    if missed:
        is_cut = len(times) == MOST_COUNTED
        first = schedule.next_at if is_cut and schedule.next_at is not None else missed[-1]
        dues.append(Due(at=missed[0], status=FireStatus.MISSED, first_at=first, times=len(missed)))
    return dues


# ---- carrying out ----------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One worker's turn with the open times of a schedule. ``waiting`` are those that go on waiting."""

    schedule: Schedule
    token: str
    now: datetime
    waiting: list[ScheduleFire]
    started: int = 0

    def settle(
        self, fire: ScheduleFire, status: FireStatus, *, run: int | None = None, code: str = "", message: str = ""
    ) -> None:
        ledger.settle_fire(
            fire_id=fire.pk, token=self.token, status=status, run=run, code=code, message=message, now=self.now
        )
        self.started += status == FireStatus.STARTED


def carry_out(schedule_id: int, *, now: datetime) -> int:
    """Carry out the open times of a schedule, the earliest first; how many runs were started.

    Times that somebody else carries out at this moment are left to them.
    """
    token = uuid4().hex
    fires = ledger.take_open(schedule_id=schedule_id, token=token, now=now, until=now + TAKEN)
    if not fires:
        return 0
    schedule = Schedule.objects.select_related("workflow__current").get(pk=schedule_id)
    turn = _Turn(schedule=schedule, token=token, now=now, waiting=[])
    try:
        for fire in fires:
            _decide(turn, fire)
    finally:
        ledger.let_wait(token=token, waiting=[fire.pk for fire in turn.waiting])
    return turn.started


def _decide(turn: _Turn, fire: ScheduleFire) -> None:
    """What becomes of one time: it is started, skipped, refused, or waits on."""
    schedule = turn.schedule
    started = Run.objects.filter(workflow=schedule.workflow_id, idempotency_key=key_of(fire)).values("pk").first()
    if started is not None:
        turn.settle(fire, FireStatus.STARTED, run=started["pk"])
        return
    if not fire.by:
        if schedule.removed_at is not None or schedule.paused_at is not None:
            word = "removed" if schedule.removed_at is not None else "paused"
            turn.settle(fire, FireStatus.SKIPPED, code=word, message=f"The schedule was {word} before its turn came.")
            return
        live = live_runs(schedule)
        if live and not _makes_room(turn, fire, live):
            return
    _start(turn, fire)


def live_runs(schedule: Schedule) -> list[int]:
    """The runs of a schedule that have not ended, the oldest first."""
    started = ScheduleFire.objects.filter(schedule=schedule, status=FireStatus.STARTED, run__isnull=False)
    return list(Run.objects.live().filter(pk__in=started.values("run")).order_by("pk").values_list("pk", flat=True))


def _makes_room(turn: _Turn, fire: ScheduleFire, live: list[int]) -> bool:
    """While an earlier run goes on: whether the time may start a run all the same. It never may, so far."""
    if fire.made_up:
        turn.waiting.append(fire)
        return False
    match turn.schedule.if_running:
        case IfRunning.QUEUE:
            first = next((one for one in turn.waiting if not one.made_up), None)
            if first is None:
                turn.waiting.append(fire)
            else:
                turn.settle(
                    fire, FireStatus.SKIPPED, run=live[0], code="waiting", message="An earlier time waits already."
                )
        case IfRunning.CANCEL:
            _take_the_place(turn, fire, live)
        case _:
            turn.settle(fire, FireStatus.SKIPPED, run=live[0], code="running", message="An earlier run goes on.")
    return False


def _take_the_place(turn: _Turn, fire: ScheduleFire, live: list[int]) -> None:
    """Cancel the runs that go on, and wait for their end instead of a time that waited before."""
    for earlier in [one for one in turn.waiting if not one.made_up]:
        turn.waiting.remove(earlier)
        turn.settle(earlier, FireStatus.SKIPPED, run=live[0], code="waiting", message="A later time took its place.")
    try:
        actor = actor_of(turn.schedule)
        for run in live:
            _cancel(run, actor, fire)
    except Refusal as refusal:
        _refused(turn, fire, refusal)
        return
    turn.waiting.append(fire)


def _cancel(run: int, actor: Actor, fire: ScheduleFire) -> None:
    reason = "the next time of its schedule has come"
    try:
        runs.cancel(run, actor=actor, reason=reason, request_id=f"schedule:{fire.pk}")
    except Refusal as refusal:
        if refusal.code != "run.terminal":
            raise


# ---- starting --------------------------------------------------------------------------------------------------------


def _start(turn: _Turn, fire: ScheduleFire) -> None:
    try:
        run = start_run(turn.schedule, fire, actor=actor_of(turn.schedule))
    except Refusal as refusal:
        if refusal.code == "run.key_conflict":  # started, and a new version was published before that was written
            turn.settle(fire, FireStatus.STARTED, run=refusal.data["run"])
        else:
            _refused(turn, fire, refusal)
    except Exception as error:
        logger.exception("Schedule %d could not start a run.", turn.schedule.pk)
        turn.settle(fire, FireStatus.REFUSED, code="internal_error", message=f"{type(error).__name__}; see the log.")
    else:
        turn.settle(fire, FireStatus.STARTED, run=run)


def _refused(turn: _Turn, fire: ScheduleFire, refusal: Refusal) -> None:
    if refusal.code in _TRANSIENT:
        raise refusal
    status = FireStatus.SKIPPED if refusal.code in _NO_ROOM else FireStatus.REFUSED
    turn.settle(fire, status, code=refusal.code, message=told(refusal))


def told(refusal: Refusal) -> str:
    """A refusal in one paragraph, with its first problems."""
    return " ".join([refusal.message, *(f"{one.path}: {one.message}" for one in refusal.problems[:3])])


def start_run(schedule: Schedule, fire: ScheduleFire, *, actor: Actor) -> int:
    """Start the run of a time with the current version of the workflow; its number, also if it was there already.

    Raises what ``operations.runs.start`` raises.
    """
    zone = schedule.timezone
    local = Timetable(cron=schedule.cron, zone=zone).local(fire.at).strftime("%Y-%m-%d %H:%M")
    title = f"{schedule.title}, {local} {zone}" if schedule.title else f"{local} {zone}"
    wish = runs.Start(
        definition=version_definition(schedule.workflow),
        actor=actor,
        given=json.loads(schedule.params),
        title=title,
        key=key_of(fire),
        origin="schedule",
    )
    return runs.start(wish).run_id


def key_of(fire: ScheduleFire) -> str:
    """The idempotency key of the run of a time: of the schedule and the time, or of what a person asked for."""
    if fire.by:
        return f"schedule-{fire.schedule_id}-now-{fire.pk}"
    return f"schedule-{fire.schedule_id}-{fire.at:%Y-%m-%dT%H:%M:%SZ}"


def actor_of(schedule: Schedule) -> Actor:
    """Who starts the runs of a schedule: its owner, through it. What a person made needs their permissions, as they
    are at that time. Raises ``user.not_found`` for one who has gone."""
    recorded = f"{schedule.owner} (schedule {schedule.pk})"
    if not schedule.owner_is_user:
        return Actor(name=schedule.owner, recorded=recorded)
    user = get_user_model()._default_manager.filter(username=schedule.owner, is_active=True).first()
    if user is None:
        raise Refusal("user.not_found", user=schedule.owner, advice="Whoever changes the schedule becomes its owner.")
    return Actor(name=schedule.owner, recorded=recorded, user=user)


# ---- keeping ---------------------------------------------------------------------------------------------------------


def keep_up() -> int:
    """Compute the next times anew, for zone data that has changed, and delete old settled times; how many changed."""
    changed = 0
    for schedule in Schedule.objects.current().filter(paused_at=None).order_by("pk"):
        next_at = ledger.next_time(schedule.cron, schedule.timezone, schedule.handled_until)
        if next_at != schedule.next_at:
            changed += ledger.recount(schedule=schedule, next_at=next_at)
    for number in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        ledger.trim_fires(schedule_id=number)
    return changed
