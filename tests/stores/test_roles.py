"""The groups that an installation begins with."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)

ROLES = import_module("workflows.migrations.0003_roles")
CHANGING = {
    "start_run",
    "cancel_run",
    "hold_run",
    "reopen_run",
    "reconcile_run",
    "abandon_run",
    "fork_run",
    "export_run",
    "exceed_limit",
    "keep_run",
    "answer_interrupt",
    "publish_plan",
}


def permissions_of(name: str) -> set[str]:
    return set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))


def make_roles_again() -> None:
    with connection.schema_editor() as editor:
        ROLES.make_roles(apps, editor)


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("viewer", set()),
        ("operator", {"start_run", "cancel_run", "hold_run", "reopen_run", "reconcile_run"}),
        ("approver", {"answer_interrupt"}),
        ("admin", CHANGING),
    ],
)
def test_a_new_installation_has_four_roles(role: str, may: set[str]) -> None:
    """WEB.2"""
    assert permissions_of(role) & CHANGING == may
    assert {"view_run", "view_workflow", "view_event"} <= permissions_of(role)
    assert ("view_auditentry" in permissions_of(role)) is (role == "admin")


def test_every_permission_to_look_at_runs_is_in_every_role() -> None:
    """A new table is looked at by nobody until its permission is in the roles."""
    permissions = Permission.objects.filter(content_type__app_label="workflows", codename__startswith="view_")
    kept_back = {"view_auditentry", "view_workflowaccess", "view_sensitive", "view_apikey"}
    # who is told of what is for operators, and for everybody what they are told themselves
    kept_back |= {"view_notification", "view_delivery", "view_webhook", "view_notificationpreference"}
    kept_back |= {"view_loginsession", "view_tally"}
    wanted = set(permissions.values_list("codename", flat=True)) - kept_back
    assert {role for role in ROLES.ROLES if not wanted <= permissions_of(role)} == set()


def test_nobody_may_delete_people_through_a_role() -> None:
    assert "delete_user" not in permissions_of("admin")


def test_making_the_roles_again_keeps_what_the_team_changed() -> None:
    Group.objects.get(name="operator").permissions.set(Permission.objects.filter(codename="view_run"))
    Group.objects.get(name="approver").delete()

    make_roles_again()

    assert permissions_of("operator") == {"view_run"}
    assert "answer_interrupt" in permissions_of("approver")


def test_a_group_of_the_team_that_has_the_name_of_a_role_gets_no_rights() -> None:
    Group.objects.filter(name="admin").delete()
    Group.objects.create(name="admin")

    make_roles_again()

    assert permissions_of("admin") == set()
