"""Attempt: one physical try of a visit. Append-only, settled exactly once."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from workflows.errors import Refusal
from workflows.models.columns import RunRow, digest_column
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction
from workflows.statuses import AttemptStatus


class AttemptManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of an attempt. The caller's transaction has fenced and locked the run."""

    def reserve(self, **columns: Any) -> Attempt:
        """Insert an attempt, usually a running one. The database refuses a second running attempt of a visit."""
        require_ledger_transaction()
        attempt: Attempt = self.create(**columns)
        return attempt

    def finish(
        self, *, run_id: int, visit: int, number: int, epoch: int, dispatch_id: str, digest: str, **columns: Any
    ) -> bool:
        """Settle a running attempt of this epoch; True when this call did it, False when it was already so.

        Raises ``attempt.conflict`` when it is settled with another digest, ``lease.lost`` when another epoch owns it.
        """
        require_ledger_transaction()
        this = self.filter(run_id=run_id, visit=visit, number=number)
        if this.filter(epoch=epoch, dispatch_id=dispatch_id, status=AttemptStatus.RUNNING).update(
            digest=digest, **columns
        ):
            return True
        row = this.first()
        if row is not None and row.epoch != epoch:
            raise Refusal("lease.lost", run=run_id, reason=f"attempt v{visit}.{number} belongs to epoch {row.epoch}")
        if row is not None and row.digest == digest:
            return False
        raise Refusal("attempt.conflict", run=run_id, attempt=f"v{visit}.{number}")

    def interrupt(self, *, run_id: int, visit: int, number: int, **columns: Any) -> bool:
        """Mark a running attempt whose owner is gone. The caller holds a newer epoch, or the run has no owner."""
        require_ledger_transaction()
        return bool(
            self.filter(run_id=run_id, visit=visit, number=number, status=AttemptStatus.RUNNING).update(
                status=AttemptStatus.INTERRUPTED, **columns
            )
        )

    def authorize(self, *, run_id: int, visit: int, number: int, authorization: str) -> None:
        """Record what a person decided about an interrupted attempt; once.

        Raises ``attempt.not_interrupted`` when there is nothing to decide or somebody has decided already.
        """
        require_ledger_transaction()
        this = self.filter(
            run_id=run_id, visit=visit, number=number, status=AttemptStatus.INTERRUPTED, authorization=""
        )
        if not this.update(authorization=authorization):
            raise Refusal("attempt.not_interrupted", run=run_id, visit=f"v{visit}")


class Attempt(RunRow):
    """``dispatch_id`` is the idempotency key handed to the effect: not unique, and never a handle.

    ``digest`` is that of the settlement, by which a repeated settlement is recognised. ``authorization`` is JSON: the
    decision of a person about an interrupted attempt. ``marks`` is a JSON list (uncertain, repaired, entered, late).
    """

    visit = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    dispatch_id = models.CharField(max_length=32)
    input_hash = digest_column()
    status = models.CharField(max_length=12, choices=AttemptStatus.choices)
    epoch = models.PositiveBigIntegerField()
    worker = models.CharField(max_length=200, default="", blank=True)
    outcome = models.CharField(max_length=63, default="", blank=True)
    output_digest = digest_column(null=True)
    late_outcome = models.CharField(max_length=63, default="", blank=True)
    late_output_digest = digest_column(null=True)
    error = models.TextField(default="", blank=True)
    log_digest = digest_column(null=True)
    digest = digest_column(default="", blank=True)
    marks = models.TextField(default="[]")
    authorization = models.TextField(default="", blank=True)
    revision_created = models.PositiveBigIntegerField()
    revision_settled = models.PositiveBigIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    inherited = models.BooleanField(default=False)

    objects: ClassVar[AttemptManager] = AttemptManager()

    class Meta:
        ordering = ["run", "visit", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "visit", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["run", "visit"], name="attempt_running_once", condition=Q(status=AttemptStatus.RUNNING)
            ),
            models.CheckConstraint(condition=Q(status__in=AttemptStatus.values), name="attempt_status_known"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.visit}.{self.number}"
