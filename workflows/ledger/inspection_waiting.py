"""Inspect what a run has beside its steps: bodies of fan-outs, questions, places and child runs. See ``inspection``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from workflows.ledger.adopting import children_of_origins
from workflows.ledger.inspection_rows import RunRows
from workflows.ledger.inspection_steps import revisions
from workflows.models import Interrupt, Scope, Visit, Vote
from workflows.statuses import (
    AttemptStatus,
    InterruptKind,
    InterruptStatus,
    RunStatus,
    ScopeKind,
    ScopePhase,
    SlotKind,
    VisitStatus,
)

_ITEM_KINDS = frozenset({ScopeKind.ITEM, ScopeKind.BRANCH})
#: SQLite refuses a statement with more parameters than 32 766.
KEYS_AT_ONCE = 5_000
_OUTCOMES = frozenset({"", "ok", "failed", "cancelled"})


def bodies(rows: RunRows) -> Iterator[str]:
    """Every body belongs to a visit that is open as long as it lives; items are those of the list, each once."""
    fanouts = {row.visit: row for row in rows.fanouts}
    indexes: Counter[tuple[int | None, int | None]] = Counter()
    if "" not in rows.scope_by_path:
        yield "the run has no root scope"
    for scope in rows.scopes:
        yield from _place(rows, scope)
        if scope.parent_visit is None:
            if scope.path:
                yield f"scope {scope.path} has no visit that it belongs to"
            continue
        yield from _body(scope, rows.visit_by_number.get(scope.parent_visit))
        if scope.kind in _ITEM_KINDS:
            indexes[scope.parent_visit, scope.index] += 1
            fanout = fanouts.get(scope.parent_visit)
            if fanout is None or scope.index is None or scope.index >= fanout.total:
                yield f"scope {scope.path} is item {scope.index} of {fanout.total if fanout else 'nothing'}"
    for (visit, index), count in indexes.items():
        if count > 1:
            yield f"item {index} of v{visit} has {count} scopes"
    for number, fanout in fanouts.items():
        owner = rows.visit_by_number.get(number)
        if owner is None or owner.kind not in ("map", "parallel"):
            yield f"a fan-out belongs to v{number}, which is none"
        yield from revisions(rows, f"the fan-out of v{number}", fanout.revision_created, None)
    for variables in rows.variables:
        if variables.path not in rows.scope_by_path:
            yield f"variables belong to scope {variables.path or '(root)'}, which does not exist"


def _place(rows: RunRows, scope: Scope) -> Iterator[str]:
    """Where a scope stands is a visit of its own."""
    name = f"scope {scope.path or '(root)'}"
    yield from revisions(rows, name, scope.revision_created, None)
    if scope.visit is None:
        return
    visit = rows.visit_by_number.get(scope.visit)
    if visit is None:
        yield f"{name} is at v{scope.visit}, which does not exist"
    elif visit.scope != scope.path:
        yield f"{name} is at v{scope.visit}, which stands in scope {visit.scope or '(root)'}"


def _body(scope: Scope, owner: Visit | None) -> Iterator[str]:
    if owner is None:
        yield f"scope {scope.path} belongs to v{scope.parent_visit}, which does not exist"
        return
    ended = scope.phase == ScopePhase.ENDED
    if not ended and owner.status != VisitStatus.OPEN:
        yield f"scope {scope.path} is {scope.phase}, but v{owner.number} is {owner.status}"
    if ended != bool(scope.outcome) or scope.outcome not in _OUTCOMES:
        yield f'scope {scope.path} is {scope.phase} with outcome "{scope.outcome}"'


def questions(rows: RunRows) -> Iterator[str]:
    """A question is open as long as its attempt is paused and its visit open; a child's attempt has a child run."""
    asked = {(one.visit, one.attempt): one for one in rows.questions}
    votes: dict[tuple[int, int], list[Vote]] = defaultdict(list)
    for vote in rows.votes:
        votes[vote.visit, vote.attempt].append(vote)
        name = f"a vote of {vote.voter}"
        yield from revisions(rows, f"{name} on v{vote.visit}.{vote.attempt}", vote.revision_created, None)
        if (vote.visit, vote.attempt) not in asked:
            yield f"{name} belongs to v{vote.visit}.{vote.attempt}, which asks nothing"
    for place, question in asked.items():
        yield from _question(rows, question, votes[place])
    paused = [attempt for attempt in rows.attempts if attempt.status == AttemptStatus.PAUSED]
    kinds = {number: visit.kind for number, visit in rows.visit_by_number.items()}
    children = _children(rows, [one.dispatch_id for one in paused if kinds.get(one.visit) == "workflow"])
    for attempt in paused:
        name, visit = f"v{attempt.visit}.{attempt.number}", rows.visit_by_number.get(attempt.visit)
        if visit is None or visit.status != VisitStatus.OPEN:
            yield f"{name} is paused, but its visit is {visit.status if visit else None}"
        is_child = kinds.get(attempt.visit) == "workflow"
        if is_child and (attempt.visit, attempt.dispatch_id) not in children:
            yield f"{name} waits for a child run that does not exist"
        if kinds.get(attempt.visit) not in ("workflow", "external") and (attempt.visit, attempt.number) not in asked:
            yield f"{name} is paused without a question"


