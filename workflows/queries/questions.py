"""Questions to people: what is asked, of whom, and who has said what."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from workflows.clock import moment
from workflows.engine.memory import read_plan
from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.models import Interrupt, Run, Scope, Visit, Vote
from workflows.queries.runs import moment_text, payload_values
from workflows.statuses import InterruptStatus, ScopeKind


def open_questions(run_ids: Collection[int], *, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The open questions of runs, the oldest first, at most ``limit``; and how many there are."""
    opened = Interrupt.objects.filter(run_id__in=list(run_ids), status=InterruptStatus.OPEN)
    return _told(list(opened.order_by("run_id", "visit")[:limit])), opened.count()


def questions_of(run_id: int) -> list[dict[str, Any]]:
    """Every question of a run, open and answered, with the votes."""
    return _told(list(Interrupt.objects.filter(run_id=run_id).order_by("visit", "attempt")))


def question_of(run_id: int, visit: int) -> dict[str, Any]:
    """The latest question of a visit as ``questions_of`` tells it, with ``visit``, ``attempt``, ``step``, ``asked_at``
    and ``after_deadline``: the step that the run goes on with when nobody answers, ``done`` or ``fail``; None when the
    plan cannot be read. Raises ``interrupt.not_found``."""
    question = Interrupt.objects.filter(run_id=run_id, visit=visit).order_by("-attempt").first()
    if question is None:
        raise Refusal("interrupt.not_found", run=run_id, interrupt=f" v{visit}")
    step = Visit.objects.filter(run_id=run_id, number=visit).values_list("step", flat=True).get()
    more = {
        "visit": visit,
        "attempt": question.attempt,
        "step": step,
        "asked_at": moment_text(question.asked_at),
        "after_deadline": _after_deadline(run_id, step),
    }
    return _told([question])[0] | more


def _after_deadline(run_id: int, step: str) -> str | None:
    run = Run.objects.select_related("plan").only("plan").get(pk=run_id)
    try:
        return read_plan(run.plan).steps[step].route("expired")
    except (Refusal, KeyError):
        return None


def _told(questions: list[Interrupt]) -> list[dict[str, Any]]:
    """``{run, id, path, item, kind, status, ask, show, choices, form, users, groups, not_by, quorum, votes, deadline,
    answered_by, answered_at, decision}``; ``users`` and ``groups`` empty: everyone. ``requester`` is named."""
    runs = Run.objects.in_bulk({question.run_id for question in questions})
    visits: dict[tuple[int, int], Visit] = {}
    votes: dict[tuple[int, int, int], list[dict[str, Any]]] = {}
    items: dict[tuple[int, str], dict[str, Any]] = {}
    for run_id in runs:
        numbers = [question.visit for question in questions if question.run_id == run_id]
        asking = list(Visit.objects.filter(run_id=run_id, number__in=numbers))
        visits |= {(run_id, visit.number): visit for visit in asking}
        votes |= _votes(run_id, numbers)
        items |= _items(run_id, {visit.scope for visit in asking if visit.scope})
    values = payload_values(question.shown_digest for question in questions)
    told = []
    for question in questions:
        visit = visits[question.run_id, question.visit]
        more = {
            "item": items.get((question.run_id, visit.scope)),
            "show": values.get(question.shown_digest),
            "votes": votes.get((question.run_id, question.visit, question.attempt), []),
        }
        told.append(_question(question, visit, runs[question.run_id]) | more)
    return told


def _votes(run_id: int, numbers: Collection[int]) -> dict[tuple[int, int, int], list[dict[str, Any]]]:
    found: dict[tuple[int, int, int], list[dict[str, Any]]] = defaultdict(list)
    for vote in Vote.objects.filter(run_id=run_id, visit__in=numbers).order_by("id"):
        said = {"by": vote.voter, "decision": vote.decision, "comment": vote.comment, "at": moment_text(vote.voted_at)}
        found[run_id, vote.visit, vote.attempt].append(said)
    return found


def _items(run_id: int, paths: Collection[str]) -> dict[tuple[int, str], dict[str, Any]]:
    rows = Scope.objects.filter(run_id=run_id, kind=ScopeKind.ITEM, path__in=paths)
    return {
        (run_id, path): {"index": index, "key": key} for path, index, key in rows.values_list("path", "index", "key")
    }


def _question(question: Interrupt, visit: Visit, run: Run) -> dict[str, Any]:
    audience = json.loads(question.audience)
    answer = json.loads(question.answer) if question.answer else {}
    return {
        "run": run.pk,
        "id": f"v{question.visit}",
        "path": visit_path(visit.scope, visit.step, visit.round or 1),
        "kind": question.kind,
        "status": question.status,
        "ask": question.ask,
        "choices": json.loads(question.choices),
        "form": json.loads(question.form),
        "users": _people(audience.get("users", []), run),
        "groups": list(audience.get("groups", [])),
        "not_by": _people(json.loads(question.not_by), run),
        "quorum": question.quorum,
        "deadline": moment_text(moment(question.deadline_ms)) if question.deadline_ms is not None else None,
        "answered_by": question.answered_by or None,
        "answered_at": moment_text(question.answered_at),
        "decision": answer.get("outcome"),
    }


def _people(names: list[str], run: Run) -> list[str]:
    """Names with ``requester`` as whoever started the run."""
    return list(dict.fromkeys(run.started_by if name == "requester" else name for name in names))
