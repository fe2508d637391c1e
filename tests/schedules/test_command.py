"""``manage.py schedules``."""

from __future__ import annotations

import pytest

from tests.commands.support import manage
from tests.schedules.world import published, the_schedule, tick_at
from workflows.models import Run, ScheduleFire

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_empty_list_says_where_schedules_come_from() -> None:
    assert manage("schedules", "list").lines == [
        "There are no schedules; they stand in workflow files, or are made in the browser."
    ]
    assert manage("schedules", "list", "--json").json == []


def test_the_list_and_one_schedule_are_shown() -> None:
    """SCH.8"""
    published('cron: "30 2 * * *", timezone: Europe/Berlin, params: { n: 4 }', params="{ n: { type: integer } }")
    tick_at("2026-03-30 00:40")
    number, run = the_schedule().pk, Run.objects.get().pk
    [heads, line] = manage("schedules", "list").lines
    assert heads.split() == ["SCHEDULE", "WORKFLOW", "CRON", "ZONE", "NEXT", "LAST", "FROM"]
    assert "Tue 2026-03-31 02:30 CEST" in line
    assert f"run {run} queued" in line
    shown = manage("schedules", "show", str(number))
    assert f"schedule {number} of demo: 30 2 * * * Europe/Berlin" in shown.out
    assert "1 parameter: n" in shown.out
    assert "Sun 2026-03-29 03:00 CEST  missed 57" in shown.out
    document = manage("schedules", "show", str(number), "--json").json
    assert document["next_at"] == "2026-03-31T00:30:00.000Z"
    assert [fire["status"] for fire in document["fires"]] == ["started", "missed"]
    assert len(document["next_times"]) == 5


def test_the_next_times_of_an_expression_are_told() -> None:
    """SCH.1"""
    told = manage("schedules", "next", "0 0 29 2 *", "--timezone", "Europe/Berlin", "--count", "2")
    assert (told.code, len(told.lines)) == (0, 2)
    assert told.lines[0].endswith("02-29 00:00 CET")
    never = manage("schedules", "next", "0 0 30,31 2 *")
    assert never.code == 2
    assert "no such day ever comes" in never.err


def test_pause_resume_and_run_now_say_what_they_did() -> None:
    """SCH.7, SCH.8"""
    published('cron: "0 * * * *"')
    number = str(the_schedule().pk)
    assert manage("schedules", "pause", number, "--reason", "holidays").lines == [f"schedule {number}: paused."]
    assert manage("schedules", "pause", number).lines == [f"schedule {number}: was paused already."]
    assert "paused" in manage("schedules", "list").out
    assert manage("schedules", "resume", number, "--json").json == {"schedule": int(number), "changed": True}
    assert "needs a reason" in manage("schedules", "run-now", number).err
    for is_new in (True, False):
        told = manage("schedules", "run-now", number, "--reason", "now", "--request-id", "r", "--json").json
        assert told == {"schedule": int(number), "run": Run.objects.get().pk, "new": is_new}
    assert ScheduleFire.objects.get().reason == "now"


def test_what_is_not_there_is_told() -> None:
    told = manage("schedules", "show", "4711")
    assert (told.code, told.err.splitlines()[0]) == (2, "error: There is no schedule 4711.")
    assert manage("schedules", "list", "--workflow", "nobody").code == 0
