"""What a worker does when a schedule is due: one run for each time, whatever goes on, and whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from tests.schedules.times import at
from tests.schedules.world import (
    BEGIN,
    HOUR,
    SHELL,
    fires,
    hourly,
    person,
    published,
    runs,
    statuses,
    the_schedule,
    tick_at,
)
from tests.support.kinds import bad
from tests.support.players import play
from workflows.errors import Refusal
from workflows.ledger import scheduling
from workflows.models import AuditEntry, ControlMessage, Run, Schedule, ScheduleFire
from workflows.operations import firing
from workflows.operations import runs as run_operations
from workflows.operations import schedules as operation
from workflows.operations.firing import carry_out, claim_due, keep_up, tick
from workflows.operations.schedules import Wish
from workflows.statuses import FIRE_MOVES, FireStatus

pytestmark = pytest.mark.django_db(transaction=True)


def ended(run: int) -> int:
    play(run)
    assert Run.objects.get(pk=run).status == "succeeded"
    return run


# ---- one time --------------------------------------------------------------------------------------------------------


def test_a_time_that_has_come_starts_one_run() -> None:
    """SCH.2"""
    schedule = hourly()
    assert schedule.next_at == at("2026-01-31 10:00")
    assert tick_at("2026-01-31 09:59") == 0
    assert tick_at("2026-01-31 10:00") == 1
    assert tick_at("2026-01-31 10:00") == 0
    run = Run.objects.get()
    assert (run.origin, run.started_by, run.title) == ("schedule", "ann", "2026-01-31 10:00 UTC")
    assert run.idempotency_key == f"schedule-{schedule.pk}-2026-01-31T10:00:00Z"
    assert fires() == [("10:00", "started", run.pk)]
    schedule.refresh_from_db()
    assert (schedule.handled_until, schedule.next_at) == (at("2026-01-31 10:00"), at("2026-01-31 11:00"))
    entry = AuditEntry.objects.get(action="run.start")
    assert (entry.actor, entry.run) == (f"ann (schedule {schedule.pk})", run.pk)


def test_parameters_of_the_schedule_are_those_of_the_run() -> None:
    """SCH.2"""
    published('cron: "0 * * * *", params: { region: eu }', params="{ region: { type: string } }")
    tick_at("2026-01-31 10:00")
    run = Run.objects.select_related("plan").get()
    assert Run.objects.filter(params_digest=run.params_digest).count() == 1
    assert the_schedule().params == '{"region":"eu"}'


# ---- who dies --------------------------------------------------------------------------------------------------------


def test_who_dies_between_the_claim_and_the_start_leaves_one_run_to_the_next_tick() -> None:
    """SCH.2"""
    schedule = hourly()
    now = at("2026-01-31 10:00")
    assert claim_due(schedule, now=now)
    assert not claim_due(schedule, now=now), "it is claimed"
    assert (statuses(), runs()) == (["due"], [])
    assert tick(now=now) == 1
    assert (statuses(), len(runs())) == (["started"], 1)


def test_who_dies_with_what_it_took_keeps_others_away_for_a_minute() -> None:
    """SCH.2"""
    schedule = hourly()
    now = at("2026-01-31 10:00")
    claim_due(schedule, now=now)
    scheduling.take_open(schedule_id=schedule.pk, token="dead", now=now, until=now + firing.TAKEN)
    assert tick(now=now + timedelta(seconds=59)) == 0
    assert tick(now=now + timedelta(seconds=60)) == 1
    assert statuses() == ["started"]


def test_who_dies_between_the_start_and_its_record_leaves_no_second_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCH.2"""
    schedule = hourly()
    now = at("2026-01-31 10:00")
    claim_due(schedule, now=now)
    [fire] = ScheduleFire.objects.all()
    run = firing.start_run(schedule, fire, actor=firing.actor_of(schedule))
    published('cron: "0 * * * *"', step="  - { id: other, kind: shell, run: y }")
    tick(now=now)
    assert fires() == [("10:00", "started", run)]
    assert runs() == [run]


