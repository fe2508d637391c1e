"""The inbox: questions to people, and which of them wait for one person (promises INT.5, WEB.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, F, OuterRef, Q

from workflows.clock import moment
from workflows.engine.paths import visit_path
from workflows.jsonvalue import canonical
from workflows.models import Interrupt, Run, Visit, Vote
from workflows.queries.visible import hidden_workflows
from workflows.statuses import InterruptStatus

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

ANSWER = "workflows.answer_interrupt"
#: Questions of a page, and how many are looked through at most; more are counted as "100+".
PAGE = 50
MOST_COUNTED = 100
_LOOKED_THROUGH = 2_000
MOST_ASK = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """One question as a list shows it. ``votes`` counts those who have decided, ``decision`` is how it ended."""

    run: int
    visit: int
    workflow: str
    workflow_title: str
    run_title: str
    path: str
    kind: str
    status: str
    ask: str
    asked_at: datetime
    deadline: datetime | None
    votes: int
    quorum: int
    audience: tuple[str, ...] = ()
    decision: str = ""
    answered_by: str = ""
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """``has_more``: further questions were left out. ``count``: how many wait for the person, ``MOST_COUNTED`` means:
    that many or more; None where that was not asked."""

    entries: list[InboxEntry] = field(default_factory=list)
    has_more: bool = False
    count: int | None = None


def waiting_for(user: AbstractUser | AnonymousUser, *, limit: int = PAGE) -> Inbox:
    """The open questions that a person may answer and has not, the next deadline first. At most seven queries."""
    found = list(_waiting(user, max(limit + 1, MOST_COUNTED)))
    count = min(len(found), MOST_COUNTED)
    return Inbox(entries=_entries(found[:limit]), has_more=len(found) > limit, count=count)


def count_waiting_for(user: AbstractUser | AnonymousUser) -> int:
    """How many questions wait for a person; ``MOST_COUNTED`` means: that many or more. At most two queries."""
    return sum(1 for _ in _waiting(user, MOST_COUNTED))


def open_to_all(user: AbstractUser | AnonymousUser, *, limit: int = PAGE) -> Inbox:
    """Every open question of the runs that a person sees, whoever it is for."""
    found = list(_visible(user).filter(status=InterruptStatus.OPEN).order_by(*_BY_DEADLINE)[: limit + 1])
    return Inbox(entries=_entries(found[:limit]), has_more=len(found) > limit)


def ended(user: AbstractUser | AnonymousUser, *, limit: int = PAGE) -> Inbox:
    """The questions that were asked last and are not open any more."""
    rows = _visible(user).exclude(status=InterruptStatus.OPEN).order_by("-pk")
    found = list(rows[: limit + 1])
    return Inbox(entries=_entries(found[:limit]), has_more=len(found) > limit)


_BY_DEADLINE = (F("deadline_ms").asc(nulls_last=True), "pk")


def _visible(user: AbstractUser | AnonymousUser) -> Any:
    hidden = hidden_workflows(user)
    rows = Interrupt.objects.filter(inherited=False)
    return rows.exclude(run__workflow__in=hidden) if hidden else rows


def _waiting(user: AbstractUser | AnonymousUser, limit: int) -> Iterable[Interrupt]:
    if not user.has_perm(ANSWER):
        return
    name = user.get_username()
    groups = set(user.groups.values_list("name", flat=True))
    voted = Vote.objects.filter(run=OuterRef("run"), visit=OuterRef("visit"), attempt=OuterRef("attempt"), voter=name)
    rows = _visible(user).filter(_may_be_for(name, groups), ~Exists(voted), status=InterruptStatus.OPEN)
    rows = rows.select_related("run").only(*_LISTED, "run__started_by").order_by(*_BY_DEADLINE)
    found = 0
    for question in rows[:_LOOKED_THROUGH]:
        if _is_for(question, name, groups):
            yield question
            found += 1
            if found == limit:
                return


_LISTED = (
    "run", "visit", "attempt", "kind", "status", "ask", "audience", "not_by", "quorum", "deadline_ms", "asked_at",
    "answer", "answered_by", "answered_at",
)  # fmt: skip


def _may_be_for(name: str, groups: Collection[str]) -> Q:
    """What the database can sort out by looking for names in the text of the audience; the rest is looked at."""
    names = [name, "requester", *groups]
    return reduce(or_, (Q(audience__contains=canonical(one)) for one in names), Q(audience="{}"))


def _is_for(question: Interrupt, name: str, groups: Collection[str]) -> bool:
    """The rule of ``operations.answering``: audience and exclusions are about the person."""
    starter = question.run.started_by
    if name in _named(json.loads(question.not_by), starter):
        return False
    audience = json.loads(question.audience)
    is_open = not audience
    return (
        is_open
        or name in _named(audience.get("users", []), starter)
        or bool(set(audience.get("groups", [])) & {*groups})
    )


def _named(people: Iterable[str], starter: str) -> list[str]:
    return [starter if person == "requester" else person for person in people]


def _entries(questions: list[Interrupt]) -> list[InboxEntry]:
    if not questions:
        return []
    runs = Run.objects.select_related("workflow").only("title", "started_by", "workflow__name", "workflow__title")
    by_number = runs.in_bulk({question.run_id for question in questions})
    places = _places(questions)
    votes = _votes(questions)
    return [_entry(question, by_number[question.run_id], places, votes) for question in questions]


def _entry(
    question: Interrupt, run: Run, places: dict[tuple[int, int], str], votes: dict[tuple[int, int, int], int]
) -> InboxEntry:
    audience = json.loads(question.audience)
    groups = [f"group {name}" for name in audience.get("groups", [])]
    return InboxEntry(
        run=question.run_id,
        visit=question.visit,
        workflow=run.workflow.name,
        workflow_title=run.workflow.title,
        run_title=run.title,
        path=places.get((question.run_id, question.visit), f"v{question.visit}"),
        kind=question.kind,
        status=question.status,
        ask=question.ask[: MOST_ASK + 1],
        asked_at=question.asked_at,
        deadline=moment(question.deadline_ms) if question.deadline_ms is not None else None,
        votes=votes.get((question.run_id, question.visit, question.attempt), 0),
        quorum=question.quorum,
        audience=tuple(dict.fromkeys([*_named(audience.get("users", []), run.started_by), *groups])),
        decision=json.loads(question.answer).get("outcome", "") if question.answer else "",
        answered_by=question.answered_by,
        answered_at=question.answered_at,
    )


def _of_visits(questions: Iterable[Interrupt], column: str) -> Q:
    """Rows of these visits, as pairs of run and number."""
    numbers: dict[int, list[int]] = {}
    for question in questions:
        numbers.setdefault(question.run_id, []).append(question.visit)
    pairs = (Q(run_id=run, **{f"{column}__in": visits}) for run, visits in numbers.items())
    return reduce(or_, pairs)


def _places(questions: list[Interrupt]) -> dict[tuple[int, int], str]:
    rows = Visit.objects.filter(_of_visits(questions, "number")).values_list(
        "run_id", "number", "scope", "step", "round"
    )
    return {(run, number): visit_path(scope, step, round_ or 1) for run, number, scope, step, round_ in rows}


def _votes(questions: list[Interrupt]) -> dict[tuple[int, int, int], int]:
    found: dict[tuple[int, int, int], int] = {}
    rows = Vote.objects.filter(_of_visits(questions, "visit"))
    for key in rows.values_list("run_id", "visit", "attempt"):
        found[key] = found.get(key, 0) + 1
    return found
