"""The timeline of a run: a row per step and per item, a bar per attempt. Pure; the rows are read elsewhere.

Retries are further bars on the row of their visit; waits and the time of people are bars of their own kind. Items,
branches and the steps of blocks stand below the step that contains them; large maps are folded, with their failures
shown. The table of the steps is made from the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from workflows.queries.timescale import Scale, Tick, scale
from workflows.statuses import AttemptStatus, ScopeKind, VisitStatus

PEOPLE = frozenset({"approval", "question"})
CONTAINERS = frozenset({"map", "parallel", "block"})
#: Narrower bars would not be seen.
THINNEST = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitFacts:
    number: int
    scope: str
    step: str
    kind: str
    status: str
    started_at: datetime
    ended_at: datetime | None = None
    round: int | None = 1
    outcome: str = ""
    error_code: str = ""
    attempts: int = 0
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TryFacts:
    visit: int
    number: int
    status: str
    started_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFacts:
    path: str
    kind: str
    parent_visit: int
    index: int | None = None
    key: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How the items of a map or the branches of a parallel step stand."""

    total: int = 0
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0

    @property
    def ended(self) -> int:
        return self.ok + self.failed + self.cancelled

    @property
    def waiting(self) -> int:
        """Items that have not begun."""
        return max(self.total - self.ended - self.running, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """What is shown of the items of a map or the branches of a parallel step: those from ``first`` on, ``shown`` of
    them. Folded: none, but failed ones. ``is_large``: its items are shown page by page."""

    counts: Counts
    is_open: bool = True
    is_large: bool = False
    first: int = 0
    shown: int = 0

    @property
    def next(self) -> int | None:
        """The index of the first item of the next page."""
        after = self.first + self.shown
        return after if self.is_open and after < self.counts.total else None

    @property
    def previous(self) -> int | None:
        """The index of the first item of the page before."""
        return max(self.first - max(self.shown, 1), 0) if self.is_open and self.first else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything a timeline is made from; ``folds`` by visit."""

    visits: Sequence[VisitFacts]
    tries: Sequence[TryFacts] = ()
    scopes: Sequence[ScopeFacts] = ()
    folds: Mapping[int, Fold] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """``kind`` is attempt, wait, people, container or point; ``state`` how it ended, or running or waiting. ``left``
    and ``width`` are hundredths of the axis."""

    kind: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    attempt: int | None = None
    left: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the timeline. ``visit`` None: an item or a branch, whose steps stand below. ``state`` is running,
    waiting, or how it ended; ``place`` names its item."""

    key: str
    depth: int
    step: str
    kind: str
    state: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    visit: int | None = None
    round: int = 1
    place: str = ""
    outcome: str = ""
    error_code: str = ""
    attempts: int = 0
    inherited: bool = False
    fold: Fold | None = None
    bars: tuple[Bar, ...] = ()

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    rows: tuple[Row, ...]
    scale: Scale
    ticks: tuple[Tick, ...]
    now: float | None = None


def timeline(
    facts: Facts,
    *,
    start: datetime,
    end: datetime | None,
    now: datetime,
    without_pauses: bool | None = None,
) -> Timeline:
    """The rows with their bars between ``start`` and ``end`` (None: the run is live, and goes on until ``now``)."""
    until = now if end is None else end
    rows = list(_Rows(facts, until if end is not None else now).all())
    begun = [row.started_at for row in rows if row.started_at is not None]
    start = min([start, *begun])
    axis = scale(start, until, _busy(rows, until), without_pauses=without_pauses)
    return Timeline(
        rows=tuple(_placed(row, axis, until) for row in rows),
        scale=axis,
        ticks=tuple(axis.ticks()),
        now=axis.place(now) if end is None else None,
    )


class _Rows:
    """The tree of a run, flattened: a step, then what is in it."""

    def __init__(self, facts: Facts, now: datetime) -> None:
        self.facts = facts
        self.now = now
        self.visits: dict[str, list[VisitFacts]] = defaultdict(list)
        self.tries: dict[int, list[TryFacts]] = defaultdict(list)
        self.bodies: dict[int, list[ScopeFacts]] = defaultdict(list)
        for visit in facts.visits:
            self.visits[visit.scope].append(visit)
        for one in facts.tries:
            self.tries[one.visit].append(one)
        for scope in facts.scopes:
            self.bodies[scope.parent_visit].append(scope)

    def all(self) -> Iterator[Row]:
        yield from self._scope("", 0)

    def _scope(self, path: str, depth: int) -> Iterator[Row]:
        for visit in self.visits[path]:
            yield self._visit(visit, depth)
            for body in sorted(self.bodies[visit.number], key=lambda scope: (scope.index or 0, scope.path)):
                if body.kind == ScopeKind.BLOCK:
                    yield from self._scope(body.path, depth + 1)
                else:
                    yield from self._body(body, depth + 1)

    def _body(self, body: ScopeFacts, depth: int) -> Iterator[Row]:
        """An item or a branch; one with a single step is told on the row of that step."""
        inside = self.visits[body.path]
        place = _place(body)
        if len(inside) == 1 and inside[0].kind not in CONTAINERS:
            yield self._visit(inside[0], depth, place=place)
            return
        ended = "succeeded" if body.outcome == "ok" else body.outcome
        state = ended or (_open_state(inside, self.tries) if inside else "queued")
        ends = [visit.ended_at for visit in inside]
        yield Row(
            key=f"s{body.parent_visit}-{body.index or 0}",
            depth=depth,
            step=place,
            kind=body.kind,
            state=state,
            started_at=min((visit.started_at for visit in inside), default=None),
            ended_at=max((end for end in ends if end is not None), default=None) if body.outcome else None,
            bars=_container_bar(inside, state, is_over=bool(body.outcome)),
        )
        yield from self._scope(body.path, depth + 1)

    def _visit(self, visit: VisitFacts, depth: int, *, place: str = "") -> Row:
        tries = self.tries[visit.number]
        return Row(
            key=f"v{visit.number}",
            depth=depth,
            step=visit.step,
            kind=visit.kind,
            state=visit_state(visit, tries),
            started_at=visit.started_at,
            ended_at=visit.ended_at,
            visit=visit.number,
            round=visit.round or 1,
            place=place,
            outcome=visit.outcome,
            error_code=visit.error_code,
            attempts=visit.attempts,
            inherited=visit.inherited,
            fold=self.facts.folds.get(visit.number),
            bars=tuple(_bars(visit, tries)),
        )


def visit_state(visit: VisitFacts, tries: Sequence[TryFacts] = ()) -> str:
    """How a visit stands in one word: running, waiting, or how it ended. What is not known is told raw (WEB.4)."""
    if visit.status == VisitStatus.REFUSED:
        return "refused"
    if visit.status == VisitStatus.SETTLED:
        if visit.outcome in ("skipped", "cancelled"):
            return visit.outcome
        return "failed" if visit.error_code else "succeeded"
    if visit.status != VisitStatus.OPEN:
        return visit.status
    if visit.kind in CONTAINERS:
        return "running"
    if visit.kind == "external":
        return "waiting"
    if visit.kind in PEOPLE or (tries and tries[-1].status == AttemptStatus.PAUSED and visit.kind != "workflow"):
        return "paused"
    return "running" if tries and tries[-1].status in (AttemptStatus.RUNNING, AttemptStatus.PAUSED) else "waiting"


def _open_state(inside: Sequence[VisitFacts], tries: Mapping[int, Sequence[TryFacts]]) -> str:
    """An item goes on as the last of its steps does; between two steps it is running."""
    state = visit_state(inside[-1], tries.get(inside[-1].number, ()))
    return state if inside[-1].status == VisitStatus.OPEN else "running"


def _place(body: ScopeFacts) -> str:
    """How people call an item or a branch."""
    if body.kind != ScopeKind.ITEM:
        return body.key or body.path.rpartition("/")[2]
    return f"[{body.index}]" if body.key in ("", str(body.index)) else f"[{body.index}] {body.key}"


# ---- bars ------------------------------------------------------------------------------------------------------------


def _bars(visit: VisitFacts, tries: Sequence[TryFacts]) -> Iterator[Bar]:
    if visit.kind in PEOPLE:
        state = visit_state(visit, tries)
        yield Bar(kind="people", state=state, started_at=visit.started_at, ended_at=visit.ended_at)
    elif visit.kind in CONTAINERS:
        state = visit_state(visit)
        yield Bar(kind="container", state=state, started_at=visit.started_at, ended_at=visit.ended_at)
    elif tries:
        yield from _tried(visit, tries)
    elif visit.status == VisitStatus.OPEN or visit.started_at != visit.ended_at:
        yield Bar(kind="wait", state="waiting", started_at=visit.started_at, ended_at=visit.ended_at)
    else:
        yield Bar(kind="point", state=visit_state(visit), started_at=visit.started_at, ended_at=visit.ended_at)


def _tried(visit: VisitFacts, tries: Sequence[TryFacts]) -> Iterator[Bar]:
    """The attempts, and the waits before, between and after them."""
    reached: datetime | None = visit.started_at
    for one in tries:
        if reached is not None and one.started_at > reached:
            yield Bar(kind="wait", state="waiting", started_at=reached, ended_at=one.started_at)
        is_elsewhere = visit.kind == "external" and one.status == AttemptStatus.PAUSED
        yield Bar(
            kind="wait" if is_elsewhere else "attempt",
            state="waiting" if is_elsewhere else "running" if one.status == AttemptStatus.PAUSED else one.status,
            started_at=one.started_at,
            ended_at=one.ended_at,
            attempt=one.number,
        )
        reached = one.ended_at
    if visit.status == VisitStatus.OPEN and reached is not None:
        yield Bar(kind="wait", state="waiting", started_at=reached, ended_at=None)


def _container_bar(inside: Sequence[VisitFacts], state: str, *, is_over: bool) -> tuple[Bar, ...]:
    if not inside:
        return ()
    ends = [visit.ended_at for visit in inside if visit.ended_at is not None]
    start = min(visit.started_at for visit in inside)
    end = max(ends) if is_over and ends else None
    return (Bar(kind="container", state=state, started_at=start, ended_at=end),)


def _busy(rows: Iterable[Row], until: datetime) -> list[tuple[datetime, datetime]]:
    """The times in which something was done: attempts, steps without attempts; containers whose items are not all
    here as a whole."""
    spans = []
    for row in rows:
        for bar in row.bars:
            if bar.kind in ("attempt", "point") or (bar.kind == "container" and _hides_items(row.fold)):
                spans.append((bar.started_at, bar.ended_at or until))
    return spans


def _hides_items(fold: Fold | None) -> bool:
    return fold is not None and fold.shown < fold.counts.total


def _placed(row: Row, axis: Scale, until: datetime) -> Row:
    bars = tuple(_placed_bar(bar, axis, until) for bar in row.bars)
    return Row(**{name: getattr(row, name) for name in Row.__slots__ if name != "bars"}, bars=bars)


def _placed_bar(bar: Bar, axis: Scale, until: datetime) -> Bar:
    left = axis.place(bar.started_at)
    width = max(axis.place(bar.ended_at or until) - left, 0.0 if bar.kind == "wait" else THINNEST)
    return Bar(
        kind=bar.kind,
        state=bar.state,
        started_at=bar.started_at,
        ended_at=bar.ended_at,
        attempt=bar.attempt,
        left=round(min(left, 100.0 - min(width, 100.0)), 3),
        width=round(width, 3),
    )
