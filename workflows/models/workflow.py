"""Workflow and Plan: a named procedure and its frozen versions."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from workflows.models.columns import digest_column, name_column
from workflows.models.guard import GuardedManager, GuardedQuerySet


def open_to(user: Any, workflow: str = "") -> Q:
    """What ``user`` may see: of a workflow whose access names no group, or one of theirs; superusers see everything.

    ``workflow`` is the name of the relation, empty for workflows themselves.
    """
    if user.is_superuser:
        return Q()
    path = f"{workflow}__access" if workflow else "access"
    return Q(**{f"{path}__isnull": True}) | Q(**{f"{path}__group__in": user.groups.all()})


class WorkflowQuerySet(GuardedQuerySet):
    def visible_to(self, user: Any) -> WorkflowQuerySet:
        """Workflows that a user may see; whether they may look at all is a permission (``view_workflow``)."""
        return self.filter(open_to(user)).distinct()


class WorkflowManager(models.Manager.from_queryset(WorkflowQuerySet)):  # type: ignore[misc]
    """Workflows have no swap of their own: their version is published under their lock."""


class Workflow(models.Model):
    """A named procedure. ``current`` is the plan that new runs take; None until a version was published."""

    name = name_column(unique=True)
    title = models.TextField(blank=True, default="")
    current = models.ForeignKey("Plan", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    objects = WorkflowManager()

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
        permissions = [("publish_plan", "Can publish versions of workflows")]

    def __str__(self) -> str:
        return f"{self.workflow_id} v{self.version}" if self.version else f"{self.workflow_id} {self.hash[:12]}"
