"""Workflow and Plan: a named procedure and its frozen versions."""

from __future__ import annotations

from django.db import models

from workflows.models.columns import digest_column, name_column
from workflows.models.guard import GuardedManager


class Workflow(models.Model):
    """A named procedure. ``current`` is the plan that new runs take; None until a version was published."""

    name = name_column(unique=True)
    title = models.TextField(blank=True, default="")
    current = models.ForeignKey("Plan", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    objects = GuardedManager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return str(self.name)


class Plan(models.Model):
    """One frozen version: canonical document and SHA-256, immutable.

    ``version`` counts the published versions of a workflow from 1; None marks a private version, made by running a
    file, which never becomes current.
    """

    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="plans")
    version = models.PositiveIntegerField(null=True)
    hash = digest_column()
    document = models.TextField(help_text="canonical JSON (RFC 8785)")
    source = models.TextField(help_text="the file as it was written")
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    objects = GuardedManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workflow", "version"], name="plan_version_once"),
        ]
        indexes = [models.Index(fields=["workflow", "hash"], name="plan_by_hash")]

    def __str__(self) -> str:
        return f"{self.workflow_id} v{self.version}" if self.version else f"{self.workflow_id} {self.hash[:12]}"
