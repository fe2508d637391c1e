"""The steps of a run as a list, a page at a time: for tables, for paper, and for runs of any length."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Q

from workflows.engine.paths import visit_path
from workflows.models import Attempt, Run, Scope, Visit
from workflows.queries.timeline import VisitFacts, visit_state
from workflows.statuses import ScopeKind, VisitStatus

STEP_PAGE = 100
#: What the list can be narrowed to.
SHOWS = ("failed", "open", "succeeded", "skipped", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    number: int
    step: str
    path: str
    item: str
    kind: str
    state: str
    outcome: str
    error_code: str
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    inherited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPage:
    """``next`` and ``previous`` are the numbers to ask ``after`` for; None where there is nothing."""

    steps: tuple[Step, ...]
    after: int
    next: int | None
    names: tuple[str, ...]


def step_page(run: Run, *, after: int = 0, step: str = "", show: str = "") -> StepPage:
    """The visits numbered above ``after``, of one step or in one state if that is asked for. Four queries."""
    rows = Visit.objects.filter(run=run, number__gt=after)
    if step:
        rows = rows.filter(step=step)
    rows = rows.filter(_shown(show))
    found = list(rows.order_by("number")[: STEP_PAGE + 1])
    has_more, found = len(found) > STEP_PAGE, found[:STEP_PAGE]
    items = item_names(run.pk, {visit.scope for visit in found if visit.scope})
    tries = _tries(run.pk, [visit.number for visit in found])
    names = Visit.objects.filter(run=run).order_by("step").values_list("step", flat=True).distinct()
    return StepPage(
        steps=tuple(_step(visit, items.get(visit.scope, ""), tries.get(visit.number, 0)) for visit in found),
        after=after,
        next=found[-1].number if has_more else None,
        names=tuple(names),
    )


def item_names(run_id: int, paths: Iterable[str]) -> dict[str, str]:
    """How the items are called whose scopes these are."""
    rows = Scope.objects.filter(run_id=run_id, kind=ScopeKind.ITEM, path__in=list(paths))
    return {
        path: f"[{index}]" if key in ("", str(index)) else f"[{index}] {key}"
        for path, index, key in rows.values_list("path", "index", "key")
    }


def _tries(run_id: int, visits: list[int]) -> dict[int, int]:
    """How often each visit was tried: with those that run and those that were interrupted, which the step itself does
    not count."""
    rows = Attempt.objects.filter(run=run_id, visit__in=visits)
    return dict(rows.values("visit").annotate(last=Max("number")).values_list("visit", "last"))


def _shown(show: str) -> Q:
    match show:
        case "failed":
            return ~Q(error="")
        case "open":
            return Q(status=VisitStatus.OPEN)
        case "succeeded":
            return Q(status=VisitStatus.SETTLED, error="") & ~Q(outcome__in=("skipped", "cancelled"))
        case "skipped":
            return Q(outcome__in=("skipped", "cancelled"))
        case "refused":
            return Q(status=VisitStatus.REFUSED)
    return Q()


def _step(visit: Any, item: str, tries: int) -> Step:
    code = json.loads(visit.error).get("code", "") if visit.error else ""
    facts = VisitFacts(
        number=visit.number,
        scope=visit.scope,
        step=visit.step,
        kind=visit.kind,
        status=visit.status,
        started_at=visit.started_at,
        outcome=visit.outcome,
        error_code=code,
    )
    return Step(
        number=visit.number,
        step=visit.step,
        path=visit_path(visit.scope, visit.step, visit.round or 1),
        item=item,
        kind=visit.kind,
        state=visit_state(facts),
        outcome=visit.outcome,
        error_code=code,
        attempts=tries,
        started_at=visit.started_at,
        ended_at=visit.ended_at,
        inherited=visit.inherited,
    )
