"""Schedules: made, changed, paused, resumed, removed, started at once, by whoever may (promises SCH, WEB.2)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from workflows.clock import database_now_ms, moment
from workflows.definitions.parameters import check_parameters
from workflows.definitions.timetables import Timetable
from workflows.definitions.validation.schedules import cron_problem, zone_problem
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import canonical, check_storable
from workflows.ledger import scheduling as ledger
from workflows.ledger.scheduling import By, Terms
from workflows.models import Schedule, ScheduleFire, Workflow
from workflows.operations.access import require
from workflows.operations.firing import start_run, told
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.operations.versions import version_definition
from workflows.statuses import CatchUp, FireStatus, IfRunning

MOST_TITLE = 200
MOST_CRON = 500
MOST_KEY = 64
#: Times that a preview shows.
NEXT_TIMES = 5
#: How long a start at once is its maker's before a worker carries it out, for the case that the maker died.
_TAKEN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A schedule as a person wants it. ``from_text`` names parameters that are text yet to be converted."""

    cron: str
    timezone: str = "UTC"
    params: Mapping[str, Any] = field(default_factory=dict)
    from_text: Collection[str] = ()
    if_running: str = IfRunning.SKIP
    catch_up: str = CatchUp.LAST
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedAtOnce:
    """``created`` False: the same request had started it already."""

    run_id: int
    created: bool


def create(workflow: str, wish: Wish, *, actor: Actor) -> int:
    """Make a schedule of a workflow; its number. Whoever makes it owns it, and starts its runs.

    Raises ``access.denied``, ``workflow.not_found``, ``schedule.invalid``, ``input.invalid``.
    """
    require(actor, "add_schedule", workflow=workflow)
    require(actor, "start_run", workflow=workflow, action="schedule.add")
    row = _workflow(workflow)
    terms = checked_terms(row, wish)
    return ledger.create_schedule(workflow_id=row.pk, workflow=row.name, terms=terms, by=_by(actor))


def change(number: int, wish: Wish, *, edition: int, actor: Actor) -> None:
    """Change a schedule that a person made; who changes it owns it from then on. ``edition`` is the one they saw.

    Raises ``access.denied``, ``schedule.not_found``, ``schedule.of_file``, ``schedule.conflict``, ``schedule.invalid``.
    """
    row = _required(number, "change_schedule", actor)
    require(actor, "start_run", workflow=row.workflow.name, action="schedule.change")
    if row.of_file:
        raise Refusal("schedule.of_file", schedule=number, workflow=row.workflow.name)
    terms = checked_terms(row.workflow, wish)
    ledger.change_schedule(schedule_id=number, edition=edition, terms=terms, by=_by(actor))


def pause(number: int, *, actor: Actor, reason: str = "") -> bool:
    """Let no time of a schedule start a run; False when it is paused already.

    Raises ``access.denied``, ``schedule.not_found``, ``schedule.conflict``, ``input.invalid``.
    """
    _required(number, "pause_schedule", actor)
    return ledger.pause_schedule(schedule_id=number, by=_by(actor), reason=checked_reason(reason))


def resume(number: int, *, actor: Actor, reason: str = "") -> bool:
    """Let a paused schedule go on with its first time after now; False when it is not paused.

    Raises what ``pause`` raises.
    """
    _required(number, "pause_schedule", actor, action="schedule.resume")
    return ledger.resume_schedule(schedule_id=number, by=_by(actor), reason=checked_reason(reason))


def remove(number: int, *, actor: Actor, reason: str = "") -> None:
    """Remove a schedule that a person made. Its runs, and what became of its times, stay.

    Raises ``access.denied``, ``schedule.not_found``, ``schedule.of_file``, ``schedule.conflict``.
    """
    _required(number, "delete_schedule", actor)
    ledger.remove_schedule(schedule_id=number, by=_by(actor), reason=checked_reason(reason))


