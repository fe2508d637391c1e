"""Inspect what a run has beside its steps: bodies of fan-outs, questions, places and child runs. See ``inspection``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from workflows.models import Attempt, Fanout, Interrupt, Run, Scope, Slot, Visit, Vote
from workflows.statuses import (
    AttemptStatus,
    InterruptStatus,
    RunStatus,
    ScopeKind,
    ScopePhase,
    SlotKind,
    VisitStatus,
)

_ITEM_KINDS = frozenset({ScopeKind.ITEM, ScopeKind.BRANCH})
_OUTCOMES = frozenset({"", "ok", "failed", "cancelled"})


def bodies(run: Run, scopes: Sequence[Scope], visits: Sequence[Visit]) -> Iterator[str]:
    """Every body belongs to a visit that is open as long as it lives; items are those of the list, each once."""
    by_number = {visit.number: visit for visit in visits}
    fanouts = {row.visit: row for row in Fanout.objects.filter(run=run)}
    indexes: Counter[tuple[int | None, int | None]] = Counter()
    for scope in scopes:
        if scope.parent_visit is None:
            if scope.path:
                yield f"scope {scope.path} has no visit that it belongs to"
            continue
        yield from _body(scope, by_number.get(scope.parent_visit))
        if scope.kind in _ITEM_KINDS:
            indexes[scope.parent_visit, scope.index] += 1
            fanout = fanouts.get(scope.parent_visit)
            if fanout is None or scope.index is None or scope.index >= fanout.total:
                yield f"scope {scope.path} is item {scope.index} of {fanout.total if fanout else 'nothing'}"
    for (visit, index), count in indexes.items():
        if count > 1:
            yield f"item {index} of v{visit} has {count} scopes"
    for number in fanouts:
        if number not in by_number or by_number[number].kind not in ("map", "parallel"):
            yield f"a fan-out belongs to v{number}, which is none"


def _body(scope: Scope, owner: Visit | None) -> Iterator[str]:
    if owner is None:
        yield f"scope {scope.path} belongs to v{scope.parent_visit}, which does not exist"
        return
    ended = scope.phase == ScopePhase.ENDED
    if not ended and owner.status != VisitStatus.OPEN:
        yield f"scope {scope.path} is {scope.phase}, but v{owner.number} is {owner.status}"
    if ended != bool(scope.outcome) or scope.outcome not in _OUTCOMES:
        yield f'scope {scope.path} is {scope.phase} with outcome "{scope.outcome}"'


def questions(run: Run, visits: Sequence[Visit], attempts: Sequence[Attempt]) -> Iterator[str]:
    """A question is open as long as its attempt is paused and its visit open; a child's attempt has a child run."""
    visit_status = {visit.number: visit.status for visit in visits}
    kinds = {visit.number: visit.kind for visit in visits}
    status_of = {(attempt.visit, attempt.number): attempt.status for attempt in attempts}
    asked = {(one.visit, one.attempt): one for one in Interrupt.objects.filter(run=run)}
    for place, question in asked.items():
        name, status = f"the question v{place[0]}.{place[1]}", status_of.get(place)
        is_open = question.status == InterruptStatus.OPEN
        if status is None:
            yield f"{name} has no attempt"
        elif is_open and status != AttemptStatus.PAUSED:
            yield f"{name} is open, but its attempt is {status}"
        elif not is_open and question.status != InterruptStatus.ANSWERED and status == AttemptStatus.PAUSED:
            yield f"{name} is {question.status}, but its attempt is paused"
        if is_open != (question.revision_settled is None):
            yield f"{name} is {question.status}, settled at revision {question.revision_settled}"
        if (question.status == InterruptStatus.ANSWERED) != bool(question.answer and question.answered_by):
            yield f"{name} is {question.status} with the answer {question.answer[:80] or 'none'}"
    children = set(Run.objects.filter(parent_run=run).values_list("parent_visit", "invocation_key"))
    for attempt in attempts:
        name = f"v{attempt.visit}.{attempt.number}"
        if attempt.status != AttemptStatus.PAUSED:
            continue
        if visit_status.get(attempt.visit) != VisitStatus.OPEN:
            yield f"{name} is paused, but its visit is {visit_status.get(attempt.visit)}"
        is_child = kinds.get(attempt.visit) == "workflow"
        if is_child and (attempt.visit, attempt.dispatch_id) not in children:
            yield f"{name} waits for a child run that does not exist"
        if not is_child and (attempt.visit, attempt.number) not in asked:
            yield f"{name} is paused without a question"
    for vote in Vote.objects.filter(run=run):
        if (vote.visit, vote.attempt) not in asked:
            yield f"a vote of {vote.voter} belongs to v{vote.visit}.{vote.attempt}, which asks nothing"


def places(run: Run, scopes: Sequence[Scope]) -> Iterator[str]:
    """Slots belong to something that is alive and may hold them (PUB.5, MON.10)."""
    live = {scope.path for scope in scopes if scope.phase != ScopePhase.ENDED}
    for slot in Slot.objects.filter(run=run):
        what = f"{slot.kind} slot {slot.name}" if slot.number is not None else f"place in line for {slot.name}"
        if run.is_final:
            yield f"the run is {run.status} and has a {what}"
        elif slot.kind == SlotKind.LIMIT and slot.scope not in live:
            yield f"scope {slot.scope or '(root)'} has ended and has a {what}"
    needs_one = run.concurrency_max and not run.closing and run.status in (RunStatus.WAITING, RunStatus.PAUSED)
    if needs_one and not Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY, number__isnull=False).exists():
        yield f"the run is {run.status} without its slot of {run.concurrency_key}"


def payload_names(run: Run) -> set[str | None]:
    """Digests of the payloads that these rows name."""
    named: set[str | None] = set(Fanout.objects.filter(run=run).values_list("items_digest", flat=True))
    return named | set(Interrupt.objects.filter(run=run).values_list("shown_digest", flat=True))
