"""Rates of limits, and runs that start later."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0009_external")]

    operations = []
