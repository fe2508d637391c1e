"""Schedules and the times they fired.

The schedules of files that are published already begin with this migration: workers compute their first times.
"""

from __future__ import annotations

import json

import django.db.models.deletion
from django.contrib.auth.management import create_permissions
from django.db import migrations, models
from django.utils import timezone

LOOK = ("view_schedule", "view_schedulefire")
OPERATE = ("pause_schedule",)
MANAGE = ("add_schedule", "change_schedule", "delete_schedule")
ROLES = {
    "viewer": LOOK,
    "operator": LOOK + OPERATE,
    "approver": LOOK,
    "admin": LOOK + OPERATE + MANAGE,
}


def extend_roles(apps, schema_editor):
    using = schema_editor.connection.alias
    config = apps.get_app_config("workflows")
    config.models_module = True
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None
    groups = apps.get_model("auth", "Group").objects.using(using)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    for name, codenames in ROLES.items():
        group = groups.filter(name=name).first()
        if group is not None:
            found = permissions.filter(codename__in=codenames, content_type__app_label="workflows")
            group.permissions.add(*found)


def begin_those_of_files(apps, schema_editor):
    using = schema_editor.connection.alias
    schedules = apps.get_model("workflows", "Schedule").objects.using(using)
    now = timezone.now()
    workflows = apps.get_model("workflows", "Workflow").objects.using(using)
    for workflow in workflows.filter(current__document__contains='"schedule":[').select_related("current"):
        for position, entry in enumerate(json.loads(workflow.current.document).get("schedule") or ()):
            schedules.create(
                workflow=workflow,
                of_file=True,
                position=position,
                cron=" ".join(entry["cron"].split()),
                timezone=entry.get("timezone") or "UTC",
                params=_canonical(entry.get("params") or {}),
                if_running=entry.get("if_running") or "skip",
                catch_up=entry.get("catch_up") or "last",
                owner=workflow.current.created_by,
                created_at=now,
                handled_until=now,
            )


def _canonical(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Migration(migrations.Migration):
    dependencies = [("workflows", "0005_workers")]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("of_file", models.BooleanField(default=False)),
                ("position", models.PositiveIntegerField(default=0)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                ("cron", models.TextField()),
                ("timezone", models.CharField(default="UTC", max_length=100)),
                ("params", models.TextField(default="{}")),
                (
                    "if_running",
                    models.CharField(
                        choices=[("skip", "Skip"), ("queue", "Queue"), ("cancel", "Cancel")],
                        default="skip",
                        max_length=10,
                    ),
                ),
                (
                    "catch_up",
                    models.CharField(
                        choices=[("none", "None"), ("last", "Last"), ("all", "All")], default="last", max_length=10
                    ),
                ),
                ("owner", models.CharField(max_length=200)),
                ("owner_is_user", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("edition", models.PositiveIntegerField(default=1)),
                ("handled_until", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("paused_by", models.CharField(blank=True, default="", max_length=200)),
                ("paused_reason", models.TextField(blank=True, default="")),
                ("removed_at", models.DateTimeField(null=True)),
                ("removed_by", models.CharField(blank=True, default="", max_length=200)),
                (
                    "workflow",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="schedules", to="workflows.workflow"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "permissions": [("pause_schedule", "Can pause and resume schedules")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("paused_at", None), ("removed_at", None)),
                        fields=["next_at"],
                        name="schedule_due",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("if_running__in", ["skip", "queue", "cancel"])), name="schedule_if_running"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("catch_up__in", ["none", "last", "all"])), name="schedule_catch_up"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleFire",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("first_at", models.DateTimeField(null=True)),
                ("times", models.PositiveIntegerField(default=1)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("due", "Due"),
                            ("waiting", "Waiting"),
                            ("started", "Started"),
                            ("skipped", "Skipped"),
                            ("missed", "Missed"),
                            ("refused", "Refused"),
                        ],
                        max_length=10,
                    ),
                ),
                ("made_up", models.BooleanField(default=False)),
                ("run", models.PositiveBigIntegerField(null=True)),
                ("code", models.CharField(blank=True, default="", max_length=63)),
                ("message", models.TextField(blank=True, default="")),
                ("by", models.CharField(blank=True, default="", max_length=200)),
                ("reason", models.TextField(blank=True, default="")),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("recorded_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                ("taken_until", models.DateTimeField(null=True)),
                ("token", models.CharField(blank=True, default="", max_length=64)),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="fires", to="workflows.schedule"
                    ),
                ),
            ],
            options={
                "ordering": ["-at"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("settled_at", None)), fields=["schedule"], name="schedule_fire_open"
                    ),
                    models.Index(fields=["run"], name="schedule_fire_run"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("schedule", "at"), name="schedule_fires_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=("schedule", "request_id"),
                        name="schedule_request_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["due", "waiting", "started", "skipped", "missed", "refused"])
                        ),
                        name="schedule_fire_status",
                    ),
                ],
            },
        ),
        migrations.RunPython(extend_roles, migrations.RunPython.noop, elidable=False),
        migrations.RunPython(begin_those_of_files, migrations.RunPython.noop, elidable=False),
    ]
