"""Scope: one sequential thread of control in a run, and its variables."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workflows.models.columns import RunRow, digest_column, millis_column, name_column
from workflows.statuses import ScopeKind, ScopePhase, Section, WaitsFor


class Scope(RunRow):
    """Where a thread of control stands.

    ``step`` is the step to enter next (phase ready, ``visit`` None), the one being worked on (``visit`` set), or ""
    when the list is at its end. ``parent_visit`` is the visit whose body this scope is; ``input_digest`` names the
    parameters of a block. ``stopping`` says why the bodies of its present visit end early ("" while they do not).
    ``error`` is JSON ``{code, step, message}`` of a scope that failed.
    """

    path = models.TextField(default="")
    kind = models.CharField(max_length=10, choices=ScopeKind.choices, default=ScopeKind.ROOT)
    section = models.CharField(max_length=12, choices=Section.choices, default=Section.MAIN)
    phase = models.CharField(max_length=10, choices=ScopePhase.choices)
    step = name_column(default="", blank=True)
    visit = models.PositiveIntegerField(null=True)
    last_step = name_column(default="", blank=True)
    waits_for = models.CharField(max_length=12, choices=WaitsFor.choices, default="", blank=True)
    wake_at_ms = millis_column(null=True)
    parent_visit = models.PositiveIntegerField(null=True)
    index = models.PositiveIntegerField(null=True)
    key = models.TextField(default="", blank=True)
    input_digest = digest_column(null=True)
    stopping = models.CharField(max_length=12, default="", blank=True)
    outcome = models.CharField(max_length=63, default="", blank=True)
    output_digest = digest_column(null=True)
    error = models.TextField(default="", blank=True)
    revision_created = models.PositiveBigIntegerField()
    inherited = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "path"], name="scope_path_once"),
            models.CheckConstraint(condition=Q(phase__in=ScopePhase.values), name="scope_phase_known"),
            models.CheckConstraint(condition=Q(section__in=Section.values), name="scope_section_known"),
        ]
        indexes = [
            # by outcome, which is set once at the end: a condition on the phase, which changes with every step, would
            # make PostgreSQL write all indexes of the row anew each time
            models.Index(fields=["run"], name="scope_live", condition=Q(outcome="")),
            models.Index(
                fields=["run", "parent_visit"], name="scope_by_parent", condition=Q(parent_visit__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.path or '(root)'}"


class Fanout(RunRow):
    """What a map or parallel visit runs over: write-once, 1:1 with the visit. The list itself is a payload.

    How many items have started or ended is counted from their scopes.
    """

    visit = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    items_digest = digest_column()
    revision_created = models.PositiveBigIntegerField()
    inherited = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "visit"], name="fanout_visit_once")]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.visit} over {self.total}"


class ScopeVars(RunRow):
    """The variables of a scope: canonical JSON of a mapping, in a row of its own since only ``assign`` changes it."""

    path = models.TextField(default="")
    values = models.TextField(default="{}")

    class Meta:
        verbose_name = verbose_name_plural = "variables of scopes"
        constraints = [models.UniqueConstraint(fields=["run", "path"], name="scopevars_path_once")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.path or '(root)'}"
