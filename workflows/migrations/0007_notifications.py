"""Notifications, their deliveries, webhooks, and what people want to hear of."""

from __future__ import annotations

import uuid
from datetime import timedelta

import django.db.models.deletion
from django.contrib.auth.management import create_permissions
from django.db import migrations, models
from django.utils import timezone

TOLD = ("question_asked", "question_reminded", "run_blocked", "run_failed")
#: What groups get of these tables, by what they may already: operators look and send again, who publishes has webhooks.
GIVEN = {
    "reopen_run": ("view_notification", "view_delivery", "view_webhook", "replay_delivery"),
    "publish_plan": ("view_webhook", "manage_webhook"),
}


def give_permissions(apps, schema_editor):
    using = schema_editor.connection.alias
    config = apps.get_app_config("workflows")
    config.models_module = True  # permissions come into being after all migrations, which is too late for the groups
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects.using(using).filter(content_type__app_label="workflows")
    groups = apps.get_model("auth", "Group").objects.using(using)
    for held, codenames in GIVEN.items():
        for group in groups.filter(permissions__in=permissions.filter(codename=held)).distinct():
            group.permissions.add(*permissions.filter(codename__in=codenames))


def leave_the_past_alone(apps, schema_editor):
    """What happened before there were notifications is told to nobody."""
    using = schema_editor.connection.alias
    events = apps.get_model("workflows", "Event").objects.using(using)
    notifications = apps.get_model("workflows", "Notification").objects.using(using)
    recent = events.filter(type__in=TOLD, at__gte=timezone.now() - timedelta(days=8))
    rows = recent.values_list("run_id", "sequence", "type", "at", "visit", "attempt")
    runs = apps.get_model("workflows", "Run").objects.using(using)
    names = dict(runs.filter(pk__in=recent.values("run_id")).values_list("pk", "workflow__name"))
    notifications.bulk_create(
        (
            notifications.model(
                run=run,
                event=event,
                kind=kind,
                at=at,
                visit=visit,
                attempt=attempt,
                workflow=names.get(run, ""),
                mark=uuid.uuid4().hex,
            )
            for run, event, kind, at, visit, attempt in rows
        ),
        batch_size=500,
    )


class Migration(migrations.Migration):
    dependencies = [("workflows", "0006_schedules")]

    operations = [
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("person", models.CharField(blank=True, default="", max_length=200)),
                ("round", models.PositiveIntegerField(default=1)),
                ("message_id", models.CharField(max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("given_up", "Given Up"),
                            ("dropped", "Dropped"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_ms", models.BigIntegerField()),
                ("claim", models.CharField(blank=True, default="", max_length=32)),
                ("claimed_until_ms", models.BigIntegerField(default=0)),
                ("response_code", models.PositiveIntegerField(null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("requested_by", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-id"],
                "permissions": [("replay_delivery", "Can send notifications again")],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run", models.PositiveBigIntegerField()),
                ("event", models.PositiveBigIntegerField()),
                ("kind", models.CharField(max_length=40)),
                ("workflow", models.CharField(max_length=63)),
                ("visit", models.PositiveIntegerField(null=True)),
                ("attempt", models.PositiveIntegerField(null=True)),
                ("at", models.DateTimeField()),
                ("mark", models.CharField(max_length=32)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="NotificationPreference",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("person", models.CharField(max_length=200, unique=True)),
                ("by_email", models.BooleanField(default=True)),
                ("kinds", models.TextField(default="[]")),
                (
                    "about",
                    models.CharField(
                        choices=[("everything", "Everything"), ("mine", "Mine"), ("chosen", "Chosen")],
                        default="everything",
                        max_length=10,
                    ),
                ),
                ("workflows", models.TextField(default="[]")),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=2000)),
                ("secret", models.CharField(max_length=63)),
                ("kinds", models.TextField(default="[]")),
                ("is_on", models.BooleanField(default=True)),
                ("created_by", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                ("removed_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["id"],
                "permissions": [("manage_webhook", "Can add, switch and remove webhooks")],
            },
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("type__in", ("question_asked", "question_reminded", "run_blocked", "run_failed"))),
                fields=["at"],
                name="event_told",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["at"], name="notification_by_moment"),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(fields=("run", "event"), name="notification_event_once"),
        ),
        migrations.AddField(
            model_name="delivery",
            name="notification",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="workflows.notification"
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationpreference",
            constraint=models.CheckConstraint(
                condition=models.Q(("about__in", ["everything", "mine", "chosen"])), name="preference_about_known"
            ),
        ),
        migrations.AddField(
            model_name="webhook",
            name="workflow",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="webhooks", to="workflows.workflow"
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="webhook",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="deliveries",
                to="workflows.webhook",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", "waiting")), fields=["webhook", "due_ms"], name="delivery_due"
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["person", "-id"], name="delivery_by_person"),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("webhook", None)),
                fields=("notification", "person", "round"),
                name="delivery_person_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("webhook__isnull", False)),
                fields=("notification", "webhook", "round"),
                name="delivery_webhook_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["waiting", "delivered", "given_up", "dropped"])),
                name="delivery_status_known",
            ),
        ),
        migrations.RunPython(give_permissions, migrations.RunPython.noop, elidable=False),
        migrations.RunPython(leave_the_past_alone, migrations.RunPython.noop, elidable=False),
    ]
