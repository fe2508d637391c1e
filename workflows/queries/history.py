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

from workflows.engine.draft import visit_path
from workflows.errors import Refusal
from workflows.models import Attempt, Event, RowVersion, Visit
from workflows.queries.runs import find_run, item_scopes, moment_text, payload_values, run_error
from workflows.statuses import AttemptStatus, VisitStatus

_VISIT = (
    "number", "scope", "step", "round", "kind", "status", "outcome", "output_digest", "error", "exit_code",
    "revision_created", "revision_settled", "started_at", "ended_at",
)  # fmt: skip
_UNSETTLED_VISIT: dict[str, Any] = {
    "status": VisitStatus.OPEN.value,
    "outcome": "",
    "output_digest": None,
    "error": "",
    "exit_code": None,
    "revision_settled": None,
    "ended_at": None,
}
_ATTEMPT = (
    "visit", "number", "status", "outcome", "error", "authorization", "late_outcome",
    "revision_created", "revision_settled", "started_at", "ended_at",
)  # fmt: skip
_UNSETTLED_ATTEMPT: dict[str, Any] = {
    "status": AttemptStatus.RUNNING.value,
    "outcome": "",
    "error": "",
    "authorization": "",
    "late_outcome": "",
    "revision_settled": None,
    "ended_at": None,
}
Row = dict[str, Any]


def state_at(run_id: int, revision: int) -> dict[str, Any]:
    """The run as it was once ``revision`` was committed; seven queries. Raises ``run.not_found``,
    ``history.no_such_revision``."""
    run = find_run(run_id)
    if not 1 <= revision <= run.revision:
        raise Refusal("history.no_such_revision", run=run_id, revision=revision, current=run.revision)
    versions = _Versions(run_id, revision)
    state = versions.rows("run")[""]
    visits = _visits(run_id, revision, versions)
    attempts = _attempts(run_id, revision, versions)
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
        "scopes": [_scope(path, row) for path, row in versions.rows("scope").items()],
        "variables": {path: json.loads(row["values"]) for path, row in versions.rows("scopevars").items()},
        "visits": [
            _visit(visit, values, attempts[visit["number"]], items)
            for visit in visits
            if visit["status"] != VisitStatus.REFUSED
        ],
        "events_cursor": last_event.values_list("sequence", flat=True).first() or 0,
    }


class _Versions:
    """The versions of a run's rows: those up to the revision merged, and which columns ever changed."""

    def __init__(self, run_id: int, revision: int) -> None:
        self._merged: dict[str, dict[str, Row]] = defaultdict(dict)
        self._changing: dict[tuple[str, str], set[str]] = defaultdict(set)
        rows = RowVersion.objects.filter(run_id=run_id).order_by("revision", "pk")
        for at, table, key, text in rows.values_list("revision", "table", "key", "row"):
            changed: Row = json.loads(text)
            self._changing[table, key].update(changed)
            if at <= revision:
                self._merged[table].setdefault(key, {}).update(changed)

    def rows(self, table: str) -> Mapping[str, Row]:
        return self._merged[table]

    def as_was(self, table: str, key: str, row: Row, unsettled: Row, revision: int) -> Row:
        """``row`` with its columns of ``revision``: unsettled before its settlement, versions over that."""
        settled = row["revision_settled"] is not None and row["revision_settled"] <= revision
        was = dict(row) if settled else {**row, **unsettled}
        for name in self._changing.get((table, key), ()):
            if name in unsettled:
                was[name] = unsettled[name]
        was.update((name, value) for name, value in self._merged[table].get(key, {}).items() if name in was)
        return was


def _visits(run_id: int, revision: int, versions: _Versions) -> list[Row]:
    rows = Visit.objects.filter(run_id=run_id, revision_created__lte=revision).order_by("number").values(*_VISIT)
    return [versions.as_was("visit", str(row["number"]), row, _UNSETTLED_VISIT, revision) for row in rows]


def _attempts(run_id: int, revision: int, versions: _Versions) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    rows = Attempt.objects.filter(run_id=run_id, revision_created__lte=revision).order_by("visit", "number")
    for row in rows.values(*_ATTEMPT):
        key = f"{row['visit']}.{row['number']}"
        was = versions.as_was("attempt", key, row, _UNSETTLED_ATTEMPT, revision)
        found[row["visit"]].append(
            {
                "number": was["number"],
                "status": was["status"],
                "error": json.loads(was["error"]) if was["error"] else None,
                "started_at": _moment(was["started_at"]),
                "ended_at": _moment(was["ended_at"]),
            }
        )
    return found


def _visit(visit: Row, values: Mapping[str | None, Any], attempts: Iterable[Row], items: Mapping[str, Row]) -> Row:
    return {
        "number": visit["number"],
        "step": visit["step"],
        "path": visit_path(visit["scope"], visit["step"], visit["round"] or 1),
        "scope": visit["scope"],
        "item": items.get(visit["scope"]),
        "status": visit["status"],
        "outcome": visit["outcome"] or None,
        "output": values.get(visit["output_digest"]),
        "error": json.loads(visit["error"]) if visit["error"] else None,
        "attempts": list(attempts),
    }


def _scope(path: str, row: Row) -> Row:
    names = ("kind", "section", "phase", "step", "visit", "waits_for", "wake_at_ms")
    return {"path": path, **{name: row.get(name) for name in names}}


def _moment(value: datetime | str | None) -> str | None:
    """Moments of rows are datetimes, those of versions texts."""
    return moment_text(datetime.fromisoformat(value) if isinstance(value, str) else value)
