"""Schedules in the admin: changed by the operations, as everywhere."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.schedules.world import hourly, made, published, the_schedule, tick_at
from workflows.models import AuditEntry, Schedule, Workflow

pytestmark = pytest.mark.django_db(transaction=True)


def admin() -> Client:
    return visitor(name="ada", groups=("admin",), is_staff=True)


def address(what: str, *keys: object) -> str:
    return reverse(f"admin:workflows_schedule_{what}", args=keys)


def terms(**more: object) -> dict[str, object]:
    usual = {"title": "", "cron": "0 4 * * *", "timezone": "UTC", "params": "{}"}
    return usual | {"if_running": "skip", "catch_up": "last"} | more


def test_a_schedule_is_added_changed_and_deleted() -> None:
    """SCH.8"""
    published()
    ada, workflow = admin(), Workflow.objects.get()
    assert ada.get(address("add")).status_code == 200
    assert ada.post(address("add"), terms(workflow=workflow.pk)).status_code == 302
    row = the_schedule()
    assert (row.cron, row.owner, row.of_file) == ("0 4 * * *", "ada", False)
    assert ada.get(address("changelist")).status_code == 200
    assert ada.get(address("change", row.pk)).status_code == 200
    assert ada.post(address("change", row.pk), terms(cron="0 5 * * *")).status_code == 302
    assert the_schedule().cron == "0 5 * * *"
    assert ada.get(address("delete", row.pk)).status_code == 200
    assert ada.post(address("delete", row.pk), {"post": "yes"}).status_code == 302
    assert not Schedule.objects.current().exists()
    kept = AuditEntry.objects.filter(action__startswith="schedule.").order_by("pk").values_list("action", flat=True)
    assert list(kept) == ["schedule.add", "schedule.change", "schedule.delete"]


def test_what_is_wrong_stands_beside_the_fields() -> None:
    """SCH.8"""
    published()
    wrong = terms(workflow=Workflow.objects.get().pk, cron="0 25 * * *", params='{"x": 1}')
    page = admin().post(address("add"), wrong).content.decode()
    assert "hour 25 is out of range" in page
    assert "There is no parameter &quot;x&quot;" in page
    assert "names of properties" not in admin_page_for("[]")
    assert not Schedule.objects.exists()


def admin_page_for(params: str) -> str:
    client = visitor(name="bea", groups=("admin",), is_staff=True)
    wrong = terms(workflow=Workflow.objects.get().pk, params=params)
    page: str = client.post(address("add"), wrong).content.decode()
    assert "One JSON object is needed." in page
    return page


def test_a_schedule_of_a_file_is_looked_at() -> None:
    """SCH.4"""
    schedule = hourly()
    tick_at("2026-01-31 10:00")
    ada = admin()
    assert ada.get(address("change", schedule.pk)).status_code == 200
    assert ada.post(address("change", schedule.pk), terms()).status_code == 403
    assert ada.get(address("delete", schedule.pk)).status_code == 403
    assert ada.get(reverse("admin:workflows_schedulefire_changelist")).status_code == 200


def test_who_may_only_look_changes_nothing() -> None:
    """WEB.2"""
    number = made(params={})
    viewer = visitor("view_schedule", "view_workflow", name="viv", is_staff=True)
    assert viewer.get(address("change", number)).status_code == 200
    assert viewer.post(address("change", number), terms()).status_code == 403
    assert viewer.get(address("add")).status_code == 403
    assert viewer.post(address("delete", number), {"post": "yes"}).status_code == 403
    assert the_schedule().edition == 1


def test_values_are_shown_to_who_may_see_them() -> None:
    """WEB.2"""
    published(params="{ pin: { type: string } }")
    number = made(params={"pin": "4711-pin"})
    permissions = ("view_schedule", "change_schedule", "start_run", "view_workflow")
    bob = visitor(*permissions, name="bob", is_staff=True)
    assert "4711-pin" not in bob.get(address("change", number)).content.decode()
    change = terms(cron="0 6 * * *")
    del change["params"]
    assert bob.post(address("change", number), change).status_code == 302
    assert (the_schedule().cron, the_schedule().params) == ("0 6 * * *", '{"pin":"4711-pin"}')
    assert "4711-pin" in admin().get(address("change", number)).content.decode()
