"""WorkflowAccess: which groups may see a workflow and everything of it."""

from __future__ import annotations

from django.db import models


class WorkflowAccess(models.Model):
    """A workflow without such rows is open to everyone who may look at runs; with them, to members of these groups."""

    workflow = models.ForeignKey("workflows.Workflow", on_delete=models.CASCADE, related_name="access")
    group = models.ForeignKey("auth.Group", on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name_plural = "workflow access"
        constraints = [models.UniqueConstraint(fields=["workflow", "group"], name="workflow_access_once")]

    def __str__(self) -> str:
        return f"{self.workflow} for {self.group}"
