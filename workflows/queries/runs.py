"""Runs as they are: the list, and the one document that every surface shows of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count

from workflows.clock import moment
from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.jsonvalue import decode
from workflows.models import Attempt, ControlMessage, Interrupt, Payload, Run, Scope, Visit
from workflows.models import RunFilter as RunFilter
from workflows.queries.lineage import lineage_of
from workflows.queries.waiting import told_reasons
from workflows.statuses import ControlKind, RunStatus, ScopeKind, VisitStatus

#: Runs that a list shows unless it is asked for another number.
USUAL_LENGTH = 20

_ATTEMPT_COLUMNS = ("visit", "number", "status", "error", "started_at", "ended_at")


def run_list(wanted: RunFilter, *, limit: int = USUAL_LENGTH) -> list[dict[str, Any]]:
    """The newest runs first, without parameters and results. One query."""
    runs = wanted.rows(Run.objects.select_related("workflow", "plan")).order_by("-pk")
    columns = runs.only(*_LISTED, "workflow__name", "plan__version", "plan__hash")
    return [_listed(run) for run in columns[:limit]]


_LISTED = ("status", "reasons", "title", "started_by", "created_at", "started_at", "ended_at", "error")


def _listed(run: Run) -> dict[str, Any]:
    return {
        "run": run.pk,
        "workflow": run.workflow.name,
        "plan": _plan(run),
        "title": run.title,
        "status": run.status,
        "reasons": json.loads(run.reasons),
        "error": run_error(run.error),
        "started_by": run.started_by,
        "created_at": moment_text(run.created_at),
        "started_at": moment_text(run.started_at),
        "ended_at": moment_text(run.ended_at),
    }


def run_document(run_id: int) -> dict[str, Any]:
    """Everything about a run as one JSON object; nine queries, whatever its length, and a few for what a live run
    waits for.

    ``visits`` leaves out refused entries (ADM.2). ``events_cursor`` is the number of the last event. Raises
    ``run.not_found``.
    """
    run = find_run(run_id)
    visits = list(Visit.objects.filter(run=run).exclude(status=VisitStatus.REFUSED).order_by("number"))
    attempts = attempts_by_visit(run_id)
    items = item_scopes(run_id)
    questions = list(Interrupt.objects.filter(run=run).order_by("visit", "attempt"))
    digests = [run.params_digest, run.output_digest, *(visit.output_digest for visit in visits)]
    digests += [question.shown_digest for question in questions]
    values = payload_values(digests)
    return {
        "run": run.pk,
        "workflow": run.workflow.name,
        "plan": _plan(run),
        "status": run.status,
        "reasons": told_reasons(run),
        "params": values[run.params_digest],
        "output": values.get(run.output_digest),
        "error": run_error(run.error),
        "started_at": moment_text(run.started_at),
        "ended_at": moment_text(run.ended_at),
        "cost": None,
        "visits": [_visit(visit, values, attempts[visit.number], items) for visit in visits],
        "interrupts": _interrupts(questions, visits, values, items),
        "steering": _steering(run_id),
        "children": list(Run.objects.filter(parent_run=run).order_by("pk").values_list("pk", flat=True)),
        **lineage_of(run),
        "events_cursor": run.next_event - 1,
    }


def _steering(run_id: int) -> list[dict[str, Any]]:
    """The texts that steer a run, in the order in which steps claim them (CTL.5)."""
    rows = ControlMessage.objects.filter(run_id=run_id, kind=ControlKind.STEER).order_by("sequence")
    return [
        {
            "number": row.sequence,
            "text": json.loads(row.payload).get("text", ""),
            "by": row.sender,
            "at": moment_text(row.accepted_at),
            "state": "queued" if row.consumed_at is None else "claimed",
            "claimed_by": row.consumed_by or None,
            "claimed_at": moment_text(row.consumed_at),
        }
        for row in rows
    ]


def find_run(run_id: int) -> Run:
    """The row of a run with workflow and plan. Raises ``run.not_found``."""
    run = Run.objects.select_related("workflow", "plan").defer("plan__document", "plan__source").filter(pk=run_id)
    found: Run | None = run.first()
    if found is None:
        raise Refusal("run.not_found", run=run_id)
    return found


def attempts_by_visit(run_id: int) -> dict[int, list[dict[str, Any]]]:
    """The attempts of a run, by the number of their visit."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    rows = Attempt.objects.filter(run_id=run_id).order_by("visit", "number")
    for row in rows.values(*_ATTEMPT_COLUMNS):
        found[row["visit"]].append(
            {
                "number": row["number"],
                "status": row["status"],
                "error": json.loads(row["error"]) if row["error"] else None,
                "started_at": moment_text(row["started_at"]),
                "ended_at": moment_text(row["ended_at"]),
            }
        )
    return found


