"""What a run has done at each step of its plan: the states beside the nodes of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max, Q

from workflows.models import Run, Scope, Visit
from workflows.queries.graph import NodeState
from workflows.queries.timeline import Row
from workflows.statuses import BLOCKING_CAUSES, ScopePhase, VisitStatus, WaitsFor


@dataclass(slots=True)
class _Tally:
    visits: int = 0
    last: int = 0
    last_word: str = ""
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: int = 0
    open: int = 0


def graph_states(run: Run, rows: Iterable[Row], href: Callable[[int], str]) -> dict[str, NodeState]:
    """States by the id of the step. ``rows`` are those of the timeline, from which the items of maps are counted;
    ``href`` gives the address of a visit. Two queries."""
    tallies = _tallies(run.pk)
    now = {} if run.is_final else _now(run.pk)
    items = _items(rows)
    found = {}
    for step, tally in tallies.items():
        done, total = items.get(step, (None, None))
        found[step] = NodeState(
            status=_status(tally, now.get(step, set()), is_over=run.is_final),
            visits=tally.visits,
            done=done,
            total=total,
            href=href(tally.last),
            outcomes=dict(tally.outcomes),
            words=f"{tally.failed} failed" if tally.failed and tally.visits > 1 else "",
        )
    return found


def _tallies(run_id: int) -> dict[str, _Tally]:
    """Visits by step, with how often each outcome was taken."""
    grouped = Visit.objects.filter(run_id=run_id).values("step", "status", "outcome").order_by()
    found: dict[str, _Tally] = defaultdict(_Tally)
    for row in grouped.annotate(count=Count("pk"), last=Max("number"), failed=Count("pk", filter=~Q(error=""))):
        _count(found[row["step"]], row)
    return dict(found)


def _count(tally: _Tally, row: Mapping[str, Any]) -> None:
    tally.visits += row["count"]
    tally.failed += row["failed"]
    if row["outcome"]:
        tally.outcomes[row["outcome"]] += row["count"]
    if row["status"] == VisitStatus.OPEN:
        tally.open += row["count"]
    if row["last"] > tally.last:
        tally.last = row["last"]
        is_failed = row["failed"] == row["count"]
        tally.last_word = (
            row["outcome"] if row["outcome"] in ("skipped", "cancelled") else "failed" if is_failed else "ok"
        )


def _now(run_id: int) -> dict[str, set[str]]:
    """What the live scopes do at each step: running, or what they wait for."""
    rows = Scope.objects.filter(run_id=run_id, outcome="").exclude(visit=None, phase=ScopePhase.READY)
    found: dict[str, set[str]] = defaultdict(set)
    for step, phase, waits_for in rows.values_list("step", "phase", "waits_for").distinct():
        if phase == ScopePhase.WAITING:
            found[step].add(waits_for)
        elif phase == ScopePhase.EFFECT:
            found[step].add("running")
    return found


def _status(tally: _Tally, now: set[str], *, is_over: bool) -> str:
    if now & BLOCKING_CAUSES:
        return "blocked"
    if WaitsFor.PEOPLE in now:
        return "people"
    if "running" in now or WaitsFor.JOIN in now:
        return "running"
    if now:
        return "waiting"
    if tally.open:
        return "stopped" if is_over else "running"
    return tally.last_word or "ok"


def _items(rows: Iterable[Row]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row.fold is not None and row.kind == "map":
            done, total = found.get(row.step, (0, 0))
            found[row.step] = (done + row.fold.counts.ended, total + row.fold.counts.total)
    return found
