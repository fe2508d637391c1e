"""The rows of a timeline, read level by level: what is folded is counted and not read (promise WEB.3).

A large map is folded unless somebody opened it, and then a page of its items is read. A long chain of steps is read
from its end, a page at a time. So a run of many thousand steps costs as many queries as it has open levels.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from workflows.models import Attempt, Fanout, Run, Scope, Visit
from workflows.queries.timeline import (
    CONTAINERS,
    Counts,
    Facts,
    Fold,
    ScopeFacts,
    Timeline,
    TryFacts,
    VisitFacts,
    timeline,
)
from workflows.statuses import ScopePhase

#: The items of a larger map are folded.
MOST_OPEN = 20
#: Items of an opened map that are read at once, and failed items of a folded one.
ITEM_PAGE = 50
MOST_FAILURES = 5
#: Steps of one thread that are read at once, and steps of a level.
STEP_PAGE = 120
MOST_STEPS = 600
#: Maps that may be open at once.
MOST_MAPS = 8
MOST_LEVELS = 8

_VISIT = (
    "number", "scope", "step", "kind", "status", "started_at", "ended_at", "round", "outcome", "error", "attempts",
    "inherited",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a run is looked at. ``opened``: the first item shown, by map visit. ``before``: steps of the main thread
    with lower visit numbers; None: the latest. ``closed``: small maps that were folded by hand."""

    opened: Mapping[int, int] = field(default_factory=dict)
    closed: frozenset[int] = frozenset()
    before: int | None = None
    without_pauses: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeline:
    """``earlier``: the number to ask ``before`` for the steps that came before these; None: there are none."""

    timeline: Timeline
    earlier: int | None
    wanted: Wanted


def timeline_of(run: Run, wanted: Wanted, *, now: datetime) -> RunTimeline:
    """The timeline of a run as far as it is looked at; a query per table and open level."""
    reading = _Reading(run.pk, wanted)
    facts = reading.all()
    end = run.ended_at if run.is_final else None
    start = run.started_at or run.created_at
    if wanted.before is not None or reading.earlier is not None:
        start, end = _window(facts, start, end, wanted)
    made = timeline(facts, start=start, end=end, now=now, without_pauses=wanted.without_pauses)
    return RunTimeline(timeline=made, earlier=reading.earlier, wanted=wanted)


def _window(facts: Facts, start: datetime, end: datetime | None, wanted: Wanted) -> tuple[datetime, datetime | None]:
    """A page of a long run has an axis of its own."""
    if facts.visits:
        start = min(visit.started_at for visit in facts.visits)
    if wanted.before is not None:
        ends = [visit.ended_at for visit in facts.visits if visit.ended_at is not None]
        end = max(ends, default=end)
    return start, end


