"""Interrupt and Vote: a question to people, and what each of them said."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from workflows.models.columns import RunRow, digest_column, millis_column
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction
from workflows.statuses import InterruptKind, InterruptStatus


class InterruptManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swap of an interrupt: it is answered, expires or is closed once. The caller has locked the run."""

    def close(self, *, run_id: int, visit: int, status: InterruptStatus, **columns: Any) -> bool:
        """From open to ``status``; False when it is not open any more."""
        require_ledger_transaction()
        this = self.filter(run_id=run_id, visit=visit, status=InterruptStatus.OPEN)
        return bool(this.update(status=status, **columns))


class Interrupt(RunRow):
    """One question of one attempt. People name it by its visit, of which at most one question is open.

    ``form``, ``choices``, ``audience``, ``not_by`` and ``answer`` are JSON; what is shown is a payload whose digest
    each vote repeats. ``deadline_ms`` None: it never expires.
    """

    visit = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=InterruptKind.choices)
    status = models.CharField(max_length=10, choices=InterruptStatus.choices, default=InterruptStatus.OPEN)
    ask = models.TextField()
    shown_digest = digest_column(null=True)
    form = models.TextField(default="[]")
    choices = models.TextField(default="[]")
    audience = models.TextField(default="{}")
    not_by = models.TextField(default="[]")
    quorum = models.PositiveIntegerField(default=1)
    deadline_ms = millis_column(null=True)
    remind_ms = millis_column(null=True)
    answer = models.TextField(default="", blank=True)
    answered_by = models.CharField(max_length=200, default="", blank=True)
    answered_at = models.DateTimeField(null=True)
    asked_at = models.DateTimeField()
    revision_created = models.PositiveBigIntegerField()
    revision_settled = models.PositiveBigIntegerField(null=True)
    inherited = models.BooleanField(default=False)

    objects: ClassVar[InterruptManager] = InterruptManager()

    class Meta:
        ordering = ["run", "visit", "attempt"]
        constraints = [
            models.UniqueConstraint(fields=["run", "visit", "attempt"], name="interrupt_attempt_once"),
            models.UniqueConstraint(
                fields=["run", "visit"], name="interrupt_open_once", condition=Q(status=InterruptStatus.OPEN)
            ),
            models.CheckConstraint(condition=Q(status__in=InterruptStatus.values), name="interrupt_status_known"),
        ]
        indexes = [models.Index(fields=["deadline_ms"], name="interrupt_open", condition=Q(status="open"))]
        permissions = [("answer_interrupt", "Can answer questions and approvals")]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.visit} {self.kind} {self.status}"


class Vote(RunRow):
    """What one person said to one question; each person counts once."""

    visit = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    voter = models.CharField(max_length=200)
    recorded_by = models.CharField(max_length=200, help_text="who wrote it down, e.g. shell:root as alice")
    decision = models.CharField(max_length=63)
    comment = models.TextField(default="", blank=True)
    answer = models.TextField(default="{}")
    shown_digest = digest_column(null=True)
    voted_at = models.DateTimeField()
    revision_created = models.PositiveBigIntegerField()
    inherited = models.BooleanField(default=False)

    class Meta:
        ordering = ["run", "visit", "attempt", "id"]
        constraints = [models.UniqueConstraint(fields=["run", "visit", "attempt", "voter"], name="vote_once")]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.visit} {self.voter}: {self.decision}"