def item_scopes(run_id: int) -> dict[str, dict[str, Any]]:
    """Index and key of the map items of a run, by the path of their scope."""
    rows = Scope.objects.filter(run_id=run_id, kind=ScopeKind.ITEM)
    return {path: {"index": index, "key": key} for path, index, key in rows.values_list("path", "index", "key")}


def payload_values(digests: Iterable[str | None]) -> Mapping[str | None, Any]:
    """The values of payloads by digest, each read once; None is the value null."""
    wanted = sorted({digest for digest in digests if digest is not None})
    values: dict[str | None, Any] = {None: None}
    for start in range(0, len(wanted), _AT_ONCE):
        rows = Payload.objects.filter(digest__in=wanted[start : start + _AT_ONCE])
        values.update((digest, decode(text)) for digest, text in rows.values_list("digest", "text"))
    return values


#: SQLite refuses a statement with more parameters than 32 766.
_AT_ONCE = 10_000


def _visit(
    visit: Visit, values: Mapping[str | None, Any], attempts: list[dict[str, Any]], items: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    return {
        "number": visit.number,
        "step": visit.step,
        "path": visit_path(visit.scope, visit.step, visit.round or 1),
        "scope": visit.scope,
        "item": items.get(visit.scope),
        "status": visit.status,
        "outcome": visit.outcome or None,
        "output": values.get(visit.output_digest),
        "error": json.loads(visit.error) if visit.error else None,
        "attempts": attempts,
    }


def _interrupts(
    questions: Iterable[Interrupt],
    visits: Iterable[Visit],
    values: Mapping[str | None, Any],
    items: Mapping[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Questions to people, open and answered. Their id is the visit that asks."""
    asking = {visit.number: visit for visit in visits}
    return [
        {
            "id": f"v{question.visit}",
            "step": visit.step,
            "path": visit_path(visit.scope, visit.step, visit.round or 1),
            "item": items.get(visit.scope),
            "kind": question.kind,
            "ask": question.ask,
            "show": values.get(question.shown_digest),
            "choices": json.loads(question.choices),
            "form": json.loads(question.form),
            "audience": json.loads(question.audience),
            "deadline": moment_text(moment(question.deadline_ms)) if question.deadline_ms is not None else None,
            "answer": json.loads(question.answer) if question.answer else None,
            "answered_by": question.answered_by or None,
        }
        for question in questions
        if (visit := asking.get(question.visit)) is not None
    ]


def run_error(text: str) -> dict[str, Any] | None:
    """``{code, step, message}`` of a run's error; None for none."""
    if not text:
        return None
    error = json.loads(text)
    return {name: error.get(name) for name in ("code", "step", "message")}


def moment_text(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC with milliseconds."""
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plan(run: Run) -> dict[str, Any]:
    return {"version": run.plan.version, "hash": run.plan.hash}


def run_result(run_id: int) -> dict[str, Any]:
    """What became of a run, without its steps: status, reasons, error, output. Two queries, and a few for what a
    live run waits for."""
    run = find_run(run_id)
    return {
        "run": run.pk,
        "workflow": run.workflow.name,
        "status": run.status,
        "reasons": told_reasons(run),
        "output": payload_values([run.output_digest]).get(run.output_digest),
        "error": run_error(run.error),
        "started_at": moment_text(run.started_at),
        "ended_at": moment_text(run.ended_at),
    }


def live_runs() -> int:
    """How many runs can go on by themselves now or after a while."""
    waiting = Run.objects.filter(status=RunStatus.WAITING, wake_at_ms__isnull=False)
    going = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).exclude(Run.objects.lacks_slot())
    return int(waiting.count() + going.count() + Run.objects.runnable().count())


def waiting_runs() -> dict[str, int]:
    """How many live runs have each status."""
    live = Run.objects.live().values_list("status").annotate(count=Count("pk")).order_by()
    return dict(live)
