"""Visit: one logical entry of a step in a scope."""

from __future__ import annotations

from django.db import models

from workflows.models.columns import RunRow, digest_column, name_column
from workflows.statuses import Access, VisitStatus


class Visit(RunRow):
    """Numbered 1, 2, 3… per run; settled once (a reopened one again, with a version of its former row).

    ``round`` is its number within step and scope; None for a refused entry, which counts for no round.
    ``error`` is JSON ``{code, message}`` as expressions see it. ``retries`` counts the attempts each retry policy has
    taken, JSON list. ``output_digest`` None is the value null.
    """

    number = models.PositiveIntegerField()
    scope = models.TextField(default="")
    step = name_column()
    round = models.PositiveIntegerField(null=True)
    kind = models.CharField(max_length=20)
    access = models.CharField(max_length=10, default="", blank=True)
    status = models.CharField(max_length=10, choices=VisitStatus.choices)
    outcome = models.CharField(max_length=63, default="", blank=True)
    output_digest = digest_column(null=True)
    detail_digest = digest_column(null=True, help_text="items and counts of a fan-out")
    error = models.TextField(default="", blank=True)
    exit_code = models.IntegerField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    retries = models.TextField(default="", blank=True)
    reopened = models.PositiveIntegerField(default=0, help_text="how often an operator un-settled it")
    revision_created = models.PositiveBigIntegerField()
    revision_settled = models.PositiveBigIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    inherited = models.BooleanField(default=False)

    class Meta:
        ordering = ["run", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="visit_number_once"),
            models.UniqueConstraint(fields=["run", "scope", "step", "round"], name="visit_round_once"),
            models.CheckConstraint(condition=models.Q(status__in=VisitStatus.values), name="visit_status_known"),
            models.CheckConstraint(condition=models.Q(access__in=["", *Access.values]), name="visit_access_known"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.number}"

    @property
    def revision_before(self) -> int:
        """The last revision of the run without this visit: where a fork *from* it cuts."""
        return self.revision_created - 1
