"""Workflows as they are: the list and the versions of one."""

from __future__ import annotations

from typing import Any

from django.db.models import Count

from workflows.models import Plan, Workflow
from workflows.queries.runs import moment_text


def workflow_list() -> list[dict[str, Any]]:
    """Every published workflow by name, with its current version and the number of its runs. One query."""
    columns = ("current__version", "current__hash", "current__created_at", "current__created_by")
    rows = Workflow.objects.filter(current__isnull=False).order_by("name")
    return [
        {
            "name": row["name"],
            "title": row["title"],
            "version": row["current__version"],
            "hash": row["current__hash"],
            "published_at": moment_text(row["current__created_at"]),
            "published_by": row["current__created_by"],
            "runs": row["run_count"],
        }
        for row in rows.annotate(run_count=Count("runs")).values("name", "title", "run_count", *columns)
    ]


def version_list(name: str) -> list[dict[str, Any]]:
    """The published versions of a workflow, the newest first. One query; empty when there are none."""
    rows = Plan.objects.filter(workflow__name=name, version__isnull=False).order_by("-version")
    counted = rows.annotate(run_count=Count("runs")).defer("document", "source")
    return [
        {
            "version": row.version,
            "hash": row.hash,
            "published_at": moment_text(row.created_at),
            "published_by": row.created_by,
            "runs": row.run_count,
        }
        for row in counted
    ]
