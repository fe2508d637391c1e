"""Verbs of schedules in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from tests.attacks.verbs import Call, attacked, fresh
from tests.support.plans import START, store_plan, workflow
from workflows.ledger import publishing, scheduling
from workflows.ledger.scheduling import By, Due, Terms
from workflows.models import Schedule, ScheduleFire, Workflow
from workflows.statuses import CatchUp, FireStatus, IfRunning

BY = By(name="ann", recorded="ann", now=START)
TERMS = Terms(cron="0 * * * *", timezone="UTC", params="{}", if_running=IfRunning.SKIP, catch_up=CatchUp.LAST)
HOUR = timedelta(hours=1)


def _text(name: str, cron: str) -> str:
    step = "  - { id: work, kind: shell, run: x }"
    return workflow(step, before=f'schedule: [ {{ cron: "{cron}" }}, {{ cron: "5 * * * *" }} ]', name=name)


def _schedule() -> Schedule:
    name = fresh()
    store_plan(workflow("  - { id: work, kind: shell, run: x }", name=name), private=False)
    row = Workflow.objects.get(name=name)
    number = scheduling.create_schedule(workflow_id=row.pk, workflow=name, terms=TERMS, by=BY)
    found: Schedule = Schedule.objects.get(pk=number)
    return found


def _claimed() -> tuple[Schedule, ScheduleFire]:
    schedule = _schedule()
    due = Due(at=START, status=FireStatus.DUE)
    scheduling.claim(schedule=schedule, handled_until=START, next_at=START + HOUR, dues=[due], now=START)
    return schedule, ScheduleFire.objects.get(schedule=schedule)


@attacked(publishing.publish_plan)
def publishes_a_version_with_other_schedules() -> Call:
    name = fresh()
    store_plan(_text(name, "0 1 * * *"), private=False)
    return partial(store_plan, _text(name, "0 2 * * *"), private=False)


@attacked(scheduling.create_schedule)
def makes_a_schedule() -> Call:
    row = _schedule().workflow
    return partial(scheduling.create_schedule, workflow_id=row.pk, workflow=row.name, terms=TERMS, by=BY)


@attacked(scheduling.change_schedule)
def changes_a_schedule() -> Call:
    return partial(scheduling.change_schedule, schedule_id=_schedule().pk, edition=1, terms=TERMS, by=BY)


@attacked(scheduling.pause_schedule)
def pauses_a_schedule() -> Call:
    return partial(scheduling.pause_schedule, schedule_id=_schedule().pk, by=BY, reason="why")


@attacked(scheduling.resume_schedule)
def resumes_a_schedule() -> Call:
    number = _schedule().pk
    scheduling.pause_schedule(schedule_id=number, by=BY, reason="why")
    return partial(scheduling.resume_schedule, schedule_id=number, by=BY, reason="why")


@attacked(scheduling.remove_schedule)
def removes_a_schedule() -> Call:
    return partial(scheduling.remove_schedule, schedule_id=_schedule().pk, by=BY, reason="why")


@attacked(scheduling.claim)
def claims_times_of_a_schedule() -> Call:
    dues = [Due(at=START, status=FireStatus.DUE), Due(at=START - HOUR, status=FireStatus.MISSED, times=3)]
    return partial(
        scheduling.claim, schedule=_schedule(), handled_until=START, next_at=START + HOUR, dues=dues, now=START
    )


@attacked(scheduling.record_at_once)
def notes_a_start_at_once() -> Call:
    return partial(
        scheduling.record_at_once,
        schedule_id=_schedule().pk,
        by=BY,
        reason="why",
        request_id="r",
        taken_until=START + HOUR,
    )


@attacked(scheduling.take_open)
def takes_open_times() -> Call:
    schedule, _ = _claimed()
    return partial(scheduling.take_open, schedule_id=schedule.pk, token="t", now=START, until=START + HOUR)


@attacked(scheduling.settle_fire)
def settles_a_time() -> Call:
    _, fire = _claimed()
    return partial(scheduling.settle_fire, fire_id=fire.pk, token="", status=FireStatus.SKIPPED, now=START)


@attacked(scheduling.let_wait)
def lets_a_time_wait() -> Call:
    schedule, fire = _claimed()
    scheduling.take_open(schedule_id=schedule.pk, token="t", now=START, until=START + HOUR)
    return partial(scheduling.let_wait, token="t", waiting=[fire.pk])


@attacked(scheduling.recount)
def recounts_a_schedule() -> Call:
    return partial(scheduling.recount, schedule=_schedule(), next_at=START + 3 * HOUR)


@attacked(scheduling.trim_fires)
def trims_old_times() -> Call:
    schedule, fire = _claimed()
    scheduling.settle_fire(fire_id=fire.pk, token="", status=FireStatus.SKIPPED, now=START)
    return partial(scheduling.trim_fires, schedule_id=schedule.pk, keep=0)
