"""Schedules in the browser."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.schedules.world import SHELL, hourly, made, published, the_schedule, tick_at
from tests.support.rows import all_rows
from workflows.models import AuditEntry, Run, Schedule, ScheduleFire, WorkflowAccess
from workflows.operations import schedules as operation

pytestmark = pytest.mark.django_db(transaction=True)

HARM = "<script>alert(1)</script>"


def admin() -> Client:
    return visitor(name="ada", groups=("admin",))


def text(client: Client, name: str, *args: object, status: int = 200, **query: str) -> str:
    response = client.get(reverse(f"pages:{name}", args=args), query)
    assert response.status_code == status, response.content.decode()[-3000:]
    return response.content.decode()


def sent(client: Client, name: str, *args: object, status: int = 302, **data: object) -> str:
    response = client.post(reverse(f"pages:{name}", args=args), data)
    assert response.status_code == status, response.content.decode()[-3000:]
    return response.content.decode()


def test_the_list_and_the_page_show_times_in_their_zone() -> None:
    """SCH.8"""
    published('cron: "30 2 * * *", timezone: Europe/Berlin')
    tick_at("2026-03-29 01:00")
    number = the_schedule().pk
    ada = admin()
    assert "Europe/Berlin" in text(ada, "schedule_list")
    page = text(ada, "schedule", number)
    assert "Sun 2026-03-29 03:00 CEST" in page
    assert page.count('<span class="nowrap">') >= 5
    run = Run.objects.get().pk
    assert f'href="{reverse("pages:run", args=[run])}"' in page
    assert f"by schedule {number}" in text(ada, "run", run)
    assert reverse("pages:schedule", args=[number]) in text(ada, "workflow", "demo")


def test_a_refused_time_is_on_its_page_and_on_home() -> None:
    """SCH.6"""
    published('cron: "0 * * * *"', step="  - { id: work, kind: task, call: not.here }")
    tick_at("2026-01-31 10:00")
    ada = admin()
    page = text(ada, "schedule", the_schedule().pk)
    assert "Its last time was refused." in page
    assert "plan.missing_code" in page
    home = text(ada, "home")
    assert reverse("pages:schedule", args=[the_schedule().pk]) in home
    operation.pause(the_schedule().pk, actor=SHELL)
    assert reverse("pages:schedule", args=[the_schedule().pk]) not in text(ada, "home")


def test_a_schedule_is_made_changed_and_deleted() -> None:
    """SCH.8"""
    published(params="{ region: { type: string }, n: { type: integer, default: 3 } }")
    ada = admin()
    assert "demo" in text(ada, "schedule_new")
    form = text(ada, "schedule_new", workflow="demo")
    assert 'name="field-region"' in form
    data = {"workflow": "demo", "cron": "0 5 * * 1", "timezone": "Europe/Berlin", "if_running": "queue"}
    data |= {"catch_up": "all", "title": HARM, "field-region": "eu", "field-n": "4"}
    preview = sent(ada, "schedule_new", status=200, action="preview", **data)
    assert preview.count("05:00 CE") == 5
    assert not Schedule.objects.exists()
    sent(ada, "schedule_new", action="save", **data)
    row = the_schedule()
    assert (row.cron, row.params, row.owner, row.owner_is_user) == ("0 5 * * 1", '{"n":4,"region":"eu"}', "ada", True)
    page = text(ada, "schedule", row.pk)
    assert HARM not in page
    edit = text(ada, "schedule_edit", row.pk)
    assert 'value="eu"' in edit
    sent(ada, "schedule_edit", row.pk, action="save", **{**data, "cron": "0 6 * * 1", "edition": row.edition})
    assert the_schedule().cron == "0 6 * * 1"
    stale = sent(ada, "schedule_edit", row.pk, status=409, action="save", **{**data, "edition": row.edition})
    assert "was changed meanwhile" in stale
    assert "Delete" in text(ada, "schedule_action", row.pk, "delete")
    sent(ada, "schedule_action", row.pk, "delete", reason="not needed")
    assert "deleted" in text(ada, "schedule", row.pk)
    assert not Schedule.objects.current().exists()
    kept = AuditEntry.objects.filter(action__startswith="schedule.").order_by("pk").values_list("action", flat=True)
    assert list(kept) == ["schedule.add", "schedule.change", "schedule.delete"]


def test_what_is_wrong_stands_beside_the_fields() -> None:
    """SCH.8"""
    published(params="{ region: { type: string } }")
    data = {"workflow": "demo", "cron": "0 25 * * *", "timezone": "Europe/Berln", "if_running": "skip"}
    page = sent(admin(), "schedule_new", status=422, action="save", catch_up="last", **data)
    assert "hour 25 is out of range" in page
    assert "Did you mean &quot;Europe/Berlin&quot;?" in page
    assert "Parameter &quot;region&quot; is missing." in page
    assert not Schedule.objects.exists()


def test_pause_resume_and_run_now() -> None:
    """SCH.7, SCH.8"""
    schedule = hourly()
    ada = admin()
    sent(ada, "schedule_action", schedule.pk, "pause", reason="holidays")
    page = text(ada, "schedule", schedule.pk)
    assert "holidays" in page
    assert "If it were not paused" in page
    sent(ada, "schedule_action", schedule.pk, "resume")
    assert the_schedule().paused_at is None
    refused = sent(ada, "schedule_action", schedule.pk, "run-now", status=422)
    assert "needs a reason" in refused
    for _ in range(2):
        sent(ada, "schedule_action", schedule.pk, "run-now", reason="at once", request_id="r1")
    run = Run.objects.get()
    assert (run.started_by, run.origin) == ("ada", "schedule")
    [fire] = ScheduleFire.objects.all()
    assert (fire.status, fire.run, fire.by, fire.reason) == ("started", run.pk, "ada", "at once")


def test_a_schedule_of_a_file_is_not_changed_here() -> None:
    """SCH.4"""
    schedule = hourly()
    ada = admin()
    text(ada, "schedule_edit", schedule.pk, status=409)
    assert "stands in the file of demo" in sent(ada, "schedule_action", schedule.pk, "delete", status=409)
    assert "/edit/" not in text(ada, "schedule", schedule.pk)


def rows_of_schedules() -> dict[str, list[dict[str, object]]]:
    return {table: rows for table, rows in all_rows().items() if table in ("Schedule", "ScheduleFire", "Run", "Event")}


def test_who_may_not_or_does_not_see_it_changes_nothing() -> None:
    """WEB.2"""
    number = made()
    viewer = visitor(name="viv", groups=("viewer",))
    text(viewer, "schedule", number)
    before = rows_of_schedules()
    for verb in ("pause", "resume", "run-now", "delete"):
        text(viewer, "schedule_action", number, verb, status=403)
        sent(viewer, "schedule_action", number, verb, status=403, reason="r")
    sent(viewer, "schedule_edit", number, status=403, cron="0 1 * * *", timezone="UTC")
    sent(viewer, "schedule_new", status=403, workflow="demo", cron="0 1 * * *", timezone="UTC")
    row = Schedule.objects.get()
    WorkflowAccess.objects.create(workflow=row.workflow, group=Group.objects.create(name="others"))
    text(viewer, "schedule", number, status=404)
    assert f"/schedules/{number}/" not in text(viewer, "schedule_list")
    text(viewer, "schedule_list", workflow="demo", status=404)
    WorkflowAccess.objects.all().delete()
    assert rows_of_schedules() == before
    denied = AuditEntry.objects.filter(allowed=False).order_by("pk").values_list("action", flat=True)
    assert list(denied) == [
        "schedule.pause",
        "schedule.resume",
        "schedule.run_now",
        "schedule.delete",
        "schedule.change",
        "schedule.add",
    ]


def test_sensitive_parameters_are_hidden_and_stay() -> None:
    """SCH.8"""
    published(params="{ pin: { type: string, sensitive: true } }")
    number = made(params={"pin": "1234-secret"})
    ada = admin()
    assert "1234-secret" not in text(ada, "schedule", number)
    assert "1234-secret" not in text(ada, "schedule_edit", number)
    data = {"cron": "0 7 * * *", "timezone": "UTC", "if_running": "skip", "catch_up": "last", "field-pin": ""}
    sent(ada, "schedule_edit", number, action="save", edition=1, **data)
    assert the_schedule().params == '{"pin":"1234-secret"}'


@pytest.mark.parametrize("address", ["/schedules/4711/", "/schedules/4711/edit/", "/schedules/4711/pause/"])
def test_a_schedule_that_is_not_there_is_told(address: str) -> None:
    assert admin().get(address).status_code == 404
