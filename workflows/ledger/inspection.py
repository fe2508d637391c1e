"""Inspect a run: whether its rows tell one story (promise REV.3). Reads only; what the database's own constraints
cannot say about rows that refer to each other by (run, number) or (run, path) is said here.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Model

from workflows.facts import RunState, ScopeRow, column_names
from workflows.jsonvalue import digest
from workflows.ledger import inspection_waiting
from workflows.ledger.records import compact
from workflows.models import Attempt, ControlMessage, Event, Lease, Payload, RowVersion, Run, Scope, ScopeVars, Visit
from workflows.statuses import AttemptStatus, ScopePhase, VisitStatus

#: The events that end an attempt, by its status; an attempt has exactly one of them.
ENDS: dict[str, frozenset[str]] = {
    AttemptStatus.SUCCEEDED: frozenset({"step_succeeded", "step_failed", "step_retrying"}),
    AttemptStatus.FAILED: frozenset({"step_failed", "step_succeeded", "step_retrying"}),
    AttemptStatus.CANCELLED: frozenset({"step_cancelled", "step_succeeded", "step_failed", "step_skipped"}),
    AttemptStatus.INTERRUPTED: frozenset({"step_interrupted"}),
}
_OPEN = frozenset({AttemptStatus.RUNNING, AttemptStatus.PAUSED})
_SETTLEMENTS = ENDS[AttemptStatus.SUCCEEDED] | ENDS[AttemptStatus.CANCELLED]
_WHOLE_ROWS = {"run": column_names(RunState), "scope": column_names(ScopeRow), "scopevars": ("values",)}


def inspect_run(run_id: int) -> list[str]:
    """What is wrong with the rows of a run, one sentence each; empty when they agree. Raises ``Run.DoesNotExist``."""
    rows = _Rows(run_id)
    parts = (_numbers(rows), _visits(rows), _attempts(rows), _versions(rows), _ending(rows), _controls(rows))
    beside = (
        inspection_waiting.bodies(rows.run, rows.scopes, rows.visits),
        inspection_waiting.questions(rows.run, rows.visits, rows.attempts),
        inspection_waiting.places(rows.run, rows.scopes),
    )
    return [*(problem for part in (*parts, *beside) for problem in part), *_payloads(rows)]


class _Rows:
    """All rows of a run, read once."""

    def __init__(self, run_id: int) -> None:
        self.run = Run.objects.get(pk=run_id)
        self.lease = Lease.objects.filter(run_id=run_id).first()
        self.scopes = list(Scope.objects.filter(run_id=run_id).order_by("path"))
        self.variables = list(ScopeVars.objects.filter(run_id=run_id).order_by("path"))
        self.visits = list(Visit.objects.filter(run_id=run_id).order_by("number"))
        self.attempts = list(Attempt.objects.filter(run_id=run_id).order_by("visit", "number"))
        self.events = list(Event.objects.filter(run_id=run_id).order_by("sequence"))
        self.versions = list(RowVersion.objects.filter(run_id=run_id).order_by("revision", "id"))
        self.controls = list(ControlMessage.objects.filter(run_id=run_id).order_by("sequence"))


def _dense(numbers: Iterable[int], what: str) -> Iterator[str]:
    found = sorted(numbers)
    if found != list(range(1, len(found) + 1)):
        yield f"{what} are numbered {found} instead of 1 to {len(found)}"


def _numbers(rows: _Rows) -> Iterator[str]:
    run = rows.run
    yield from _dense((event.sequence for event in rows.events), "events")
    if run.next_event != len(rows.events) + 1:
        yield f"the next event is {run.next_event}, but there are {len(rows.events)}"
    revisions = [event.revision for event in rows.events]
    if revisions != sorted(revisions):
        yield "the revisions of the events do not grow"
    if set(revisions) != set(range(1, run.revision + 1)):
        without = sorted(set(range(1, run.revision + 1)) - set(revisions))
        beyond = sorted(set(revisions) - set(range(1, run.revision + 1)))
        yield f"revisions without an event: {without}; events beyond revision {run.revision}: {beyond}"
    for event in rows.events:
        if len(event.payload.encode()) > 8 * 1024:
            yield f"the payload of event {event.sequence} has more than 8 KiB"


def _visits(rows: _Rows) -> Iterator[str]:
    yield from _dense((visit.number for visit in rows.visits), "visits")
    if rows.run.visits != len(rows.visits):
        yield f"the run counts {rows.run.visits} visits, but there are {len(rows.visits)}"
    rounds: dict[tuple[str, str], list[int]] = defaultdict(list)
    at_work = {scope.visit for scope in rows.scopes if scope.phase != ScopePhase.ENDED and scope.visit is not None}
    for visit in rows.visits:
        if visit.round is not None:
            rounds[visit.scope, visit.step].append(visit.round)
        yield from _visit(rows, visit, at_work)
    for (_, step), numbers in rounds.items():
        yield from _dense(numbers, f"rounds of {step}")


def _visit(rows: _Rows, visit: Visit, at_work: set[int]) -> Iterator[str]:
    name, is_open = f"v{visit.number}", visit.status == VisitStatus.OPEN
    if (visit.status == VisitStatus.REFUSED) != (visit.round is None):
        yield f"{name} is {visit.status} with round {visit.round}"
    if is_open != (visit.revision_settled is None) or is_open != (visit.ended_at is None):
        yield f"{name} is {visit.status}, settled at revision {visit.revision_settled}, ended at {visit.ended_at}"
    if is_open != (visit.outcome == ""):
        yield f'{name} is {visit.status} with outcome "{visit.outcome}"'
    if is_open and visit.number not in at_work:
        yield f"{name} is open, but no scope is at it"
    if not is_open and visit.number in at_work:
        yield f"{name} is {visit.status}, but a scope is at it"
    yield from _revisions(rows, name, visit.revision_created, visit.revision_settled)


def _revisions(rows: _Rows, name: str, created: int, settled: int | None) -> Iterator[str]:
    if not 1 <= created <= (settled or created) <= rows.run.revision:
        yield f"{name} was created at revision {created} and settled at {settled} of {rows.run.revision}"


def _attempts(rows: _Rows) -> Iterator[str]:
    by_visit: dict[int, list[Attempt]] = defaultdict(list)
    told: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for event in rows.events:
        if event.visit is not None and event.attempt is not None:
            told[event.visit, event.attempt][event.type] += 1
    for attempt in rows.attempts:
        by_visit[attempt.visit].append(attempt)
        yield from _attempt(rows, attempt, told[attempt.visit, attempt.number])
    visits = {visit.number: visit for visit in rows.visits}
    in_effect = {scope.visit for scope in rows.scopes if scope.phase == ScopePhase.EFFECT}
    for number, attempts in by_visit.items():
        yield from _dense((attempt.number for attempt in attempts), f"attempts of v{number}")
        running = [attempt.number for attempt in attempts if attempt.status == AttemptStatus.RUNNING]
        if number not in visits:
            yield f"attempts of v{number}, which does not exist"
        elif visits[number].attempts > len(attempts):
            yield f"v{number} counts {visits[number].attempts} tries, but has {len(attempts)} attempts"
        if len(running) != (1 if number in in_effect else 0):
            at_work = "is" if number in in_effect else "is not"
            yield f"v{number} {at_work} in effect and has the running attempts {running}"
    for lonely in in_effect - set(by_visit):
        yield f"v{lonely} is in effect without an attempt"


def _attempt(rows: _Rows, attempt: Attempt, told: Counter[str]) -> Iterator[str]:
    name, is_open = f"v{attempt.visit}.{attempt.number}", attempt.status in _OPEN
    if is_open != (attempt.revision_settled is None) or is_open != (attempt.ended_at is None):
        yield f"{name} is {attempt.status}, settled at revision {attempt.revision_settled}"
    begun = told["step_started"] + told["question_asked"]
    if begun != 1 and not attempt.inherited:
        yield f"{name} has {begun} events that say that it began"
    ends = sum(told[type] for type in ENDS.get(attempt.status, ()))
    if ends != 1 and not (is_open or attempt.inherited):
        yield f"{name} is {attempt.status} and has {ends} events that say so"
    if attempt.status in (AttemptStatus.RUNNING, AttemptStatus.INTERRUPTED) and any(told[t] for t in _SETTLEMENTS):
        yield f"{name} is {attempt.status}, but its events say that it is settled"
    if attempt.epoch > rows.run.lease_epoch:
        yield f"{name} belongs to epoch {attempt.epoch}, but the run is at {rows.run.lease_epoch}"
    yield from _revisions(rows, name, attempt.revision_created, attempt.revision_settled)


def _versions(rows: _Rows) -> Iterator[str]:
    newest: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for version in rows.versions:
        if not 1 <= version.revision <= rows.run.revision:
            yield f"version of {version.table} {version.key} at revision {version.revision} of {rows.run.revision}"
        newest[version.table, version.key].update(json.loads(version.row))
    present = dict(_present_rows(rows))
    for place, merged in newest.items():
        row = present.get(place)
        if row is None:
            yield f"versions of {place[0]} {place[1]}, which does not exist"
            continue
        stored = json.loads(compact({name: getattr(row, name) for name in merged}))
        for name in (name for name in merged if merged[name] != stored[name]):
            yield f"{place[0]} {place[1]}: {name} is {stored[name]!r}, its newest version says {merged[name]!r}"
    for (table, key), row in present.items():
        missing = _missing_columns(table, row, newest.get((table, key), {}))
        if missing:
            yield f"{table} {key} has no version of {', '.join(missing)}"


def _present_rows(rows: _Rows) -> Iterator[tuple[tuple[str, str], Model]]:
    yield ("run", ""), rows.run
    for scope in rows.scopes:
        yield ("scope", scope.path), scope
    for variables in rows.variables:
        yield ("scopevars", variables.path), variables
    for visit in rows.visits:
        yield ("visit", str(visit.number)), visit
    for attempt in rows.attempts:
        yield ("attempt", f"{attempt.visit}.{attempt.number}"), attempt


def _missing_columns(table: str, row: Any, merged: dict[str, Any]) -> list[str]:
    """Columns that change and of which history knows nothing."""
    wanted = _WHOLE_ROWS.get(table, ())
    if table == "visit" and row.reopened:
        wanted = ("status", "outcome", "reopened")
    elif table == "attempt" and row.status == AttemptStatus.INTERRUPTED:
        wanted = ("status", "marks")
    return [name for name in wanted if name not in merged]


def _ending(rows: _Rows) -> Iterator[str]:
    run, lease = rows.run, rows.lease
    if lease is None:
        yield "the run has no lease row"
    elif lease.epoch != run.lease_epoch:
        yield f"the lease is at epoch {lease.epoch}, the run at {run.lease_epoch}"
    if run.is_final != (run.ended_at is not None):
        yield f"the run is {run.status} and ended at {run.ended_at}"
    if not run.is_final:
        return
    if lease is not None and lease.expires_ms:
        yield f"the run is {run.status}, but its lease was not released"
    for scope in rows.scopes:
        if scope.phase != ScopePhase.ENDED:
            yield f"the run is {run.status}, but scope {scope.path or '(root)'} is {scope.phase}"


def _controls(rows: _Rows) -> Iterator[str]:
    run = rows.run
    seen = sum(1 for message in rows.controls if message.consumed_at is not None)
    if (run.controls_accepted, run.controls_seen) != (len(rows.controls), seen):
        yield (
            f"the run counts {run.controls_accepted} messages and {run.controls_seen} carried out, "
            f"but there are {len(rows.controls)} and {seen}"
        )
    accepted = {event.sequence for event in rows.events if event.type == "control_accepted"}
    if accepted != {message.sequence for message in rows.controls}:
        yield "the messages are not those that the events say were accepted"


def _payloads(rows: _Rows) -> Iterator[str]:
    named = {rows.run.params_digest, rows.run.output_digest}
    named |= {visit.output_digest for visit in rows.visits} | {scope.output_digest for scope in rows.scopes}
    named |= {visit.detail_digest for visit in rows.visits} | {scope.input_digest for scope in rows.scopes}
    named |= inspection_waiting.payload_names(rows.run)
    for attempt in rows.attempts:
        named |= {attempt.output_digest, attempt.late_output_digest, attempt.log_digest}
    wanted = named - {None}
    found = {payload.digest: payload for payload in Payload.objects.filter(digest__in=wanted)}
    for name in sorted(wanted - set(found)):
        yield f"payload {name} is missing"
    for payload in found.values():
        if digest(payload.text) != payload.digest or len(payload.text.encode()) != payload.size:
            yield f"payload {payload.digest} is not what its digest says"
