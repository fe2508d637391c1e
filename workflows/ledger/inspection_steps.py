"""Inspect the course of a run: events, revisions, visits and attempts. See ``inspection``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from workflows.ledger.inspection_rows import RunRows, dense, few
from workflows.ledger.records import compact
from workflows.models import Attempt, Event, RowVersion, Visit
from workflows.statuses import FINAL_STATUSES, AttemptStatus, ScopePhase, VisitStatus

#: The events that end an attempt, by its status; an attempt has exactly one of them.
ENDS: dict[str, frozenset[str]] = {
    AttemptStatus.SUCCEEDED: frozenset({"step_succeeded", "step_failed", "step_retrying"}),
    AttemptStatus.FAILED: frozenset({"step_failed", "step_succeeded", "step_retrying"}),
    AttemptStatus.CANCELLED: frozenset({"step_cancelled", "step_succeeded", "step_failed", "step_skipped"}),
    AttemptStatus.INTERRUPTED: frozenset({"step_interrupted"}),
}
_OPEN = frozenset({AttemptStatus.RUNNING, AttemptStatus.PAUSED})
_SETTLEMENTS = ENDS[AttemptStatus.SUCCEEDED] | ENDS[AttemptStatus.CANCELLED]
_RUN_ENDS = {f"run_{status}": str(status) for status in FINAL_STATUSES}
_MOST_EVENT_BYTES = 8 * 1024

Told = dict[tuple[int, int], Counter[str]]


@dataclass(slots=True)
class _Course:
    """What the events say, gathered while they stream by."""

    sequences: list[int] = field(default_factory=list)
    revisions: set[int] = field(default_factory=set)
    told: Told = field(default_factory=lambda: defaultdict(Counter))
    accepted: set[int] = field(default_factory=set)
    ended_as: str | None = None


def _read_course(rows: RunRows, problems: list[str]) -> _Course:
    course, last_revision = _Course(), 0
    for event in rows.events():
        course.sequences.append(event.sequence)
        course.revisions.add(event.revision)
        if event.revision < last_revision:
            problems.append(f"event {event.sequence} is of revision {event.revision}, after one of {last_revision}")
        last_revision = event.revision
        if event.visit is not None and event.attempt is not None:
            course.told[event.visit, event.attempt][event.type] += 1
        if event.type == "control_accepted" and not event.inherited:
            course.accepted.add(event.sequence)
        if event.type in _RUN_ENDS or event.type == "run_reopened":
            course.ended_as = _RUN_ENDS.get(event.type)
        problems += _event(rows, event)
    return course


def _event(rows: RunRows, event: Event) -> Iterator[str]:
    if len(event.payload.encode("utf-8", "surrogatepass")) > _MOST_EVENT_BYTES:
        yield f"the payload of event {event.sequence} has more than 8 KiB"
    try:
        json.loads(event.payload)
    except ValueError:
        yield f"the payload of event {event.sequence} is not JSON"
    if event.visit is None:
        return
    if event.visit not in rows.visit_by_number:
        yield f"event {event.sequence} is about v{event.visit}, which does not exist"
    elif event.attempt is not None and (event.visit, event.attempt) not in rows.attempt_by_place:
        yield f"event {event.sequence} is about v{event.visit}.{event.attempt}, which does not exist"


def numbers_and_events(rows: RunRows) -> Iterator[str]:
    """Sequences and revisions are dense, every attempt has its events, and the last end is that of the status."""
    run, problems = rows.run, list[str]()
    course = _read_course(rows, problems)
    yield from dense(course.sequences, "events")
    if run.next_event != len(course.sequences) + 1:
        yield f"the next event is {run.next_event}, but there are {len(course.sequences)}"
    wanted = set(range(1, run.revision + 1))
    if course.revisions != wanted:
        without, beyond = sorted(wanted - course.revisions), sorted(course.revisions - wanted)
        yield (f"revisions without an event: [{few(without)}]; events beyond revision {run.revision}: [{few(beyond)}]")
    yield from problems
    for attempt in rows.attempts:
        yield from _events_of_attempt(attempt, course.told.get((attempt.visit, attempt.number), Counter()))
    if course.accepted != {message.sequence for message in rows.controls}:
        yield "the messages are not those that the events say were accepted"
    if run.status != course.ended_as and (run.is_final or course.ended_as is not None):
        yield f"the run is {run.status}, but its events say that it is {course.ended_as or 'not over'}"


def _events_of_attempt(attempt: Attempt, told: Counter[str]) -> Iterator[str]:
    name, is_open = f"v{attempt.visit}.{attempt.number}", attempt.status in _OPEN
    begun = told["step_started"] + told["question_asked"]
    if begun != 1 and not attempt.inherited:
        yield f"{name} has {begun} events that say that it began"
    ends = sum(told[type] for type in ENDS.get(attempt.status, ()))
    if ends != 1 and not (is_open or attempt.inherited):
        yield f"{name} is {attempt.status} and has {ends} events that say so"
    if attempt.status in (AttemptStatus.RUNNING, AttemptStatus.INTERRUPTED) and any(told[t] for t in _SETTLEMENTS):
        yield f"{name} is {attempt.status}, but its events say that it is settled"


def visits(rows: RunRows) -> Iterator[str]:
    """Visits and rounds are dense; what is open is what a scope is at."""
    yield from dense([visit.number for visit in rows.visits], "visits")
    if rows.run.visits != len(rows.visits):
        yield f"the run counts {rows.run.visits} visits, but there are {len(rows.visits)}"
    rounds: dict[tuple[str, str], list[int]] = defaultdict(list)
    at_work = {scope.visit for scope in rows.scopes if scope.phase != ScopePhase.ENDED and scope.visit is not None}
    for visit in rows.visits:
        if visit.round is not None:
            rounds[visit.scope, visit.step].append(visit.round)
        yield from _visit(rows, visit, at_work)
    for (_, step), numbers in rounds.items():
        yield from dense(numbers, f"rounds of {step}")


def _visit(rows: RunRows, visit: Visit, at_work: set[int]) -> Iterator[str]:
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
    if visit.scope not in rows.scope_by_path:
        yield f"{name} stands in scope {visit.scope or '(root)'}, which does not exist"
    yield from revisions(rows, name, visit.revision_created, visit.revision_settled)


def revisions(rows: RunRows, name: str, created: int, settled: int | None) -> Iterator[str]:
    """A row was made at a revision of its run, and settled at that one or later."""
    if not 1 <= created <= (settled or created) <= rows.run.revision:
        yield f"{name} was created at revision {created} and settled at {settled} of {rows.run.revision}"


def attempts(rows: RunRows) -> Iterator[str]:
    """Attempts are dense per visit; exactly the visits in effect have a running one."""
    by_visit: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in rows.attempts:
        by_visit[attempt.visit].append(attempt)
        yield from _attempt(rows, attempt)
    in_effect = {scope.visit for scope in rows.scopes if scope.phase == ScopePhase.EFFECT}
    edited = _edited_outputs(rows)
    for number, tries in by_visit.items():
        yield from dense([attempt.number for attempt in tries], f"attempts of v{number}")
        running = [attempt.number for attempt in tries if attempt.status == AttemptStatus.RUNNING]
        visit = rows.visit_by_number.get(number)
        if visit is None:
            yield f"attempts of v{number}, which does not exist"
        elif visit.attempts > len(tries):
            yield f"v{number} counts {visit.attempts} tries, but has {len(tries)} attempts"
        elif number not in edited:
            yield from _settlement(visit, tries[-1])
        if len(running) != (1 if number in in_effect else 0):
            at_work = "is" if number in in_effect else "is not"
            yield f"v{number} {at_work} in effect and has the running attempts {running}"
    for lonely in in_effect - set(by_visit):
        yield f"v{lonely} is in effect without an attempt"


def _edited_outputs(rows: RunRows) -> set[int]:
    """The inherited visits whose output was replaced when the run was forked."""
    request = json.loads(rows.run.fork_request) if rows.run.fork_request else {}
    return {int(name.removeprefix("v")) for name in request.get("edits", {}).get("outputs", {})}


def _edited_visits(rows: RunRows) -> set[int]:
    """Visits of a fork whose output may have been replaced: they show another result than they were settled with."""
    if rows.run.fork_of_id is None:
        return set()
    keys = RowVersion.objects.filter(run=rows.run, table="visit").values_list("key", flat=True)
    return {int(key) for key in keys if key.isdigit()}


def _attempt(rows: RunRows, attempt: Attempt) -> Iterator[str]:
    name, is_open = f"v{attempt.visit}.{attempt.number}", attempt.status in _OPEN
    if is_open != (attempt.revision_settled is None) or is_open != (attempt.ended_at is None):
        yield f"{name} is {attempt.status}, settled at revision {attempt.revision_settled}"
    if attempt.epoch > rows.run.lease_epoch and not attempt.inherited:
        yield f"{name} belongs to epoch {attempt.epoch}, but the run is at {rows.run.lease_epoch}"
    yield from revisions(rows, name, attempt.revision_created, attempt.revision_settled)


def _settlement(visit: Visit, attempt: Attempt) -> Iterator[str]:
    """The digest of a settlement is that of its result, where the visit still shows it."""
    shows_it = visit.status == VisitStatus.SETTLED and not visit.reopened and visit.outcome == attempt.outcome
    if not (attempt.digest and shows_it and attempt.status in (AttemptStatus.SUCCEEDED, AttemptStatus.FAILED)):
        return
    error = json.loads(attempt.error) if attempt.error else {}
    told = compact({name: error[name] for name in ("code", "message") if name in error}) if error else ""
    text = f"{attempt.outcome}\n{visit.output_digest or ''}\n{told}\n{visit.exit_code}"
    if sha256(text.encode("utf-8", "surrogatepass")).hexdigest() != attempt.digest:
        yield f"v{visit.number} does not show the result that v{visit.number}.{attempt.number} was settled with"
