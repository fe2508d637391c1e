"""The state of a run at a revision without its outputs, and how two of them differ, in words (promise REV.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.ledger.past import Past, Version, versions_of
from workflows.models import Run
from workflows.queries.run_events import EventLine, events_of_revision
from workflows.statuses import ScopePhase, VisitStatus, WaitsFor

#: Steps, variables and differences that are shown.
MOST_LISTED = 60
#: Characters of a variable that are shown.
MOST_VALUE = 400
_VISIT = ("scope", "step", "round", "status", "outcome", "error", "started_at", "ended_at", "revision_created")


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVisit:
    number: int
    path: str
    kind: str
    status: str
    outcome: str
    error_code: str
    revision: int

    @property
    def state(self) -> str:
        """Its status, and for one that has ended how."""
        if self.status != VisitStatus.SETTLED:
            return self.status
        if self.error_code:
            return "failed"
        return self.outcome if self.outcome in ("skipped", "cancelled") else "succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """``scope`` is the path of the thread it belongs to, "" for the run; ``value`` is JSON."""

    scope: str
    name: str
    value: str


#: What a thread does, and what it waits for.
_PHASES: dict[str, str] = {ScopePhase.READY: "goes on", ScopePhase.EFFECT: "runs", ScopePhase.ENDED: "over"}
_WAITS: dict[str, str] = {
    WaitsFor.JOIN: "what is in it",
    WaitsFor.PEOPLE: "an answer",
    WaitsFor.TIMER: "a moment",
    WaitsFor.RETRY: "its next attempt",
    WaitsFor.SIGNAL: "a signal",
    WaitsFor.CHILD: "a child run",
    WaitsFor.SLOT: "a place of its limit",
    WaitsFor.RECONCILE: "somebody who says what happened",
    WaitsFor.CODE: "missing code",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastScope:
    path: str
    kind: str
    phase: str
    step: str
    waits_for: str
    outcome: str

    @property
    def stands(self) -> str:
        """What it did, in words; a word of a newer version is told as it is."""
        if self.phase == ScopePhase.WAITING:
            return f"waits for {_WAITS.get(self.waits_for, self.waits_for)}"
        return _PHASES.get(self.phase, self.phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """``at`` is the moment of the revision; ``events`` are what happened in it."""

    revision: int
    current: int
    at: datetime
    status: str
    held: Mapping[str, Any] | None
    closing: Mapping[str, Any] | None
    variables: tuple[Variable, ...] = ()
    scopes: tuple[PastScope, ...] = ()
    visits: tuple[PastVisit, ...] = ()
    events: tuple[EventLine, ...] = field(default=())

    @property
    def open_visits(self) -> list[PastVisit]:
        return [visit for visit in self.visits if visit.status == VisitStatus.OPEN]

    @property
    def latest_settled(self) -> list[PastVisit]:
        """The settled steps that began last, newest first."""
        return [visit for visit in reversed(self.visits) if visit.status != VisitStatus.OPEN][:MOST_LISTED]

    @property
    def settled_count(self) -> int:
        return len(self.visits) - len(self.open_visits)

    @property
    def live_scopes(self) -> list[PastScope]:
        return [scope for scope in self.scopes if scope.phase != ScopePhase.ENDED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``what`` changed from ``before`` to ``after``; where there was nothing before, ``before`` is ""."""

    what: str
    before: str = ""
    after: str = ""
    visit: int | None = None


def run_state(run: Run, revision: int) -> RunState:
    """The state once ``revision`` was committed. Raises ``history.no_such_revision``."""
    return run_states(run, revision)[0]


def run_states(run: Run, *revisions: int) -> list[RunState]:
    """The states once each of ``revisions`` was committed; versions are read once for all of them. Raises
    ``history.no_such_revision``."""
    for revision in revisions:
        if not 1 <= revision <= run.revision:
            raise Refusal("history.no_such_revision", run=run.pk, revision=revision, current=run.revision)
    versions = list(versions_of(run.pk))
    return [_state(run, revision, versions) for revision in revisions]


