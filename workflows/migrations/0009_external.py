"""Work that other programs reserve."""

from __future__ import annotations

import django.db.models.deletion
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

#: What the roles that come with an installation may do with it; a team's own groups are left as they are.
ROLES = {
    "viewer": ("view_externaloffer",),
    "operator": ("view_externaloffer", "work_externaloffer"),
    "approver": ("view_externaloffer",),
    "admin": ("view_externaloffer", "work_externaloffer"),
}


def extend_roles(apps, schema_editor):
    using = schema_editor.connection.alias
    _make_permissions(apps, using)
    groups = apps.get_model("auth", "Group").objects.using(using)
    permissions = apps.get_model("auth", "Permission").objects.using(using)
    for name, codenames in ROLES.items():
        group = groups.filter(name=name).first()
        if group is not None:
            found = permissions.filter(codename__in=codenames, content_type__app_label="workflows")
            group.permissions.add(*found)


def _make_permissions(apps, using):
    """Permissions come into being after all migrations, which is too late for the groups."""
    config = apps.get_app_config("workflows")
    config.models_module = True
    create_permissions(config, apps=apps, verbosity=0, using=using)
    config.models_module = None


class Migration(migrations.Migration):
    dependencies = [("workflows", "0008_api_keys")]

    operations = [
        migrations.CreateModel(
            name="ExternalOffer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("visit", models.PositiveIntegerField()),
                ("attempt", models.PositiveIntegerField()),
                ("number", models.PositiveIntegerField(default=1)),
                ("queue", models.CharField(max_length=63)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("reserved", "Reserved"),
                            ("finished", "Finished"),
                            ("lapsed", "Lapsed"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("input_digest", models.CharField(max_length=64, null=True)),
                ("lease_ms", models.BigIntegerField()),
                ("timeout_ms", models.BigIntegerField(null=True)),
                ("offered_ms", models.BigIntegerField()),
                ("token_hash", models.CharField(blank=True, default="", max_length=64)),
                ("worker", models.CharField(blank=True, default="", max_length=200)),
                ("reserved_by", models.CharField(blank=True, default="", max_length=200)),
                ("reserved_ms", models.BigIntegerField(null=True)),
                ("lease_until_ms", models.BigIntegerField(null=True)),
                ("renewals", models.PositiveIntegerField(default=0)),
                ("outcome", models.CharField(blank=True, default="", max_length=63)),
                ("output_digest", models.CharField(max_length=64, null=True)),
                ("error", models.TextField(blank=True, default="")),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                (
                    "reason",
                    models.CharField(blank=True, default="", help_text="why it was withdrawn", max_length=200),
                ),
                ("ended_ms", models.BigIntegerField(null=True)),
                ("revision_created", models.PositiveBigIntegerField()),
                ("revision_settled", models.PositiveBigIntegerField(null=True)),
                ("inherited", models.BooleanField(default=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workflows.run",
                    ),
                ),
            ],
            options={
                "verbose_name": "external work",
                "verbose_name_plural": "external work",
                "ordering": ["run", "visit", "attempt", "number"],
                "permissions": [("work_externaloffer", "Can reserve and finish external work")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "open")), fields=["queue", "offered_ms"], name="offer_open"
                    ),
                    models.Index(
                        condition=models.Q(("status", "reserved")), fields=["lease_until_ms"], name="offer_reserved"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "visit", "attempt", "number"), name="offer_number_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["open", "reserved"])),
                        fields=("run", "visit"),
                        name="offer_live_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("inherited", False), models.Q(("token_hash", ""), _negated=True)),
                        fields=("token_hash",),
                        name="offer_token_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["open", "reserved", "finished", "lapsed", "withdrawn"])),
                        name="offer_status_known",
                    ),
                ],
            },
        ),
        migrations.RunPython(extend_roles, migrations.RunPython.noop, elidable=False),
    ]
