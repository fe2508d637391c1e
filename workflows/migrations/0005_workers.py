"""Workers and what they drive; indexes for those who look for runs."""

from __future__ import annotations

from django.contrib.auth.management import create_permissions
from django.db import migrations, models

#: Every role that looks at runs also sees who drives them.
ROLES = ("viewer", "operator", "approver", "admin")
KINDS = ["run_worker", "run_workflow", "celery"]


def extend_roles(apps, schema_editor):
    using = schema_editor.connection.alias
    config = apps.get_app_config("workflows")
    config.models_module = True
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None
    permission = apps.get_model("auth", "Permission").objects.using(using).get(codename="view_worker")
    for group in apps.get_model("auth", "Group").objects.using(using).filter(name__in=ROLES):
        group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [("workflows", "0004_indexes")]

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="host, process and boot nonce", max_length=200, unique=True)),
                (
                    "kind",
                    models.CharField(choices=[(kind, kind.replace("_", " ").title()) for kind in KINDS], max_length=12),
                ),
                ("pool", models.CharField(blank=True, default="", max_length=63)),
                ("drivers", models.PositiveIntegerField(help_text="runs it drives at once")),
                (
                    "engine_versions",
                    models.TextField(default="[]", help_text="JSON: versions of the engine whose runs it takes"),
                ),
                ("code_version", models.CharField(blank=True, default="", max_length=64)),
                ("started_ms", models.BigIntegerField()),
                ("beat_ms", models.BigIntegerField()),
                ("polled_ms", models.BigIntegerField()),
                ("is_stopping", models.BooleanField(default=False)),
                ("stopped_ms", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["beat_ms"], name="worker_by_beat")],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("kind__in", KINDS)), name="worker_kind_known"),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["workflow", "status", "-priority", "id"], name="run_ready"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["workflow", "wake_at_ms"],
                name="run_woken",
                condition=models.Q(("wake_at_ms__isnull", False)),
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(fields=["expires_ms"], name="lease_by_expiry"),
        ),
        migrations.RunPython(extend_roles, migrations.RunPython.noop, elidable=False),
    ]