def test_a_start_that_is_slower_than_its_turn_is_still_the_truth() -> None:
    """SCH.2"""
    schedule = hourly()
    now = at("2026-01-31 10:00")
    claim_due(schedule, now=now)
    [fire] = scheduling.take_open(schedule_id=schedule.pk, token="slow", now=now, until=now)
    [again] = scheduling.take_open(schedule_id=schedule.pk, token="fast", now=now, until=now + HOUR)
    settle: Callable[..., bool] = scheduling.settle_fire
    skipped = scheduling.FireStatus.SKIPPED
    assert not settle(fire_id=fire.pk, token="slow", status=skipped, now=now)
    assert settle(fire_id=again.pk, token="fast", status=skipped, now=now)
    run = firing.start_run(schedule, fire, actor=firing.actor_of(schedule))
    assert settle(fire_id=fire.pk, token="slow", status=scheduling.FireStatus.STARTED, now=now, run=run)
    assert fires() == [("10:00", "started", run)]


# ---- while an earlier run goes on ------------------------------------------------------------------------------------


def test_skip_leaves_out_times_while_a_run_goes_on() -> None:
    """SCH.3"""
    hourly(if_running="skip")
    tick_at("2026-01-31 10:00")
    [first] = runs()
    tick_at("2026-01-31 11:00")
    ended(first)
    tick_at("2026-01-31 12:00")
    assert fires() == [("10:00", "started", first), ("11:00", "skipped", first), ("12:00", "started", runs()[-1])]
    assert len(runs()) == 2


def test_queue_keeps_one_time_waiting() -> None:
    """SCH.3"""
    hourly(if_running="queue")
    tick_at("2026-01-31 10:00")
    [first] = runs()
    tick_at("2026-01-31 11:00")
    tick_at("2026-01-31 12:00")
    assert fires() == [("10:00", "started", first), ("11:00", "waiting", None), ("12:00", "skipped", first)]
    ended(first)
    assert tick_at("2026-01-31 12:30") == 1
    assert Run.objects.latest("pk").title == "2026-01-31 11:00 UTC"
    tick_at("2026-01-31 13:00")
    assert statuses() == ["started", "started", "skipped", "waiting"]


def test_cancel_ends_the_earlier_run_and_starts_after_its_end() -> None:
    """SCH.3"""
    hourly(if_running="cancel")
    tick_at("2026-01-31 10:00")
    [first] = runs()
    assert tick_at("2026-01-31 11:00") == 0
    assert tick_at("2026-01-31 11:01") == 0
    assert ControlMessage.objects.filter(run=first, kind="cancel").count() == 1
    assert tick_at("2026-01-31 12:00") == 0
    assert fires() == [("10:00", "started", first), ("11:00", "skipped", first), ("12:00", "waiting", None)]
    run_operations.abandon(first, actor=SHELL, reason="no worker")
    assert tick_at("2026-01-31 12:01") == 1
    assert statuses() == ["started", "skipped", "started"]


def test_other_schedules_and_other_runs_of_the_workflow_are_no_earlier_runs() -> None:
    """SCH.3"""
    published('cron: "0 * * * *"', 'cron: "0 * * * *", timezone: Europe/Berlin')
    assert tick_at("2026-01-31 10:00") == 2
    assert statuses() == ["started", "started"]


# ---- missed times ----------------------------------------------------------------------------------------------------


def missed() -> list[tuple[str, str, int]]:
    return [
        (f"{row.first_at:%H:%M}", f"{row.at:%H:%M}", row.times) for row in ScheduleFire.objects.filter(status="missed")
    ]


def test_the_last_missed_time_is_made_up_for() -> None:
    """SCH.5"""
    hourly()
    assert tick_at("2026-01-31 14:40") == 1
    assert fires() == [("13:00", "missed", None), ("14:00", "started", runs()[0])]
    assert missed() == [("10:00", "13:00", 4)]


def test_none_runs_only_what_is_noticed_within_five_minutes() -> None:
    """SCH.5"""
    hourly(catch_up="none")
    tick_at("2026-01-31 12:05")
    assert fires() == [("11:00", "missed", None), ("12:00", "started", runs()[0])]
    ended(runs()[0])
    assert tick(now=at("2026-01-31 13:05") + timedelta(seconds=1)) == 0
    assert fires()[-1] == ("13:00", "missed", None)


def test_all_missed_times_are_made_up_for_one_after_the_other() -> None:
    """SCH.5"""
    hourly(catch_up="all")
    for number in range(1, 5):
        assert tick_at("2026-01-31 13:02") == 1
        assert len(runs()) == number
        ended(runs()[-1])
    assert tick_at("2026-01-31 13:02") == 0
    assert statuses() == ["started"] * 4
    assert [run.title[11:16] for run in Run.objects.order_by("pk")] == ["10:00", "11:00", "12:00", "13:00"]


