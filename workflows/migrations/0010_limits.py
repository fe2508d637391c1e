"""Rates of limits, runs that start later, and what the run list sorts by."""

from __future__ import annotations

from django.contrib.auth.management import create_permissions
from django.db import migrations, models

from workflows.models.error_code import ErrorCode


def let_see_starts(apps, schema_editor):
    """Who may look at slots may look at the starts that a rate counts."""
    using = schema_editor.connection.alias
    config = apps.get_app_config("workflows")
    config.models_module = True  # permissions come into being after all migrations, which is too late for the groups
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    starts = permissions.get(codename="view_limitstart", content_type__app_label="workflows")
    groups = apps.get_model("auth", "Group").objects.using(using)
    of_slots = groups.filter(permissions__codename="view_slot", permissions__content_type__app_label="workflows")
    for group in of_slots.distinct():
        group.permissions.add(starts)


class Migration(migrations.Migration):
    dependencies = [("workflows", "0009_external")]

    operations = [
        migrations.AddField("limitgroup", "window_ms", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("run", "start_at_ms", models.BigIntegerField(null=True)),
        migrations.AddField("slot", "due_ms", models.BigIntegerField(null=True)),
        migrations.AddField("slot", "per_ms", models.BigIntegerField(null=True)),
        migrations.AddField("slot", "started_ms", models.BigIntegerField(null=True)),
        migrations.AddField("slot", "starts", models.PositiveIntegerField(null=True)),
        migrations.CreateModel(
            name="LimitStart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("started_ms", models.BigIntegerField()),
            ],
            options={"indexes": [models.Index(fields=["name", "-started_ms"], name="limitstart_latest")]},
        ),
        migrations.AddIndex("run", models.Index(fields=["started_at"], name="run_by_start")),
        migrations.AddIndex(
            "run",
            models.Index(
                ErrorCode(models.F("error")),
                models.F("id").desc(),
                name="run_by_error",
                condition=~models.Q(error=""),
            ),
        ),
        migrations.RunPython(let_see_starts, migrations.RunPython.noop, elidable=False),
    ]
