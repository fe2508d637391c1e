"""Inspect history: the newest version of every row that changes is that row (REV.3). See ``inspection``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.db.models import Model

from workflows.facts import AttemptRow, RunState, ScopeRow, VisitRow, column_names
from workflows.ledger.inspection_rows import RunRows
from workflows.ledger.past import Past
from workflows.ledger.records import compact
from workflows.statuses import AttemptStatus

_SCOPE = tuple(name for name in column_names(ScopeRow) if name != "inherited")
_WHOLE_ROWS = {"run": column_names(RunState), "scope": _SCOPE, "scopevars": ("values",)}
_VISIT, _ATTEMPT = column_names(VisitRow), column_names(AttemptRow)


def versions(rows: RunRows) -> Iterator[str]:
    """Versions belong to rows and revisions that exist; merged they are the rows."""
    newest: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for version in rows.versions():
        name = f"version of {version.table} {version.key} at revision {version.revision}"
        if not 1 <= version.revision <= rows.run.revision:
            yield f"{name} of {rows.run.revision}"
        try:
            changed = json.loads(version.row)
        except ValueError:
            changed = None
        if not isinstance(changed, dict):
            yield f"{name} is not JSON"
            continue
        changed.pop("inherited", None)  # how a row came into its run is no part of its history
        newest[version.table, version.key].update(changed)
    present = dict(_present_rows(rows))
    for place, merged in newest.items():
        row = present.get(place)
        if row is None:
            yield f"versions of {place[0]} {place[1]}, which does not exist"
            continue
        yield from _differences(place, merged, row)
    for (table, key), row in present.items():
        missing = _missing_columns(table, row, newest.get((table, key), {}))
        if missing:
            yield f"{table} {key} has no version of {', '.join(missing)}"


def last_revision(rows: RunRows) -> Iterator[str]:
    """The state at the last revision, as history reads it, is that of the rows (REV.2)."""
    past = Past(rows.run.pk, rows.run.revision)
    for visit in rows.visits:
        row = {name: getattr(visit, name) for name in _VISIT}
        yield from _compared(f"v{visit.number}", past.visit(row), row)
    for attempt in rows.attempts:
        owner = rows.visit_by_number.get(attempt.visit)
        if owner is not None:
            row = {name: getattr(attempt, name) for name in _ATTEMPT}
            yield from _compared(f"v{attempt.visit}.{attempt.number}", past.attempt(row, owner.kind), row)


def _compared(name: str, was: dict[str, Any], row: dict[str, Any]) -> Iterator[str]:
    if was == row:
        return
    was, row = json.loads(compact(was)), json.loads(compact(row))
    for column in (column for column in row if was[column] != row[column]):
        yield f"{name}: {column} is {row[column]!r}, history says {was[column]!r}"


def _differences(place: tuple[str, str], merged: dict[str, Any], row: Model) -> Iterator[str]:
    known = {name for name in merged if hasattr(row, name)}
    for name in sorted(set(merged) - known):
        yield f"{place[0]} {place[1]}: a version is about {name}, which it does not have"
    stored = json.loads(compact({name: getattr(row, name) for name in known}))
    for name in (name for name in merged if name in known and merged[name] != stored[name]):
        yield f"{place[0]} {place[1]}: {name} is {stored[name]!r}, its newest version says {merged[name]!r}"


def _present_rows(rows: RunRows) -> Iterator[tuple[tuple[str, str], Model]]:
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
