"""Event: a numbered fact of a run, the cursor of every reader."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q, Value

from workflows.models.columns import RunRow

#: The types of facts that people and programs are told of (``operations.notifications``).
TOLD_TYPES = ("question_asked", "question_reminded", "run_blocked", "run_failed")


class _Literal(Value):
    """A constant that stands in the statement itself: of a list of parameters SQLite cannot tell that it is the one of
    an index."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return f"'{self.value}'", ()


def is_told() -> Q:
    """Events of these types, by their index."""
    return Q(type__in=[_Literal(name) for name in TOLD_TYPES])


class Event(RunRow):
    """Numbers 1, 2, 3… without holes per run. ``payload`` is JSON ≤ 8 KiB: ids, statuses, reasons; never outputs."""

    sequence = models.PositiveBigIntegerField()
    revision = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    at = models.DateTimeField()
    actor = models.CharField(max_length=200, default="")
    visit = models.PositiveIntegerField(null=True)
    attempt = models.PositiveIntegerField(null=True)
    payload = models.TextField(default="{}")
    inherited = models.BooleanField(default=False)

    class Meta:
        ordering = ["run", "sequence"]
        constraints = [models.UniqueConstraint(fields=["run", "sequence"], name="event_sequence_once")]
        indexes = [models.Index(fields=["at"], name="event_told", condition=Q(type__in=TOLD_TYPES))]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.sequence} {self.type}"
