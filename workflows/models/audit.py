"""AuditEntry: an action of a person, carried out or denied; append-only."""

from __future__ import annotations

from django.db import models

from workflows.models.guard import GuardedManager


class AuditEntry(models.Model):
    """``action`` is a verb of ``operations`` with its noun, as ``run.abandon``; ``actor`` is a name, not a reference,
    so that it outlives the user. ``run`` and ``workflow`` are kept by number and name for the same reason. ``data`` is
    JSON ≤ 8 KiB: ids and choices, never parameters, outputs or secrets.
    """

    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=40)
    allowed = models.BooleanField(default=True)
    run = models.PositiveBigIntegerField(null=True)
    workflow = models.CharField(max_length=63, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    data = models.TextField(default="{}")

    objects = GuardedManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["run", "-id"], name="audit_by_run"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