def run_now(number: int, *, actor: Actor, reason: str, request_id: str = "") -> StartedAtOnce:
    """Start a run as the schedule would, now, whatever runs and also while it is paused. A reason is needed.

    The run is the actor's. The same request again finds the run. Raises ``access.denied``, ``schedule.not_found``,
    ``input.invalid`` and what a start raises; that it was refused is kept beside the times of the schedule.
    """
    row = _required(number, "start_run", actor, action="schedule.run_now")
    because = checked_reason(reason, needed_for="Running a schedule now")
    if len(request_id) > MOST_KEY or not request_id.isprintable():
        raise Refusal("input.invalid", reason=f"A request id has at most {MOST_KEY} printable characters.")
    token, by = request_id or uuid.uuid4().hex, _by(actor)
    fire = ledger.record_at_once(
        schedule_id=number, by=by, reason=because, request_id=token, taken_until=by.now + _TAKEN
    )
    if fire.status == FireStatus.STARTED and fire.run is not None:
        return StartedAtOnce(run_id=fire.run, created=False)
    return StartedAtOnce(run_id=_started(row, fire, actor, token), created=True)


def _started(row: Schedule, fire: ScheduleFire, actor: Actor, token: str) -> int:
    try:
        run = start_run(row, fire, actor=actor)
    except Refusal as refusal:
        ledger.settle_fire(
            fire_id=fire.pk,
            token=token,
            status=FireStatus.REFUSED,
            now=_now(),
            code=refusal.code,
            message=told(refusal),
        )
        raise
    ledger.settle_fire(fire_id=fire.pk, token=token, status=FireStatus.STARTED, now=_now(), run=run)
    return run


def next_times(cron: str, timezone: str, *, after: datetime | None = None, count: int = NEXT_TIMES) -> list[datetime]:
    """The next times of a timetable, in its zone. Raises ``schedule.invalid``."""
    problems = timetable_problems(cron, timezone)
    if problems:
        raise Refusal("schedule.invalid", count=len(problems), problems=tuple(problems))
    table = Timetable(cron=" ".join(cron.split()), zone=timezone)
    return [table.local(at) for at in islice(table.times_after(after or _now()), count)]


def timetable_problems(cron: str, timezone: str) -> list[Problem]:
    """What is wrong with the times of a schedule: E504, E505."""
    if len(cron) > MOST_CRON:
        cron = cron[:MOST_CRON] + "…"
    found = (cron_problem(cron, "cron"), zone_problem(timezone, "timezone"))
    return [problem for problem in found if problem is not None]


def checked_terms(workflow: Workflow, wish: Wish) -> Terms:
    """What a person wants, checked against the current version. Raises ``schedule.invalid``, ``input.invalid``,
    ``plan.no_such_version``."""
    title = wish.title.strip()
    if len(title) > MOST_TITLE or not title.isprintable() or check_storable(title, "title"):
        raise Refusal("input.invalid", reason=f"The title has at most {MOST_TITLE} characters that can be shown.")
    for value, words, name in (
        (wish.if_running, IfRunning.values, "if_running"),
        (wish.catch_up, CatchUp.values, "catch_up"),
    ):
        if value not in words:
            raise Refusal("input.invalid", reason=f'"{value[:40]}" is no value of {name}: {", ".join(words)}.')
    problems = timetable_problems(wish.cron, wish.timezone)
    plan = version_definition(workflow).plan
    checked = check_parameters(plan.params, wish.params, from_text=wish.from_text)
    problems += checked.problems
    if problems:
        raise Refusal("schedule.invalid", count=len(problems), problems=tuple(problems))
    given = {name: value for name, value in checked.values.items() if name in wish.params}
    return Terms(
        cron=" ".join(wish.cron.split()),
        timezone=wish.timezone,
        params=canonical(given),
        if_running=wish.if_running,
        catch_up=wish.catch_up,
        title=title,
    )


def _workflow(name: str) -> Workflow:
    row: Workflow | None = Workflow.objects.filter(name=name, current__isnull=False).first()
    if row is None:
        raise Refusal("workflow.not_found", name=name, suggestion="Publish it first.")
    return row


def _required(number: int, permission: str, actor: Actor, *, action: str = "") -> Schedule:
    """The schedule, for who may do this to it. Raises ``schedule.not_found`` also for what they cannot see."""
    row: Schedule | None = Schedule.objects.current().select_related("workflow__current").filter(pk=number).first()
    if row is None:
        raise Refusal("schedule.not_found", schedule=number)
    try:
        require(actor, permission, workflow=row.workflow.name, action=action)
    except Refusal as refusal:
        if refusal.code != "workflow.not_found":
            raise
        raise Refusal("schedule.not_found", schedule=number) from None
    return row


def _by(actor: Actor) -> By:
    return By(name=actor.name, recorded=actor.recorded, now=_now(), is_user=actor.user is not None)


def _now() -> datetime:
    return moment(database_now_ms())
