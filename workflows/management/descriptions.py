"""Runs and events as lines of text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from workflows.management.lineage import lineage_lines
from workflows.management.questions import history_lines
from workflows.management.results import result_lines
from workflows.management.tables import table
from workflows.management.wording import duration, one_line, placed, seconds_between
from workflows.queries.waiting import Driven
from workflows.statuses import InterruptStatus, SlotKind

#: Child runs that are named.
MOST_CHILDREN = 50
#: Characters of a value that a list of steps shows.
VALUE_WIDTH = 60


def list_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Runs, one per line."""
    cells = [
        [row["run"], row["workflow"], row["status"], _day(row["created_at"]), row["started_by"], _told(row)]
        for row in rows
    ]
    return table(["RUN", "WORKFLOW", "STATUS", "STARTED", "BY", ""], cells)


def _told(row: dict[str, Any]) -> str:
    error = row["error"]
    if error is None:
        return one_line(row["title"], VALUE_WIDTH)
    place = f"{error['step']}: " if error["step"] else ""
    return one_line(f"{place}{error['message']}", VALUE_WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is told of a run beside its document: all its questions with their votes, who holds it and who drives it,
    its slots."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    held: dict[str, Any] | None = None
    slots: list[dict[str, Any]] = field(default_factory=list)
    driven: Driven | None = None


def described(document: dict[str, Any], beside: Beside | None = None) -> Iterator[str]:
    """A run: parameters, steps, and what became of it. The document of now, or of a revision."""
    beside = beside or Beside()
    at = f" at revision {document['revision']} of {document['current_revision']}" if "revision" in document else ""
    yield f"run {document['run']}: {document['workflow']}{at}"
    for name, value in document.get("params", {}).items():
        yield f"  {name} = {_short(value)}"
    yield from lineage_lines(document)
    if document["visits"]:
        yield from (f"  {line}" for line in table(["VISIT", "STEP", "OUTCOME", "TRIES", "TIME", ""], _steps(document)))
    for path, values in document.get("variables", {}).items():
        for name, value in values.items():
            yield f"  {path + '/' if path else ''}vars.{name} = {_short(value)}"
    yield from history_lines(beside.questions)
    yield from _holds(beside)
    yield from _children(document.get("children", ()))
    opened = [question for question in beside.questions if question["status"] == InterruptStatus.OPEN]
    yield from result_lines(document, quiet=False, questions=(opened, len(opened)), driven=beside.driven)


def _holds(beside: Beside) -> Iterator[str]:
    """Who holds the run, and the places that it has."""
    if beside.held is not None:
        why = f": {one_line(beside.held['reason'], 200)}" if beside.held["reason"] else ""
        yield f"  held by {beside.held['by']} since {_day(beside.held['since'])}{why}"
    for slot in beside.slots:
        if slot["number"] is not None:
            what = f"slot {slot['number']} of {slot['max']}" if slot["kind"] == SlotKind.CONCURRENCY else "a place"
            yield f'  has {what} of "{slot["name"]}"'


def _children(children: Sequence[int]) -> Iterator[str]:
    if children:
        more = f" and {len(children) - MOST_CHILDREN} more" if len(children) > MOST_CHILDREN else ""
        yield f"  child runs: {', '.join(str(child) for child in children[:MOST_CHILDREN])}{more}"


def _steps(document: dict[str, Any]) -> list[list[object]]:
    return [
        [
            f"v{visit['number']}",
            placed(visit["path"], visit.get("item")),
            visit["outcome"] or visit["status"],
            len(visit["attempts"]) or "",
            _time(visit["attempts"]),
            visit["error"]["message"] if visit["error"] else _short(visit["output"]),
        ]
        for visit in document["visits"]
    ]


def _time(attempts: list[dict[str, Any]]) -> str:
    if not attempts or attempts[-1]["ended_at"] is None:
        return ""
    seconds = seconds_between(_moment(attempts[0]["started_at"]), _moment(attempts[-1]["ended_at"]))
    return duration(seconds) if seconds is not None else ""


def event_line(event: dict[str, Any]) -> str:
    """An event in one line."""
    place = f" v{event['visit']}" if event["visit"] is not None else ""
    attempt = f".{event['attempt']}" if place and event["attempt"] is not None else ""
    details = [f"{name}={_short(value)}" for name, value in event["data"].items()]
    by = [f"by {event['actor']}"] if event["actor"] else []
    return " ".join([f"{event['number']:>5} {event['at']} {event['type']}{place}{attempt}", *details, *by])


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, VALUE_WIDTH)


def _day(text: str | None) -> str:
    moment = _moment(text)
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment is not None else ""


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
