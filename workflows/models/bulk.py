"""BulkAction: one action on a set of runs that was fixed when it was made (promise ABR.4)."""

from __future__ import annotations

from django.db import models

from workflows.models.guard import GuardedManager


class BulkAction(models.Model):
    """``criteria`` is the JSON of the filter that made the set; ``request_id`` makes a second click find the first."""

    request_id = models.CharField(max_length=200, unique=True)
    action = models.CharField(max_length=40)
    criteria = models.TextField(default="{}")
    reason = models.TextField(default="", blank=True)
    actor = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    aborted_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = GuardedManager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class BulkItem(models.Model):
    """One run of the set. ``result`` is empty until it was its turn, ``taken`` and a moment (Unix milliseconds) while
    somebody works on it until then, and at last ``done`` or the code of the refusal."""

    bulk = models.ForeignKey(BulkAction, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    run = models.PositiveBigIntegerField()
    result = models.CharField(max_length=63, default="", blank=True)
    message = models.TextField(default="", blank=True)

    objects = GuardedManager()

    class Meta:
        ordering = ["bulk", "position"]
        constraints = [models.UniqueConstraint(fields=["bulk", "run"], name="bulk_run_once")]

    def __str__(self) -> str:
        return f"run {self.run}"
