"""Rates of limits, runs that start later, and what the run list sorts by."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

from workflows.models.error_code import ErrorCode

#: Whoever has the first permission gets the second: who looks at slots looks at the starts that a rate counts, and who
#: changes people sees and ends their sessions.
ALSO = (("view_slot", "view_limitstart"), ("change_user", "view_loginsession"), ("change_user", "end_session"))


def give_permissions(apps, schema_editor):
    using = schema_editor.connection.alias
    config = apps.get_app_config("workflows")
    config.models_module = True  # permissions come into being after all migrations, which is too late for the groups
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    groups = apps.get_model("auth", "Group").objects.using(using)
    for has, gets in ALSO:
        permission = permissions.get(codename=gets, content_type__app_label="workflows")
        for group in groups.filter(permissions__codename=has).distinct():
            group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("workflows", "0009_external"),
    ]

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
        migrations.AlterModelOptions(
            "scopevars", {"verbose_name": "variables of scopes", "verbose_name_plural": "variables of scopes"}
        ),
        migrations.RemoveIndex("slot", "slot_waiting"),
        migrations.AddIndex(
            "slot",
            models.Index(fields=["kind", "name", "id"], name="slot_in_line", condition=models.Q(number__isnull=True)),
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
        migrations.CreateModel(
            name="LoginSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_key", models.CharField(max_length=40, unique=True)),
                ("began_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("address", models.CharField(blank=True, max_length=45)),
                ("browser", models.CharField(blank=True, max_length=80)),
                (
                    "user",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "permissions": [("end_session", "Can end the sessions of others")],
                "default_permissions": ("view",),
            },
        ),
        migrations.RunPython(give_permissions, migrations.RunPython.noop, elidable=False),
    ]
