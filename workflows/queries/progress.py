"""What a view of a running run needs to know beside its events: names, places of steps, and how maps stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count

from workflows.definitions.plan import Plan, StepPlan
from workflows.engine.memory import read_plan
from workflows.engine.paths import visit_path
from workflows.models import Fanout, Run, Scope, Visit
from workflows.queries.runs import find_run
from workflows.statuses import ScopeKind, ScopePhase, VisitStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Where the steps of a plan may run.

    ``members``: the steps that stand directly in the bodies of a map. ``outermost``: the maps that are not inside of
    another one and in which a step may run. ``nested``: the steps that never run in the main thread of a run.
    """

    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outermost: Mapping[str, frozenset[str]] = field(default_factory=dict)
    nested: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVisit:
    number: int
    step: str
    path: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMap:
    """How a map stands that has not joined. The items that are neither ended nor running have not started."""

    visit: int
    total: int
    ok: int
    failed: int
    cancelled: int


def run_name(run_id: int) -> str:
    """The name of a run's workflow. Raises ``run.not_found``."""
    name: str = find_run(run_id).workflow.name
    return name


def depth_of_run(run_id: int) -> int:
    """How many runs a run is below: 0 for one that is no child run. Raises ``run.not_found``."""
    return int(find_run(run_id).depth)


def shape_of_run(run_id: int) -> Shape:
    """Raises ``run.not_found``, ``plan.corrupt``."""
    find_run(run_id)
    return shape_of(read_plan(Run.objects.select_related("plan").get(pk=run_id).plan))


def shape_of(plan: Plan) -> Shape:
    callers: dict[str, list[StepPlan]] = defaultdict(list)
    for step in plan.steps.values():
        for body in step.bodies.values():
            if body.kind == "block":
                callers[body.owner].append(step)
    return Shape(
        members={
            step.id: frozenset(member.id for body in step.bodies.values() for member in body.steps)
            for step in plan.steps.values()
            if step.kind == "map"
        },
        outermost={step.id: outermost_maps(plan, step, callers) for step in plan.steps.values()},
        nested=frozenset(step.id for step in plan.steps.values() if step.body.kind != "section"),
    )


def outermost_maps(plan: Plan, step: StepPlan, callers: Mapping[str, list[StepPlan]]) -> frozenset[str]:
    """The outermost maps around a step; a block may be called from several places."""
    if step.body.kind == "section":
        return frozenset()
    around = callers[step.body.owner] if step.body.kind == "block" else [plan.steps[step.body.owner]]
    found: set[str] = set()
    for container in around:
        further = outermost_maps(plan, container, callers)
        found |= further or ({container.id} if container.kind == "map" else set())
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A path such as ``each[3]/fetch``, and index and key of its item if it is directly in a map."""

    path: str
    item: Mapping[str, Any] | None


def visit_places(run_id: int, numbers: Collection[int]) -> dict[int, Placed]:
    """Where visits are. Two queries."""
    rows = list(Visit.objects.filter(run_id=run_id, number__in=list(numbers)))
    items = _items(run_id, {row.scope for row in rows})
    return {row.number: Placed(path=_path(row), item=items.get(row.scope)) for row in rows}


def _path(row: Visit) -> str:
    return visit_path(row.scope, row.step, row.round or 1)


def _items(run_id: int, scopes: Collection[str]) -> dict[str, dict[str, Any]]:
    rows = Scope.objects.filter(run_id=run_id, kind=ScopeKind.ITEM, path__in=list(scopes))
    return {path: {"index": index, "key": key} for path, index, key in rows.values_list("path", "index", "key")}


def open_visits(run_id: int) -> list[OpenVisit]:
    """The visits that have begun and not ended."""
    rows = Visit.objects.filter(run_id=run_id, status=VisitStatus.OPEN).order_by("number")
    return [
        OpenVisit(
            number=row.number,
            step=row.step,
            path=visit_path(row.scope, row.step, row.round or 1),
            started_at=row.started_at,
        )
        for row in rows
    ]


def open_maps(run_id: int) -> list[OpenMap]:
    """The maps and branches that have not joined, with the number of their items by outcome."""
    opened = Visit.objects.filter(run_id=run_id, status=VisitStatus.OPEN).values("number")
    totals = dict(Fanout.objects.filter(run_id=run_id, visit__in=opened).values_list("visit", "total"))
    ended = Scope.objects.filter(run_id=run_id, phase=ScopePhase.ENDED, parent_visit__in=list(totals))
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for visit, outcome, count in ended.values_list("parent_visit", "outcome").annotate(count=Count("id")).order_by():
        counts[visit][outcome] = count
    found = []
    for visit, total in totals.items():
        ended_as = {name: counts[visit].get(name, 0) for name in ("ok", "failed", "cancelled")}
        found.append(OpenMap(visit=visit, total=total, **ended_as))
    return found
