"""The next version's expansion of two tables that runs are written to all the time."""

from __future__ import annotations

import pkgutil

from django.db import migrations, models

from workflows import migrations as present

_LAST = max(module.name for module in pkgutil.iter_modules(present.__path__))


class Migration(migrations.Migration):
    dependencies = [("workflows", _LAST)]

    operations = [
        migrations.AddField(name, "remark", models.TextField(default="written by new code", db_default="by old code"))
        for name in ("run", "visit")
    ]
