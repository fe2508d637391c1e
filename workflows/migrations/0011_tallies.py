"""Tallies: what the counters of the metrics read, and an index from which runs are counted."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workflows", "0010_limits")]

    operations = [
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("what", models.CharField(max_length=20)),
                ("kind", models.CharField(max_length=40)),
                ("result", models.CharField(blank=True, default="", max_length=12)),
                ("count", models.PositiveBigIntegerField()),
            ],
            options={
                "verbose_name_plural": "tallies",
                "ordering": ["what", "kind", "result"],
                "constraints": [models.UniqueConstraint(fields=["what", "kind", "result"], name="tally_once")],
            },
        ),
        migrations.AddIndex("run", models.Index(fields=["workflow", "status"], name="run_counted")),
    ]
