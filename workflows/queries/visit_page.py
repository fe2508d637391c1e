"""One visit, all that is known of it: its attempts, what came out, its log, its question, its child, its items."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from workflows.clock import moment
from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.jsonvalue import decode
from workflows.models import Attempt, Event, Fanout, Interrupt, Payload, Run, Scope, Visit, Vote
from workflows.queries.excerpts import Excerpt, excerpts
from workflows.queries.external import OfferFacts, offers_of
from workflows.queries.run_page import Relative
from workflows.queries.timeline import CONTAINERS, Counts, TryFacts, VisitFacts, visit_state
from workflows.statuses import InterruptStatus, ScopeKind

#: Attempts, items and words that a page shows; characters of the end of a log.
MOST_ATTEMPTS = 50
ITEM_PAGE = 50
MOST_NOTES = 20
LOG_END = 12_000
_NOTES = ("attempt_reconciled", "skip_carried_out", "run_reopened", "step_parked", "step_unreconciled")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """The end of a log; ``left_out`` characters before it are not shown."""

    text: str
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    number: int
    status: str
    outcome: str
    worker: str
    epoch: int
    started_at: datetime
    ended_at: datetime | None
    dispatch_id: str
    input_hash: str
    error: dict[str, Any] | None
    marks: tuple[str, ...]
    authorization: dict[str, Any] | None
    has_log: bool
    has_own_output: bool
    late_outcome: str
    has_late_output: bool
    inherited: bool
    log: LogEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFacts:
    kind: str
    ask: str
    status: str
    is_open: bool
    deadline: datetime | None
    answered_by: str
    answered_at: datetime | None
    decision: str
    quorum: int
    votes: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a map, or a branch. ``visit`` is the latest of its steps."""

    index: int
    key: str
    outcome: str
    error_code: str
    visit: int | None
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    counts: Counts
    listed: tuple[Item, ...]
    outcome: str
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a person or the engine did to the visit beside its attempts."""

    type: str
    at: datetime
    actor: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitPage:
    number: int
    step: str
    path: str
    kind: str
    round: int
    state: str
    outcome: str
    error: dict[str, Any] | None
    exit_code: int | None
    access: str
    reopened: int
    revision: int
    settled_at_revision: int | None
    started_at: datetime
    ended_at: datetime | None
    item: str
    inherited: bool
    attempts: tuple[AttemptFacts, ...]
    attempts_left_out: int
    retry_at: datetime | None
    output: Excerpt | None
    question: QuestionFacts | None
    children: tuple[Relative, ...]
    items: Items | None
    notes: tuple[Note, ...]
    offers: tuple[OfferFacts, ...] = ()


def visit_page(
    run: Run, number: int, user: Any, *, hidden: bool = False, outcome: str = "", first: int = 0
) -> VisitPage:
    """A visit of a run. ``hidden``: its output and logs are kept from this person. ``outcome`` and ``first`` choose the
    items that are listed. Raises ``visit.not_found``."""
    visit = find_visit(run.pk, number)
    rows, left_out = _attempts(run.pk, number)
    log = None if hidden else _log_end(rows)
    attempts = tuple(_attempt(row, log if row is rows[-1] else None) for row in rows)
    tries = [
        TryFacts(visit=number, number=row.number, status=row.status, started_at=row.started_at, ended_at=row.ended_at)
        for row in rows
    ]
    error = json.loads(visit.error) if visit.error else None
    return VisitPage(
        number=number,
        step=visit.step,
        path=visit_path(visit.scope, visit.step, visit.round or 1),
        kind=visit.kind,
        round=visit.round or 1,
        state=visit_state(_facts(visit), tries),
        outcome=visit.outcome,
        error=error,
        exit_code=visit.exit_code,
        access=visit.access,
        reopened=visit.reopened,
        revision=visit.revision_created,
        settled_at_revision=visit.revision_settled,
        started_at=visit.started_at,
        ended_at=visit.ended_at,
        item=_item_of(run.pk, visit.scope),
        inherited=visit.inherited,
        attempts=attempts,
        attempts_left_out=left_out,
        retry_at=_retry_at(run, visit),
        output=None if hidden else _output(visit),
        question=_question(run.pk, visit),
        children=_children(run.pk, visit, user),
        items=_items(run.pk, visit, outcome, first),
        notes=tuple(_notes(run.pk, number)),
        offers=tuple(offers_of(run.pk, number)) if visit.kind == "external" else (),
    )


def find_visit(run_id: int, number: int) -> Visit:
    """Raises ``visit.not_found``."""
    visit: Visit | None = Visit.objects.filter(run_id=run_id, number=number).first()
    if visit is None:
        raise Refusal("visit.not_found", run=run_id, what=f"step v{number}")
    return visit


def find_attempt(run_id: int, visit: int, number: int) -> Attempt:
    """Raises ``visit.not_found``."""
    attempt: Attempt | None = Attempt.objects.filter(run_id=run_id, visit=visit, number=number).first()
    if attempt is None:
        raise Refusal("visit.not_found", run=run_id, what=f"attempt v{visit}.{number}")
    return attempt


def _facts(visit: Visit) -> VisitFacts:
    return VisitFacts(
        number=visit.number,
        scope=visit.scope,
        step=visit.step,
        kind=visit.kind,
        status=visit.status,
        started_at=visit.started_at,
        outcome=visit.outcome,
        error_code=json.loads(visit.error).get("code", "") if visit.error else "",
    )


def _attempts(run_id: int, visit: int) -> tuple[list[Attempt], int]:
    """The latest attempts, in order, and how many came before them."""
    rows = list(Attempt.objects.filter(run_id=run_id, visit=visit).order_by("-number")[:MOST_ATTEMPTS])
    rows.reverse()
    return rows, rows[0].number - 1 if rows else 0


def _attempt(row: Attempt, log: LogEnd | None) -> AttemptFacts:
    return AttemptFacts(
        number=row.number,
        status=row.status,
        outcome=row.outcome,
        worker=row.worker,
        epoch=row.epoch,
        started_at=row.started_at,
        ended_at=row.ended_at,
        dispatch_id=row.dispatch_id,
        input_hash=row.input_hash,
        error=json.loads(row.error) if row.error else None,
        marks=tuple(json.loads(row.marks)),
        authorization=json.loads(row.authorization) if row.authorization else None,
        has_log=row.log_digest is not None,
        has_own_output=row.output_digest is not None,
        late_outcome=row.late_outcome,
        has_late_output=row.late_output_digest is not None,
        inherited=row.inherited,
        log=log,
    )


def _log_end(rows: list[Attempt]) -> LogEnd | None:
    """The end of the log of the last attempt; those of others are behind links. A log has 1 MiB at most."""
    if not rows or rows[-1].log_digest is None:
        return None
    text = Payload.objects.filter(digest=rows[-1].log_digest).values_list("text", flat=True).first()
    if text is None:
        return None
    whole: str = decode(text)
    if len(whole) <= LOG_END:
        return LogEnd(text=whole)
    end = whole[-LOG_END:]
    line = end.find("\n")
    end = end[line + 1 :] if 0 <= line < LOG_END // 2 else end
    return LogEnd(text=end, left_out=len(whole) - len(end))


def _item_of(run_id: int, scope: str) -> str:
    if not scope:
        return ""
    row = Scope.objects.filter(run_id=run_id, path=scope, kind=ScopeKind.ITEM).values_list("index", "key").first()
    if row is None:
        return ""
    index, key = row
    return f"[{index}]" if key in ("", str(index)) else f"[{index}] {key}"


def _output(visit: Visit) -> Excerpt | None:
    """None while there is none: it runs, or it failed without one."""
    if visit.ended_at is None or (visit.error and visit.output_digest is None):
        return None
    return excerpts([visit.output_digest])[visit.output_digest]


def _retry_at(run: Run, visit: Visit) -> datetime | None:
    if visit.ended_at is not None or run.is_final:
        return None
    waiting = Scope.objects.filter(run=run, path=visit.scope, visit=visit.number, waits_for="retry")
    wake_at_ms = waiting.values_list("wake_at_ms", flat=True).first()
    return None if wake_at_ms is None else moment(wake_at_ms)


def _question(run_id: int, visit: Visit) -> QuestionFacts | None:
    if visit.kind not in ("approval", "question"):
        return None
    row = Interrupt.objects.filter(run_id=run_id, visit=visit.number).order_by("-attempt").first()
    if row is None:
        return None
    votes = Vote.objects.filter(run_id=run_id, visit=visit.number, attempt=row.attempt).order_by("id")
    return QuestionFacts(
        kind=row.kind,
        ask=row.ask,
        status=row.status,
        is_open=row.status == InterruptStatus.OPEN,
        deadline=None if row.deadline_ms is None else moment(row.deadline_ms),
        answered_by=row.answered_by,
        answered_at=row.answered_at,
        decision=json.loads(row.answer).get("outcome", "") if row.answer else "",
        quorum=row.quorum,
        votes=tuple(votes.values("voter", "recorded_by", "decision", "comment", "voted_at")),
    )


def _children(run_id: int, visit: Visit, user: Any) -> tuple[Relative, ...]:
    if visit.kind != "workflow":
        return ()
    rows = Run.objects.visible_to(user).filter(parent_run_id=run_id, parent_visit=visit.number).order_by("-pk")
    columns = rows.values("pk", "status", "workflow__name")[:MOST_ATTEMPTS]
    return tuple(Relative(run=row["pk"], status=row["status"], workflow=row["workflow__name"]) for row in columns)


def _items(run_id: int, visit: Visit, outcome: str, first: int) -> Items | None:
    """The items of a map or the branches of a parallel step, a page of those with this outcome."""
    if visit.kind not in CONTAINERS or visit.kind == "block":
        return None
    total = Fanout.objects.filter(run_id=run_id, visit=visit.number).values_list("total", flat=True).first()
    scopes = Scope.objects.filter(run_id=run_id, parent_visit=visit.number)
    counted = dict(scopes.values_list("outcome").annotate(count=Count("id")).order_by())
    counted["running"] = counted.pop("", 0)
    names = ("ok", "failed", "cancelled", "running")
    counts = Counts(total=total or 0, **{name: counted.get(name, 0) for name in names})
    if outcome:
        scopes = scopes.filter(outcome="" if outcome == "running" else outcome)
    rows = list(scopes.filter(index__gte=first).order_by("index")[: ITEM_PAGE + 1])
    following = rows[ITEM_PAGE].index if len(rows) > ITEM_PAGE else None
    rows = rows[:ITEM_PAGE]
    latest = _latest_visits(run_id, [row.path for row in rows])
    listed = tuple(_item(row, latest.get(row.path)) for row in rows)
    return Items(counts=counts, listed=listed, outcome=outcome, next=following)


def _latest_visits(run_id: int, paths: list[str]) -> dict[str, tuple[int, str]]:
    rows = Visit.objects.filter(run_id=run_id, scope__in=paths).order_by("number")
    return {scope: (number, step) for scope, number, step in rows.values_list("scope", "number", "step")}


def _item(row: Scope, visit: tuple[int, str] | None) -> Item:
    number, step = visit if visit is not None else (None, row.step)
    return Item(
        index=row.index or 0,
        key=row.key,
        outcome=row.outcome,
        error_code=json.loads(row.error).get("code", "") if row.error else "",
        visit=number,
        step=step,
    )


def _notes(run_id: int, visit: int) -> list[Note]:
    rows = Event.objects.filter(run_id=run_id, visit=visit, type__in=_NOTES).order_by("sequence")
    columns = rows.values_list("type", "at", "actor", "payload")[:MOST_NOTES]
    return [Note(type=type, at=at, actor=actor, data=json.loads(payload)) for type, at, actor, payload in columns]
