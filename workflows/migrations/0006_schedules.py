"""Schedules and the times they fired."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0005_workers")]

    operations = []
