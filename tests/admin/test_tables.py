"""The admin: who gets in, what is read-only, what may be changed and by whom."""

from __future__ import annotations

import html

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.support.plans import publish_run, store_plan, workflow
from workflows.models import AuditEntry, Run, Schedule, Workflow, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = workflow("  - { id: work, kind: shell, run: make }")
MODELS = sorted(apps.get_app_config("workflows").get_models(), key=lambda model: model._meta.model_name)
TABLES = [model for model in MODELS if model not in (WorkflowAccess, Schedule)]
ALL = [f"view_{model._meta.model_name}" for model in MODELS]


def superuser() -> Client:
    user = get_user_model()._default_manager.create_superuser("root", "", "x")
    client = Client()
    client.force_login(user)
    return client


def page_text(response) -> str:
    return html.unescape(response.content.decode())


def address(model, what: str, *keys: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{what}", args=keys)


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model._meta.model_name)
def test_a_table_of_the_ledger_is_looked_at_and_never_changed(model) -> None:
    run = publish_run(SMALL)
    client = superuser()
    site = admin.site._registry[model]
    request = RequestFactory().get("/")
    request.user = get_user_model()._default_manager.get()

    assert not site.has_add_permission(request)
    assert not site.has_change_permission(request)
    assert not site.has_delete_permission(request)
    assert "delete_selected" not in site.get_actions(request)
    assert client.get(address(model, "changelist")).status_code == 200
    assert client.get(address(model, "changelist") + f"?q={run}").status_code == 200
    for odd in ("%00", "9" * 40, "%F0%9F%92%A5", "'--"):
        assert client.get(address(model, "changelist") + f"?q={odd}").status_code == 200, odd
    assert client.get(address(model, "add")).status_code == 403
    row = model._default_manager.first()
    if row is not None:
        assert client.get(address(model, "change", row.pk)).status_code == 200
        assert client.post(address(model, "change", row.pk), {}).status_code == 403
        assert client.get(address(model, "delete", row.pk)).status_code == 403


@pytest.mark.parametrize("model", TABLES, ids=lambda model: model._meta.model_name)
def test_a_list_reads_no_large_column_and_counts_no_whole_table(model) -> None:
    """WEB.3"""
    publish_run(SMALL)
    client = superuser()
    site = admin.site._registry[model]

    with CaptureQueriesContext(connection) as queries:
        client.get(address(model, "changelist"))

    table = model._meta.db_table
    for query in queries:
        sql = query["sql"]
        assert "COUNT(*)" not in sql.upper() or "LIMIT" in sql.upper(), sql
        for column in site.large:
            assert f'"{table}"."{column}"' not in sql, sql
    assert site.show_full_result_count is False


def test_a_row_shows_the_beginning_of_what_is_large() -> None:
    """WEB.3"""
    long = workflow("  - { id: work, kind: shell, run: make }", before=f"description: {'x' * 9000}")
    plan = store_plan(long, private=False).plan_id

    text = page_text(superuser().get(address(apps.get_model("workflows.Plan"), "change", plan)))

    assert "x" * 3000 in text
    assert "x" * 5000 not in text
    assert "4000 of " in text


def test_rows_of_hidden_workflows_are_not_there_for_staff_that_may_not_see_them() -> None:
    """WEB.2"""
    publish_run(SMALL)
    store_plan(SMALL, private=False)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="builders"))
    client = visitor(*ALL, is_staff=True)

    for model in TABLES:
        if model._meta.model_name == "payload":
            continue
        response = client.get(address(model, "changelist"))
        assert response.status_code == 200
        assert response.context["cl"].result_count == 0, model
        row = model._default_manager.first()
        if row is not None and model._meta.model_name not in ("bulkaction",):
            assert client.get(address(model, "change", row.pk)).status_code == 302, model


def test_values_are_looked_at_by_superusers_only() -> None:
    """WEB.2"""
    publish_run(SMALL)

    assert visitor(*ALL, is_staff=True).get("/admin/workflows/payload/").status_code == 403
    assert superuser().get("/admin/workflows/payload/").status_code == 200


# ---- login -----------------------------------------------------------------------------------------------------------


def test_the_admin_is_entered_by_the_login_of_the_site() -> None:
    response = Client().get("/admin/", follow=True)

    assert response.redirect_chain[-1][0] == "/login/?next=/admin/"


def test_people_who_are_no_staff_are_told_so_and_not_sent_in_circles() -> None:
    """WEB.2"""
    response = visitor("view_run").get("/admin/", follow=True)

    assert response.status_code == 403
    assert len(response.redirect_chain) == 1