def test_no_more_than_a_hundred_are_made_up_for() -> None:
    """SCH.5"""
    published('cron: "* * * * *", catch_up: all')
    tick_at("2026-01-31 13:30")
    assert ScheduleFire.objects.filter(settled_at=None).count() == 99
    assert missed() == [("09:31", "11:50", 140)]


def test_many_missed_times_are_counted_up_to_a_thousand() -> None:
    """SCH.5"""
    published('cron: "* * * * *"')
    tick_at("2026-03-31 00:00")
    [row] = ScheduleFire.objects.filter(status="missed")
    assert (row.first_at, row.times) == (at("2026-01-31 09:31"), 999)
    assert the_schedule().next_at == at("2026-03-31 00:01")


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_a_refusal_is_kept_and_stops_no_later_time() -> None:
    """SCH.6"""
    published('cron: "0 * * * *"', step="  - { id: work, kind: task, call: not.here }")
    tick_at("2026-01-31 10:00")
    tick_at("2026-01-31 11:00")
    assert statuses() == ["refused", "refused"]
    [code] = set(ScheduleFire.objects.values_list("code", flat=True))
    assert code == "plan.missing_code"
    assert "not.here" in ScheduleFire.objects.first().message
    published('cron: "0 * * * *"')
    tick_at("2026-01-31 12:00")
    assert statuses()[-1] == "started"


def test_parameters_that_a_new_version_does_not_take_are_refused() -> None:
    """SCH.6"""
    published()
    operation.create("demo", Wish(cron="0 * * * *"), actor=SHELL)
    turned_back()
    published(params="{ region: { type: string } }")
    tick_at("2026-01-31 10:00")
    [fire] = ScheduleFire.objects.all()
    assert (fire.status, fire.code) == ("refused", "params.invalid")
    assert fire.message == 'The parameters have 1 problem. region: Parameter "region" is missing.'


def turned_back() -> None:
    """As if everything had been made at ``BEGIN``."""

    @scheduling.ledger_transaction
    def turn_back() -> None:
        for row in Schedule.objects.all():
            next_at = scheduling.next_time(row.cron, row.timezone, BEGIN)
            Schedule.objects.filter(pk=row.pk).update(handled_until=BEGIN, next_at=next_at)

    turn_back()


def test_an_unexpected_failure_is_a_refusal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCH.6"""
    hourly()

    def fail(*args: object, **kwargs: object) -> int:
        raise ZeroDivisionError("no")

    with monkeypatch.context() as patched:
        patched.setattr(run_operations, "start", fail)
        tick_at("2026-01-31 10:00")
    assert ScheduleFire.objects.get().code == "internal_error"
    tick_at("2026-01-31 11:00")
    assert statuses() == ["refused", "started"]


def test_a_busy_database_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCH.6"""
    hourly()

    def busy(*args: object, **kwargs: object) -> int:
        raise Refusal("store.contended", detail="locked")

    with monkeypatch.context() as patched:
        patched.setattr(run_operations, "start", busy)
        assert tick_at("2026-01-31 10:00") == 0
    assert statuses() == ["due"]
    assert tick_at("2026-01-31 10:00") == 1


def test_a_person_who_may_not_start_runs_any_more_starts_none() -> None:
    """SCH.6, WEB.2"""
    published()
    bob = person("bob", "view_workflow", "add_schedule", "start_run")
    operation.create("demo", Wish(cron="0 * * * *"), actor=bob)
    turned_back()
    tick_at("2026-01-31 10:00")
    ended(runs()[0])
    user = User.objects.get(username="bob")
    user.user_permissions.clear()
    tick_at("2026-01-31 11:00")
    User.objects.update(is_active=False)
    tick_at("2026-01-31 12:00")
    codes = ScheduleFire.objects.order_by("at").values_list("code", flat=True)
    assert list(codes) == ["", "workflow.not_found", "user.not_found"]
    assert (Run.objects.get().started_by, len(runs())) == ("bob", 1)


# ---- pauses, zone data -----------------------------------------------------------------------------------------------


