"""Workers and what they drive."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0004_indexes")]

    operations = []