def test_the_pages_of_the_admin_obey_the_content_policy() -> None:
    """WEB.1"""
    run = publish_run(SMALL)
    client = superuser()

    for path in ("/admin/", "/admin/workflows/run/", f"/admin/workflows/run/{run}/change/", "/admin/auth/user/add/"):
        response = client.get(path)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        content = response.content.decode()
        assert " style=" not in content, path
        assert " onclick=" not in content, path
        assert "<script>" not in content, path
        assert "<style" not in content, path


# ---- people and access -----------------------------------------------------------------------------------------------


def manager(*more: str) -> Client:
    """A browser of somebody who manages people and is no superuser."""
    client = visitor(*more, is_staff=True)
    user = get_user_model()._default_manager.get(username="ann")
    names = ["view_user", "add_user", "change_user", "delete_user", "view_group", "add_group", "change_group"]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))
    return client


def posted(user, **more: object) -> dict[str, object]:
    return {
        "username": user.username,
        "is_active": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        **more,
    }


def test_nobody_makes_themselves_a_superuser() -> None:
    """WEB.2"""
    client = manager()
    user = get_user_model()._default_manager.get(username="ann")
    mighty = Permission.objects.get(codename="abandon_run")

    client.post(
        f"/admin/auth/user/{user.pk}/change/",
        posted(user, is_staff="on", is_superuser="on", user_permissions=[mighty.pk]),
    )

    user.refresh_from_db()
    assert not user.is_superuser
    assert not user.user_permissions.filter(pk=mighty.pk).exists()


def test_superusers_are_changed_by_superusers_only() -> None:
    """WEB.2"""
    boss = get_user_model()._default_manager.create_superuser("boss", "", "x")
    client = manager()

    assert client.post(f"/admin/auth/user/{boss.pk}/change/", posted(boss)).status_code == 403
    assert client.post(f"/admin/auth/user/{boss.pk}/password/", {"password1": "n", "password2": "n"}).status_code == 403
    boss.refresh_from_db()
    assert boss.is_superuser
    assert boss.check_password("x")


def test_people_are_made_inactive_and_not_deleted() -> None:
    get_user_model()._default_manager.create_user("ben")
    ben = get_user_model()._default_manager.get(username="ben")

    assert superuser().post(f"/admin/auth/user/{ben.pk}/delete/", {"post": "yes"}).status_code == 403
    assert get_user_model()._default_manager.filter(username="ben").exists()


def test_a_group_gets_no_permission_beyond_those_of_who_gives_it() -> None:
    """WEB.2"""
    client = manager("view_run")
    mighty, own = (Permission.objects.get(codename=name) for name in ("abandon_run", "view_run"))

    client.post("/admin/auth/group/add/", {"name": "mighty", "permissions": [mighty.pk]})
    client.post("/admin/auth/group/add/", {"name": "lookers", "permissions": [own.pk]})

    assert not Group.objects.filter(name="mighty").exists()
    assert list(Group.objects.get(name="lookers").permissions.all()) == [own]


def test_nobody_joins_a_group_that_allows_more_than_they_may() -> None:
    """WEB.2"""
    client = manager("view_run")
    user = get_user_model()._default_manager.get(username="ann")
    mighty = Group.objects.create(name="mighty")
    mighty.permissions.add(Permission.objects.get(codename="abandon_run"))

    client.post(f"/admin/auth/user/{user.pk}/change/", posted(user, is_staff="on", groups=[mighty.pk]))

    assert not user.groups.exists()
    assert client.post(f"/admin/auth/group/{mighty.pk}/change/", {"name": "mighty"}).status_code == 403


def test_access_to_a_workflow_is_given_and_taken_with_an_entry_in_the_audit() -> None:
    """WEB.2"""
    store_plan(SMALL, private=False)
    one = Workflow.objects.get()
    builders, others = (Group.objects.create(name=name) for name in ("builders", "others"))
    client = superuser()

    client.post("/admin/workflows/workflowaccess/add/", {"workflow": one.pk, "group": builders.pk})
    row = WorkflowAccess.objects.get()
    client.post(f"/admin/workflows/workflowaccess/{row.pk}/change/", {"workflow": one.pk, "group": others.pk})
    client.post(f"/admin/workflows/workflowaccess/{row.pk}/delete/", {"post": "yes"})

    assert not WorkflowAccess.objects.exists()
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action", "workflow", "data")
    assert list(entries) == [
        ("root", "workflow.open", "demo", '{"group":"builders"}'),
        ("root", "workflow.close", "demo", '{"group":"builders"}'),
        ("root", "workflow.open", "demo", '{"group":"others"}'),
        ("root", "workflow.close", "demo", '{"group":"others"}'),
    ]


def test_every_table_is_in_the_admin() -> None:
    assert {model for model in MODELS if model not in admin.site._registry} == set()
    assert Run in admin.site._registry