def _children(rows: RunRows, keys: list[str]) -> set[tuple[int | None, str | None]]:
    """Visit and invocation key of the child runs that these attempts wait for; a fork may wait for its origin's."""
    found: set[tuple[int | None, str | None]] = set()
    for start in range(0, len(keys), KEYS_AT_ONCE):
        children = children_of_origins(rows.run.pk, keys[start : start + KEYS_AT_ONCE])
        found |= set(children.values_list("parent_visit", "invocation_key"))
    return found


def _question(rows: RunRows, question: Interrupt, votes: list[Vote]) -> Iterator[str]:
    name = f"the question v{question.visit}.{question.attempt}"
    attempt = rows.attempt_by_place.get((question.visit, question.attempt))
    is_open = question.status == InterruptStatus.OPEN
    is_answered = question.status == InterruptStatus.ANSWERED
    if attempt is None:
        yield f"{name} has no attempt"
    elif is_open and attempt.status != AttemptStatus.PAUSED:
        yield f"{name} is open, but its attempt is {attempt.status}"
    elif not is_open and not is_answered and attempt.status == AttemptStatus.PAUSED:
        yield f"{name} is {question.status}, but its attempt is paused"
    if is_open != (question.revision_settled is None):
        yield f"{name} is {question.status}, settled at revision {question.revision_settled}"
    if is_answered != bool(question.answer and question.answered_by):
        yield f"{name} is {question.status} with the answer {question.answer[:80] or 'none'}"
    elif is_answered:
        yield from _decision(name, question, votes)
    yield from revisions(rows, name, question.revision_created, question.revision_settled)


def _decision(name: str, question: Interrupt, votes: list[Vote]) -> Iterator[str]:
    """An answer is what somebody said, and an approval what enough people said."""
    if question.answered_by not in {vote.voter for vote in votes}:
        yield f"{name} was answered by {question.answered_by}, of whom there is no vote"
    approvals = sum(1 for vote in votes if vote.decision == "approved")
    rejected = any(vote.decision == "rejected" for vote in votes)
    if question.kind == InterruptKind.APPROVAL and not rejected and approvals < question.quorum:
        yield f"{name} is answered with {approvals} of {question.quorum} approvals"


def places(rows: RunRows) -> Iterator[str]:
    """Slots belong to something that is alive and may hold them (PUB.5, MON.10)."""
    run = rows.run
    live = {scope.path for scope in rows.scopes if scope.phase != ScopePhase.ENDED}
    for slot in rows.slots:
        what = f"{slot.kind} slot {slot.name}" if slot.number is not None else f"place in line for {slot.name}"
        if run.is_final:
            yield f"the run is {run.status} and has a {what}"
        elif slot.kind == SlotKind.LIMIT and slot.scope not in live:
            yield f"scope {slot.scope or '(root)'} has ended and has a {what}"
        elif slot.kind == SlotKind.CONCURRENCY and slot.name != run.concurrency_key:
            yield f"the run has a {what}, but its key is {run.concurrency_key or 'none'}"
        if slot.number is not None and slot.max and not 1 <= slot.number <= slot.max:
            yield f"the {what} has number {slot.number} of {slot.max}"
        if slot.number is None and slot.started_ms is not None:
            yield f"an attempt has started on the {what}"
    held = any(slot.kind == SlotKind.CONCURRENCY and slot.number is not None for slot in rows.slots)
    needs_one = run.concurrency_max and not run.closing and run.status in (RunStatus.WAITING, RunStatus.PAUSED)
    if needs_one and not held:
        yield f"the run is {run.status} without its slot of {run.concurrency_key}"
