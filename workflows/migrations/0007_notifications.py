"""Notifications and their deliveries."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0006_schedules")]

    operations = []
