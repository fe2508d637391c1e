"""What of a run a person can choose for an action."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workflows.engine.paths import visit_path
from workflows.models import Plan, RowVersion, Run, Scope, Visit
from workflows.statuses import RunStatus, ScopePhase, WaitsFor

MOST_CHOICES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    visit: int
    path: str
    stands: str


def skippable(run: Run) -> list[Choice]:
    """The steps that can be skipped: the failed one of a failed run, or those that wait."""
    if run.status == RunStatus.FAILED:
        number = json.loads(run.error).get("visit") if run.error else None
        stands = {} if number is None else {number: "failed"}
    else:
        waiting = Scope.objects.filter(run=run, phase=ScopePhase.WAITING, visit__isnull=False)
        waiting = waiting.exclude(waits_for=WaitsFor.JOIN).order_by("visit")
        stands = {visit: f"waits: {cause}" for visit, cause in waiting.values_list("visit", "waits_for")[:MOST_CHOICES]}
    visits = Visit.objects.filter(run=run, number__in=list(stands)).order_by("number")
    return [
        Choice(visit=one.number, path=visit_path(one.scope, one.step, one.round or 1), stands=stands[one.number])
        for one in visits
    ]


def plan_versions(run: Run) -> list[int]:
    """The published versions of a run's workflow, the newest first."""
    rows = Plan.objects.filter(workflow=run.workflow_id, version__isnull=False).order_by("-version")
    return list(rows.values_list("version", flat=True)[:MOST_CHOICES])


def variables_at(run: Run, revision: int) -> list[tuple[str, str]]:
    """The variables at a cut by the names that edits use (``each[3].n``), with their values as JSON."""
    versions = RowVersion.objects.filter(run=run, table="scopevars", revision__lte=revision).order_by("revision", "pk")
    rows = {key: json.loads(json.loads(row)["values"]) for key, row in versions.values_list("key", "row")}
    named = [
        (f"{path}.{name}" if path else name, value) for path, row in sorted(rows.items()) for name, value in row.items()
    ]
    return [(name, json.dumps(value, ensure_ascii=False)) for name, value in named[:MOST_CHOICES]]