def _state(run: Run, revision: int, versions: list[Version]) -> RunState:
    past = Past(run.pk, revision, versions=versions)
    state = past.state
    return RunState(
        revision=revision,
        current=run.revision,
        at=past.moment(),
        status=state["status"],
        held=json.loads(state["held"]) if state["held"] else None,
        closing=json.loads(state["closing"]) if state["closing"] else None,
        variables=tuple(_variables(past.rows("scopevars"))),
        scopes=tuple(_scope(path, row) for path, row in sorted(past.rows("scope").items())),
        visits=tuple(_visit(row) for row in past.visits(_VISIT)),
        events=tuple(events_of_revision(run, revision)),
    )


def differences(before: RunState, after: RunState) -> list[Difference]:
    """What is different in ``after``, the run first, then variables, threads and steps. Pure."""
    return [
        *_of_run(before, after),
        *_of_variables(before, after),
        *_of_scopes(before, after),
        *_of_visits(before, after),
    ]


def _of_run(before: RunState, after: RunState) -> Iterator[Difference]:
    if before.status != after.status:
        yield Difference(what="Status", before=before.status, after=after.status)
    if bool(before.held) != bool(after.held):
        yield Difference(what="Hold", before=_held(before), after=_held(after))
    if bool(before.closing) != bool(after.closing):
        closing = after.closing or {}
        yield Difference(what="Closing", before="", after=str(closing.get("status", "no longer")))


def _held(state: RunState) -> str:
    return f"held by {state.held.get('by', '')}" if state.held else "not held"


def _of_variables(before: RunState, after: RunState) -> Iterator[Difference]:
    former = {(one.scope, one.name): one.value for one in before.variables}
    for one in after.variables:
        was = former.get((one.scope, one.name), "")
        if was != one.value:
            of = f" of {one.scope}" if one.scope else ""
            yield Difference(what=f"Variable {one.name}{of}", before=was, after=one.value)


def _of_scopes(before: RunState, after: RunState) -> Iterator[Difference]:
    """Threads that began or ended; the main one is told as the status."""
    former = {one.path: one for one in before.scopes}
    for one in after.scopes:
        if not one.path:
            continue
        was = former.get(one.path)
        if was is None:
            yield Difference(what=f"{one.kind} {one.path}", after=one.outcome or "began")
        elif was.outcome != one.outcome:
            yield Difference(
                what=f"{one.kind} {one.path}", before=was.outcome or was.phase, after=one.outcome or "open"
            )


def _of_visits(before: RunState, after: RunState) -> Iterator[Difference]:
    former = {one.number: one for one in before.visits}
    for one in after.visits:
        was = former.get(one.number)
        if was is None or was.state != one.state:
            yield Difference(
                what=f"v{one.number} {one.path}",
                before="" if was is None else was.state,
                after=one.state,
                visit=one.number,
            )


def _variables(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Variable]:
    for path, row in sorted(rows.items()):
        for name, value in json.loads(row["values"]).items():
            text = json.dumps(value, ensure_ascii=False)
            short = text if len(text) <= MOST_VALUE else f"{text[: MOST_VALUE - 1]}…"
            yield Variable(scope=path, name=name, value=short)


def _scope(path: str, row: Mapping[str, Any]) -> PastScope:
    names = ("kind", "phase", "step", "waits_for", "outcome")
    return PastScope(path=path, **{name: row.get(name) or "" for name in names})


def _visit(row: Mapping[str, Any]) -> PastVisit:
    return PastVisit(
        number=row["number"],
        path=visit_path(row["scope"], row["step"], row["round"] or 1),
        kind=row["kind"],
        status=row["status"],
        outcome=row["outcome"],
        error_code=json.loads(row["error"]).get("code", "") if row["error"] else "",
        revision=row["revision_created"],
    )
