"""The state of a run at a past revision (promise REV.2).

Rows that are written once and settled once carry the revisions of both; what they hold after ``revision_settled`` is
left away. Rows that change more often are merged from their versions. Nothing is changed by looking.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from workflows.clock import moment
from workflows.engine.paths import visit_path
from workflows.errors import Refusal
from workflows.ledger.past import Past, moment_of
from workflows.models import Event, Interrupt
from workflows.queries.runs import find_run, item_scopes, moment_text, payload_values, run_error
from workflows.statuses import VisitStatus

_VISIT = (
    "number", "scope", "step", "round", "kind", "status", "outcome", "output_digest", "error", "exit_code",
    "revision_created", "revision_settled", "started_at", "ended_at",
)  # fmt: skip
_ATTEMPT = (
    "visit", "number", "status", "outcome", "error", "authorization", "late_outcome",
    "revision_created", "revision_settled", "started_at", "ended_at",
)  # fmt: skip
Row = dict[str, Any]


def _only(names: Iterable[str], row: Row) -> Row:
    return {name: row[name] for name in names}


def state_at(run_id: int, revision: int) -> dict[str, Any]:
    """The run as it was once ``revision`` was committed; eight queries. Raises ``run.not_found``,
    ``history.no_such_revision``."""
    run = find_run(run_id)
    if not 1 <= revision <= run.revision:
        raise Refusal("history.no_such_revision", run=run_id, revision=revision, current=run.revision)
    past = Past(run_id, revision)
    state = past.state
    visits = past.visits(_VISIT)
    attempts = _attempts(past, {visit["number"]: visit["kind"] for visit in visits})
    values = payload_values([state["output_digest"], *(visit["output_digest"] for visit in visits)])
    items = item_scopes(run_id)
    last_event = Event.objects.filter(run_id=run_id, revision__lte=revision).order_by("-sequence")
    return {
        "run": run_id,
        "workflow": run.workflow.name,
        "revision": revision,
        "current_revision": run.revision,
        "status": state["status"],
        "reasons": json.loads(state["reasons"]),
        "held": json.loads(state["held"]) if state["held"] else None,
        "closing": json.loads(state["closing"]) if state["closing"] else None,
        "output": values.get(state["output_digest"]),
        "error": run_error(state["error"]),
        "started_at": _moment(state["started_at"]),
        "ended_at": _moment(state["ended_at"]),
        "scopes": [_scope(path, row) for path, row in past.rows("scope").items()],
        "variables": {path: json.loads(row["values"]) for path, row in past.rows("scopevars").items()},
        "visits": [
            _visit(visit, values, attempts[visit["number"]], items)
            for visit in visits
            if visit["status"] != VisitStatus.REFUSED
        ],
        "questions": _questions(past, {visit["number"]: visit for visit in visits}),
        "events_cursor": last_event.values_list("sequence", flat=True).first() or 0,
    }


def _attempts(past: Past, kinds: Mapping[int, str]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for was in past.attempts(_ATTEMPT, kinds):
        found[was["visit"]].append(
            {
                "number": was["number"],
                "status": was["status"],
                "error": json.loads(was["error"]) if was["error"] else None,
                "started_at": _moment(was["started_at"]),
                "ended_at": _moment(was["ended_at"]),
            }
        )
    return found


def _questions(past: Past, visits: Mapping[int, Row]) -> list[Row]:
    """The questions that were open: asked by then, and neither answered nor closed."""
    asked = Interrupt.objects.filter(run_id=past.run_id, revision_created__lte=past.revision)
    still_open = asked.filter(Q(revision_settled=None) | Q(revision_settled__gt=past.revision))
    return [
        {
            "id": f"v{question.visit}",
            "step": visits[question.visit]["step"],
            "path": _path(visits[question.visit]),
            "kind": question.kind,
            "ask": question.ask,
            "deadline": None if question.deadline_ms is None else _moment(moment(question.deadline_ms)),
        }
        for question in still_open.order_by("visit", "attempt")
    ]


def _visit(visit: Row, values: Mapping[str | None, Any], attempts: Iterable[Row], items: Mapping[str, Row]) -> Row:
    return {
        "number": visit["number"],
        "step": visit["step"],
        "path": _path(visit),
        "scope": visit["scope"],
        "item": items.get(visit["scope"]),
        "status": visit["status"],
        "outcome": visit["outcome"] or None,
        "output": values.get(visit["output_digest"]),
        "error": json.loads(visit["error"]) if visit["error"] else None,
        "attempts": list(attempts),
    }


def _path(visit: Row) -> str:
    return visit_path(visit["scope"], visit["step"], visit["round"] or 1)


def _scope(path: str, row: Row) -> Row:
    names = ("kind", "section", "phase", "step", "visit", "waits_for", "wake_at_ms")
    return {"path": path, **{name: row.get(name) for name in names}}


def _moment(value: datetime | str | None) -> str | None:
    return moment_text(moment_of(value))