class _Reading:
    def __init__(self, run_id: int, wanted: Wanted) -> None:
        self.run_id = run_id
        self.wanted = wanted
        self.visits: list[VisitFacts] = []
        self.scopes: list[ScopeFacts] = []
        self.folds: dict[int, Fold] = {}
        self.earlier: int | None = None

    def all(self) -> Facts:
        level = self._main()
        for _ in range(MOST_LEVELS):
            self.visits += level
            bodies = self._bodies([visit for visit in level if visit.kind in CONTAINERS])
            if not bodies:
                break
            self.scopes += bodies
            level = self._inside([body.path for body in bodies])
        return Facts(visits=self.visits, tries=self._tries(), scopes=self.scopes, folds=self.folds)

    def _main(self) -> list[VisitFacts]:
        rows = Visit.objects.filter(run_id=self.run_id, scope="")
        if self.wanted.before is not None:
            rows = rows.filter(number__lt=self.wanted.before)
        found = list(rows.order_by("-number").values(*_VISIT)[: STEP_PAGE + 1])
        if len(found) > STEP_PAGE:
            found.pop()
            self.earlier = found[-1]["number"]
        return [_visit(row) for row in reversed(found)]

    def _inside(self, paths: Collection[str]) -> list[VisitFacts]:
        rows = Visit.objects.filter(run_id=self.run_id, scope__in=list(paths))
        return [_visit(row) for row in rows.order_by("number").values(*_VISIT)[:MOST_STEPS]]

    def _bodies(self, containers: list[VisitFacts]) -> list[ScopeFacts]:
        """The scopes below containers that are shown, and how each container is folded."""
        if not containers:
            return []
        numbers = [visit.number for visit in containers]
        totals = dict(Fanout.objects.filter(run_id=self.run_id, visit__in=numbers).values_list("visit", "total"))
        counts = self._counts(totals)
        paged: dict[int, Fold] = {}
        whole: list[int] = []
        for visit in containers:
            if visit.number not in counts:
                whole.append(visit.number)
                continue
            fold = self.folds[visit.number] = self._fold(visit.number, counts[visit.number])
            if fold.is_open and fold.is_large and len(paged) < MOST_MAPS:
                paged[visit.number] = fold
            elif fold.is_open and not fold.is_large:
                whole.append(visit.number)
        return [
            *self._scopes(Q(parent_visit__in=whole), MOST_STEPS),
            *(scope for number, fold in paged.items() for scope in self._page(number, fold)),
            *self._failures([number for number in counts if not self.folds[number].is_open]),
        ]

    def _fold(self, visit: int, counts: Counts) -> Fold:
        if counts.total <= MOST_OPEN:
            is_open = visit not in self.wanted.closed
            return Fold(counts=counts, is_open=is_open, shown=counts.total if is_open else 0)
        first = self.wanted.opened.get(visit)
        shown = 0 if first is None else min(ITEM_PAGE, max(counts.total - first, 0))
        return Fold(counts=counts, is_open=first is not None, is_large=True, first=first or 0, shown=shown)

    def _counts(self, totals: Mapping[int, int]) -> dict[int, Counts]:
        if not totals:
            return {}
        rows = Scope.objects.filter(run_id=self.run_id, parent_visit__in=list(totals))
        grouped = rows.values_list("parent_visit", "outcome").annotate(count=Count("id")).order_by()
        found: dict[int, dict[str, int]] = defaultdict(dict)
        for visit, outcome, count in grouped:
            found[visit][outcome or "running"] = count
        names = ("ok", "failed", "cancelled", "running")
        return {
            visit: Counts(total=total, **{name: found[visit].get(name, 0) for name in names})
            for visit, total in totals.items()
        }

    def _page(self, visit: int, fold: Fold) -> list[ScopeFacts]:
        page = Q(parent_visit=visit, index__gte=fold.first, index__lt=fold.first + fold.shown)
        return self._scopes(page, ITEM_PAGE)

    def _failures(self, folded: Collection[int]) -> list[ScopeFacts]:
        """Failed items are shown although their map is folded."""
        failed = [number for number in folded if self.folds[number].counts.failed]
        if not failed:
            return []
        return self._scopes(Q(parent_visit__in=failed, outcome="failed"), MOST_FAILURES)

    def _scopes(self, which: Q, most: int) -> list[ScopeFacts]:
        if which == Q(parent_visit__in=[]):
            return []
        columns = ("path", "kind", "parent_visit", "index", "key", "outcome", "phase")
        rows = Scope.objects.filter(which, run_id=self.run_id).order_by("parent_visit", "index", "path")
        return [_scope(row) for row in rows.values(*columns)[:most]]

    def _tries(self) -> list[TryFacts]:
        """The attempts of the visits that have any; the last ones of a visit that was tried very often."""
        tried = [visit.number for visit in self.visits if visit.attempts or visit.ended_at is None]
        rows = Attempt.objects.filter(run_id=self.run_id, visit__in=tried).order_by("visit", "number")
        columns = rows.values("visit", "number", "status", "started_at", "ended_at")
        return [TryFacts(**row) for row in columns[: MOST_STEPS * 4]]


def _visit(row: Mapping[str, Any]) -> VisitFacts:
    columns = {name: value for name, value in row.items() if name != "error"}
    code = json.loads(row["error"]).get("code", "") if row["error"] else ""
    return VisitFacts(**columns, error_code=code)


def _scope(row: Mapping[str, Any]) -> ScopeFacts:
    names = ("path", "kind", "parent_visit", "index", "key")
    outcome = row["outcome"] or ("ended" if row["phase"] == ScopePhase.ENDED else "")
    return ScopeFacts(**{name: row[name] for name in names}, outcome=outcome)


def children_of(run_id: int, visits: Collection[int], user: Any) -> dict[int, list[tuple[int, str]]]:
    """The child runs that these visits started, with their statuses, as far as ``user`` may see them."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    if visits:
        rows = Run.objects.visible_to(user).filter(parent_run_id=run_id, parent_visit__in=list(visits)).order_by("pk")
        for visit, child, status in rows.values_list("parent_visit", "pk", "status")[:MOST_STEPS]:
            found[visit].append((child, status))
    return found


def opened_from(texts: Iterable[str]) -> dict[int, int]:
    """Which maps are open, from texts such as ``5`` and ``5:50``; what is neither is ignored.

    >>> opened_from(["5", "9:50", "x", "9:-1"])
    {5: 0, 9: 50}
    """
    found = {}
    for text in texts:
        visit, _, first = text.partition(":")
        if _is_number(visit) and (not first or _is_number(first)):
            found[int(visit)] = int(first or 0)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
