"""Schedules of files follow the version that is current; what people paused stays paused."""

from __future__ import annotations

import pytest

from tests.schedules.times import at
from tests.schedules.world import BEGIN, HOUR, SHELL, made, published, statuses, the_schedule, tick_at
from tests.support.plans import store_plan, workflow
from workflows.models import AuditEntry, Schedule
from workflows.operations import schedules as operation

pytestmark = pytest.mark.django_db(transaction=True)


def said() -> list[tuple[int, str, str, bool]]:
    rows = Schedule.objects.current().order_by("position", "pk")
    return [(row.position, row.cron, row.timezone, row.paused_at is not None) for row in rows]


def test_a_version_brings_its_schedules() -> None:
    """SCH.4"""
    published('cron: "0 2 * * *", timezone: Europe/Berlin, if_running: queue, catch_up: all', 'cron: " 5  * * * *"')
    assert said() == [(0, "0 2 * * *", "Europe/Berlin", False), (1, "5 * * * *", "UTC", False)]
    row = Schedule.objects.get(position=0)
    assert (row.if_running, row.catch_up, row.owner, row.of_file) == ("queue", "all", "ann", True)
    assert row.next_at == at("2026-02-01 01:00")


def test_a_schedule_that_stays_the_same_stays_what_it_was() -> None:
    """SCH.4"""
    published('cron: "0 * * * *"', 'cron: "30 * * * *"')
    first, second = Schedule.objects.order_by("position")
    tick_at("2026-01-31 10:00")
    operation.pause(second.pk, actor=SHELL)
    published('cron: "30 * * * *", if_running: queue', 'cron: "0 * * * *"', now=BEGIN + HOUR)
    assert said() == [(0, "30 * * * *", "UTC", True), (1, "0 * * * *", "UTC", False)]
    assert [row.pk for row in Schedule.objects.current().order_by("position")] == [second.pk, first.pk]
    first.refresh_from_db()
    assert first.handled_until == at("2026-01-31 10:00"), "what is due since then is still due"
    assert Schedule.objects.get(pk=second.pk).if_running == "queue"


def test_a_schedule_that_changed_at_its_place_stays_paused_and_begins_anew() -> None:
    """SCH.4"""
    published('cron: "0 * * * *"')
    before = the_schedule()
    operation.pause(before.pk, actor=SHELL)
    published('cron: "15 * * * *"', now=BEGIN + 3 * HOUR)
    after = the_schedule()
    assert (after.pk, after.cron, after.paused_at is not None) == (before.pk, "15 * * * *", True)
    assert after.handled_until == BEGIN + 3 * HOUR


def test_a_schedule_that_goes_is_removed_and_one_that_comes_back_is_the_old_one() -> None:
    """SCH.4"""
    published('cron: "0 * * * *"')
    tick_at("2026-01-31 10:00")
    old = the_schedule()
    published(now=BEGIN + HOUR)
    assert said() == []
    assert tick_at("2026-01-31 12:00") == 0
    published('cron: "0 * * * *"', step="  - { id: other, kind: shell, run: y }", now=BEGIN + 3 * HOUR)
    assert the_schedule().pk == old.pk
    assert tick_at("2026-01-31 12:30") == 0, "what passed meanwhile was not wanted"
    assert statuses() == ["started"]


def test_schedules_of_people_are_kept_apart() -> None:
    """SCH.4"""
    published('cron: "0 * * * *"')
    mine = made(cron="0 * * * *")
    published()
    assert the_schedule().pk == mine
    published('cron: "0 * * * *"', step="  - { id: other, kind: shell, run: y }")
    assert Schedule.objects.current().count() == 2
    assert not Schedule.objects.get(pk=mine).of_file


def test_a_private_version_has_no_schedules() -> None:
    """SCH.4"""
    step = "  - { id: work, kind: shell, run: x }"
    store_plan(workflow(step, before='schedule: [ { cron: "0 * * * *" } ]'), private=True)
    assert not Schedule.objects.exists()


def test_two_equal_schedules_are_two() -> None:
    """SCH.4"""
    published('cron: "0 * * * *"', 'cron: "0 * * * *"')
    assert len(said()) == 2
    published('cron: "0 * * * *"')
    assert len(said()) == 1


def test_what_waits_of_a_removed_schedule_is_skipped() -> None:
    """SCH.4"""
    published('cron: "0 * * * *", if_running: queue')
    tick_at("2026-01-31 10:00")
    tick_at("2026-01-31 11:00")
    published()
    tick_at("2026-01-31 11:01")
    assert statuses() == ["started", "skipped"]


def test_changes_by_people_are_kept_in_the_audit() -> None:
    """SCH.8, ADM.6"""
    number = made()
    operation.pause(number, actor=SHELL, reason="too often")
    assert not operation.pause(number, actor=SHELL)
    operation.resume(number, actor=SHELL)
    assert not operation.resume(number, actor=SHELL)
    operation.remove(number, actor=SHELL, reason="done")
    rows = AuditEntry.objects.order_by("pk").values_list("action", "reason", "workflow")
    assert list(rows) == [
        ("schedule.add", "", "demo"),
        ("schedule.pause", "too often", "demo"),
        ("schedule.resume", "", "demo"),
        ("schedule.delete", "done", "demo"),
    ]
