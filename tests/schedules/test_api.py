"""Schedules for programs."""

from __future__ import annotations

import pytest

from tests.api.programs import Program, program
from tests.schedules.world import hourly, published, the_schedule, tick_at
from workflows.models import Run, Schedule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def admin() -> Program:
    return program(name="ada", groups=("admin",))


def test_schedules_are_listed_and_shown(admin: Program) -> None:
    """SCH.8"""
    schedule = hourly()
    tick_at("2026-01-31 10:00")
    [listed] = admin.get("/schedules").json()["schedules"]
    assert (listed["schedule"], listed["workflow"], listed["from"]) == (schedule.pk, "demo", "file")
    shown = admin.get(f"/schedules/{schedule.pk}").json()
    assert shown["next_at"] == "2026-01-31T11:00:00.000Z"
    assert [fire["status"] for fire in shown["fires"]] == ["started"]
    assert len(shown["next_times"]) == 5
    assert admin.get("/schedules?workflow=other").status_code == 404
    assert admin.get("/schedules/4711").json()["code"] == "schedule.not_found"


def test_a_schedule_is_made_changed_paused_and_removed(admin: Program) -> None:
    """SCH.7, SCH.8"""
    published(params="{ pin: { type: string, sensitive: true } }")
    wish = {"workflow": "demo", "cron": "0 3 * * *", "params": {"pin": "4711"}}
    made = admin.post("/schedules", wish)
    assert made.status_code == 201, made.content
    number = made.json()["schedule"]
    assert made.json()["params"] == {"pin": "(hidden)"}
    assert the_schedule().params == '{"pin":"4711"}'
    change = {"cron": "0 4 * * *", "params": {"pin": "4712"}, "edition": 1}
    assert admin.call("PUT", f"/schedules/{number}", change).json()["cron"] == "0 4 * * *"
    assert admin.call("PUT", f"/schedules/{number}", change).json()["code"] == "schedule.conflict"
    assert admin.post(f"/schedules/{number}/pause", {}).json() == {"schedule": number, "changed": True}
    assert admin.post(f"/schedules/{number}/resume", {}).json()["changed"] is True
    started = admin.post(f"/schedules/{number}/run-now", {"reason": "now", "request_id": "r"}).json()
    again = admin.post(f"/schedules/{number}/run-now", {"reason": "now", "request_id": "r"}).json()
    assert (started["created"], again["created"], started["run"]) == (True, False, Run.objects.get().pk)
    assert admin.post(f"/schedules/{number}/delete", {}).status_code == 200
    assert not Schedule.objects.current().exists()


def test_what_is_wrong_is_told_with_its_place(admin: Program) -> None:
    """SCH.8"""
    published()
    refused = admin.post("/schedules", {"workflow": "demo", "cron": "0 25 * * *", "timezone": "Moon/Sea"})
    assert (refused.status_code, refused.json()["code"]) == (422, "schedule.invalid")
    assert [problem["path"] for problem in refused.json()["data"]["problems"]] == ["cron", "timezone"]
    assert not Schedule.objects.exists()


def test_who_may_not_changes_nothing() -> None:
    """WEB.2"""
    schedule = hourly()
    viewer = program(name="viv", groups=("viewer",))
    assert viewer.get(f"/schedules/{schedule.pk}").status_code == 200
    for verb, body in (("pause", {}), ("resume", {}), ("run-now", {"reason": "r"}), ("delete", {})):
        assert viewer.post(f"/schedules/{schedule.pk}/{verb}", body).status_code == 403, verb
    assert viewer.post("/schedules", {"workflow": "demo", "cron": "0 3 * * *"}).status_code == 403
    assert (Schedule.objects.count(), Run.objects.count(), the_schedule().edition) == (1, 0, 1)


def test_only_a_key_for_schedules_changes_them() -> None:
    """A key for other actions makes no schedule either, which would start runs for it."""
    schedule = hourly()
    wish = {"workflow": "demo", "cron": "0 3 * * *"}
    others = program(
        name="ada", groups=("admin",), scopes=("read", "start", "operate", "answer", "publish", "external")
    )
    for path, body in (("", wish), *((f"/{schedule.pk}/{verb}", {}) for verb in ("pause", "resume", "delete"))):
        refused = others.post(f"/schedules{path}", body)
        assert (refused.status_code, refused.json()["code"]) == (403, "key.scope"), path
    refused = others.call("PUT", f"/schedules/{schedule.pk}", {"cron": "0 4 * * *", "edition": 1})
    assert refused.json()["code"] == "key.scope"
    assert Schedule.objects.get().edition == 1
    plans = program(name="bob", groups=("admin",), scopes=("schedules",))
    assert plans.post("/schedules", wish).status_code == 201
    assert plans.post(f"/schedules/{schedule.pk}/pause", {}).json()["changed"] is True
