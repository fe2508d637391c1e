"""The roles: groups that are there from the beginning, for a team to change as it likes.

A group that exists already is left as it is, whatever it may do: it is the team's, and running this again takes nothing
away and gives nothing.
"""

from __future__ import annotations

from django.contrib.auth.management import create_permissions
from django.db import migrations

LOOK = (
    "view_attempt",
    "view_bulkaction",
    "view_bulkitem",
    "view_controlmessage",
    "view_event",
    "view_fanout",
    "view_interrupt",
    "view_lease",
    "view_limitgroup",
    "view_payload",
    "view_plan",
    "view_run",
    "view_rowversion",
    "view_scope",
    "view_scopevars",
    "view_slot",
    "view_visit",
    "view_vote",
    "view_workflow",
)
OPERATE = ("start_run", "cancel_run", "hold_run", "reopen_run", "reconcile_run")
ANSWER = ("answer_interrupt",)
MANAGE = (
    "publish_plan",
    "abandon_run",
    "fork_run",
    "export_run",
    "keep_run",
    "view_sensitive",
    "exceed_limit",
    "view_auditentry",
    "view_workflowaccess",
    "add_workflowaccess",
    "change_workflowaccess",
    "delete_workflowaccess",
)
#: People are deactivated and never deleted: runs name them.
MANAGE_PEOPLE = (
    "view_user",
    "add_user",
    "change_user",
    "view_group",
    "add_group",
    "change_group",
    "delete_group",
    "view_permission",
)
ROLES = {
    "viewer": LOOK,
    "operator": LOOK + OPERATE,
    "approver": LOOK + ANSWER,
    "admin": LOOK + OPERATE + ANSWER + MANAGE + MANAGE_PEOPLE,
}


def make_roles(apps, schema_editor):
    using = schema_editor.connection.alias
    _make_permissions(apps, using)
    groups = apps.get_model("auth", "Group").objects.using(using)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    for name, codenames in ROLES.items():
        group, is_new = groups.get_or_create(name=name)
        if is_new:
            found = permissions.filter(codename__in=codenames, content_type__app_label__in=("workflows", "auth"))
            group.permissions.set(found)


def _make_permissions(apps, using):
    """Permissions come into being after all migrations, which is too late for the groups."""
    for label in ("auth", "workflows"):
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0, using=using)
        config.models_module = None


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0001_initial"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("workflows", "0002_operators"),
    ]

    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop, elidable=False)]
