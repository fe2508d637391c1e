"""ControlMessage: what people and programs say to a run, without its lease."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workflows.models.columns import RunRow, digest_column
from workflows.statuses import ControlKind


class ControlMessage(RunRow):
    """``sequence`` is the number of the event of its acceptance. A request id is unique within its run."""

    request_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=12, choices=ControlKind.choices)
    payload = models.TextField(default="{}")
    digest = digest_column()
    sender = models.CharField(max_length=200)
    sequence = models.PositiveBigIntegerField()
    accepted_at = models.DateTimeField()
    consumed_by = models.CharField(max_length=40, default="", blank=True)
    consumed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["run", "sequence"]
        constraints = [
            models.UniqueConstraint(fields=["run", "request_id"], name="control_request_once"),
            models.CheckConstraint(condition=Q(kind__in=ControlKind.values), name="control_kind_known"),
        ]
        indexes = [models.Index(fields=["run"], name="control_pending", condition=Q(consumed_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.run_id} {self.kind} {self.sequence}"
