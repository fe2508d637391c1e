"""The column of the next version: not null, with its default in the database (docs/upgrading.md)."""

from __future__ import annotations

from django.db import models

from workflows.models import Run, Visit

for model in (Run, Visit):
    models.TextField(default="written by new code", db_default="by old code").contribute_to_class(model, "remark")
