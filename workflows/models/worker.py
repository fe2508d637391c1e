"""Worker: a process that drives runs, as it told of itself. For people to look at: nothing is decided by these rows."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from workflows.models.columns import millis_column
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction
from workflows.statuses import WorkerKind


class WorkerQuerySet(GuardedQuerySet):
    def at_work(self, *, since_ms: int) -> WorkerQuerySet:
        """Workers that have not stopped and gave a sign of life at this moment or later."""
        return self.filter(stopped_ms=None, beat_ms__gte=since_ms)


class WorkerManager(models.Manager.from_queryset(WorkerQuerySet)):  # type: ignore[misc]
    """The swaps of a worker's row; only the process of that name calls them."""

    def beat(self, name: str, *, now_ms: int, polled_ms: int, is_stopping: bool) -> bool:
        """Renew the sign of life. False when there is no row of that name, or it has stopped."""
        require_ledger_transaction()
        changed = self.filter(name=name, stopped_ms=None).update(
            beat_ms=now_ms, polled_ms=polled_ms, is_stopping=is_stopping
        )
        return bool(changed)

    def stop(self, name: str, *, now_ms: int) -> bool:
        """Say that it has ended. False when that was said before, or there is no row of that name."""
        require_ledger_transaction()
        return bool(self.filter(name=name, stopped_ms=None).update(stopped_ms=now_ms, is_stopping=True))

    def forget(self, *, silent_before_ms: int, stopped_before_ms: int) -> int:
        """Remove the rows of those who are silent or stopped since before these moments; how many."""
        require_ledger_transaction()
        gone = Q(stopped_ms__lt=stopped_before_ms) | Q(beat_ms__lt=silent_before_ms)
        return int(self.filter(gone).delete()[0])


class Worker(models.Model):
    """One process. ``name`` is the owner that its leases name; ``beat_ms`` moves with its heartbeat thread and
    ``polled_ms`` with the loop that looks for work, so a worker whose loop hangs beats without polling."""

    name = models.CharField(max_length=200, unique=True, help_text="host, process and boot nonce")
    kind = models.CharField(max_length=12, choices=WorkerKind.choices)
    pool = models.CharField(max_length=63, default="", blank=True)
    drivers = models.PositiveIntegerField(help_text="runs it drives at once")
    engine_versions = models.TextField(default="[]", help_text="JSON: versions of the engine whose runs it takes")
    code_version = models.CharField(max_length=64, default="", blank=True)
    started_ms = millis_column()
    beat_ms = millis_column()
    polled_ms = millis_column()
    is_stopping = models.BooleanField(default=False)
    stopped_ms = millis_column(null=True)

    objects: Any = WorkerManager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(kind__in=WorkerKind.values), name="worker_kind_known")]
        indexes = [models.Index(fields=["beat_ms"], name="worker_by_beat")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
