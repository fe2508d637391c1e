"""Work that other programs reserve."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0008_api_keys")]

    operations = []
