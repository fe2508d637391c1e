"""Filters of the list of runs that would read every run: by key, by when it was started, by when it ended."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workflows", "0003_roles")]

    operations = [
        migrations.AddIndex(model_name="run", index=models.Index(fields=["concurrency_key", "-id"], name="run_by_key")),
        migrations.AddIndex(model_name="run", index=models.Index(fields=["created_at"], name="run_by_creation")),
        migrations.AddIndex(model_name="run", index=models.Index(fields=["ended_at"], name="run_by_end")),
    ]
