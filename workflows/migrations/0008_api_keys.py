"""Keys of programs, and which roles may have and revoke them."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

ROLES = {
    "viewer": ("add_apikey",),
    "operator": ("add_apikey",),
    "approver": ("add_apikey",),
    "admin": ("add_apikey", "view_apikey", "revoke_apikey"),
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
            group.permissions.add(*permissions.filter(codename__in=codenames, content_type__app_label="workflows"))


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("workflows", "0007_notifications"),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.CharField(max_length=16, unique=True)),
                ("secret_hash", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=80)),
                ("scopes", models.TextField(default="[]")),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=200)),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("revoked_by", models.CharField(blank=True, default="", max_length=200)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("minute", models.PositiveBigIntegerField(default=0)),
                ("taken", models.PositiveIntegerField(default=0)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "ordering": ["-id"],
                "permissions": [("revoke_apikey", "Can revoke API keys of others")],
                "default_permissions": ("view", "add"),
                "indexes": [models.Index(fields=["owner", "-id"], name="api_key_by_owner")],
            },
        ),
        migrations.RunPython(extend_roles, migrations.RunPython.noop, elidable=False),
    ]
