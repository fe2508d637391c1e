"""Keys of programs."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0007_notifications")]

    operations = []