def test_a_paused_schedule_starts_nothing_and_makes_up_for_nothing() -> None:
    """SCH.7"""
    schedule = hourly(catch_up="all")
    by = scheduling.By(name="ann", recorded="ann", now=at("2026-01-31 09:45"))
    assert scheduling.pause_schedule(schedule_id=schedule.pk, by=by, reason="")
    assert tick_at("2026-01-31 12:30") == 0
    by = scheduling.By(name="ann", recorded="ann", now=at("2026-01-31 12:30"))
    assert scheduling.resume_schedule(schedule_id=schedule.pk, by=by, reason="")
    assert tick_at("2026-01-31 12:31") == 0
    assert tick_at("2026-01-31 13:00") == 1
    assert fires() == [("13:00", "started", runs()[0])]


def test_a_time_that_waits_is_dropped_by_a_pause() -> None:
    """SCH.7"""
    schedule = hourly(if_running="queue")
    tick_at("2026-01-31 10:00")
    tick_at("2026-01-31 11:00")
    operation.pause(schedule.pk, actor=SHELL)
    tick_at("2026-01-31 11:30")
    assert list(ScheduleFire.objects.order_by("at").values_list("status", "code")) == [
        ("started", ""),
        ("skipped", "paused"),
    ]


def test_zone_data_that_changed_moves_the_next_time() -> None:
    """SCH.1"""
    schedule = hourly()

    @scheduling.ledger_transaction
    def as_it_was_before() -> None:
        Schedule.objects.filter(pk=schedule.pk).update(next_at=at("2026-01-31 09:40"))

    as_it_was_before()
    assert tick_at("2026-01-31 09:41") == 0
    assert fires() == []
    assert the_schedule().next_at == at("2026-01-31 10:00")
    as_it_was_before()
    assert keep_up() == 1
    assert keep_up() == 0
    assert the_schedule().next_at == at("2026-01-31 10:00")


def test_a_zone_that_this_machine_lost_is_a_refusal_and_comes_back() -> None:
    """SCH.6"""
    schedule = hourly()

    @scheduling.ledger_transaction
    def in_zone(name: str) -> None:
        Schedule.objects.filter(pk=schedule.pk).update(timezone=name)

    in_zone("Moon/Sea")
    tick_at("2026-01-31 10:00")
    [fire] = ScheduleFire.objects.all()
    assert (fire.status, fire.code, fire.message) == (
        "refused",
        "schedule.invalid",
        '"Moon/Sea" is not a time zone that this machine knows.',
    )
    assert the_schedule().next_at is None
    in_zone("UTC")
    assert keep_up() == 1
    assert tick_at("2026-01-31 11:00") == 1


def test_only_the_newest_settled_times_are_kept() -> None:
    schedule = hourly()
    for hour in range(10, 14):
        tick_at(f"2026-01-31 {hour}:00")
    assert scheduling.trim_fires(schedule_id=schedule.pk, keep=2) == 2
    assert [time for time, _, _ in fires()] == ["12:00", "13:00"]


def test_a_failed_run_is_no_earlier_run_that_goes_on() -> None:
    """SCH.3"""
    hourly()
    tick_at("2026-01-31 10:00")
    play(runs()[0], {"work": bad()})
    assert tick_at("2026-01-31 11:00") == 1


def test_two_at_once_leave_open_times_to_whoever_took_them() -> None:
    """SCH.2"""
    schedule = hourly()
    now = at("2026-01-31 10:00")
    claim_due(schedule, now=now)
    scheduling.take_open(schedule_id=schedule.pk, token="other", now=now, until=now + HOUR)
    assert carry_out(schedule.pk, now=now) == 0
    assert statuses() == ["due"]


@pytest.mark.parametrize("before", list(FireStatus))
@pytest.mark.parametrize("after", [FireStatus.STARTED, FireStatus.SKIPPED, FireStatus.REFUSED])
def test_a_time_moves_only_as_its_status_allows(before: FireStatus, after: FireStatus) -> None:
    """SCH.2"""
    schedule = hourly()
    due = scheduling.Due(at=at("2026-01-31 10:00"), status=before)
    now = at("2026-01-31 10:00")
    assert scheduling.claim(schedule=schedule, handled_until=now, next_at=None, dues=[due], now=now)
    [fire] = ScheduleFire.objects.all()
    settled = scheduling.settle_fire(fire_id=fire.pk, token="", status=after, now=now, run=1)
    assert settled == (after in FIRE_MOVES[before])
    assert statuses() == [after if settled else before]
