"""Payload: a large value, stored once and named by its digest."""

from __future__ import annotations

from django.db import models

from workflows.models.columns import digest_column
from workflows.models.guard import GuardedManager


class Payload(models.Model):
    """Canonical JSON text under the SHA-256 of its UTF-8 bytes; write-once, shared by everything that names it."""

    digest = digest_column(primary_key=True)
    text = models.TextField()
    size = models.PositiveIntegerField(help_text="bytes of the text")
    media_type = models.CharField(max_length=100, default="application/json")

    objects = GuardedManager()

    def __str__(self) -> str:
        return f"{self.digest[:12]} ({self.size} bytes)"
