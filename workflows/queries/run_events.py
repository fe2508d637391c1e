"""Events and control messages of a run as its page lists them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from workflows.models import ControlMessage, Event, Run
from workflows.queries.events import event_document
from workflows.statuses import ControlKind

EVENT_PAGE = 100
MOST_MESSAGES = 200
#: Characters of the content of a message that are shown.
MOST_CONTENT = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    number: int
    revision: int
    type: str
    at: datetime
    actor: str
    visit: int | None
    attempt: int | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """``cursor`` is the number to ask after next; ``has_more``: there are events behind it already."""

    events: tuple[EventLine, ...]
    cursor: int
    has_more: bool


def event_lines(run: Run, *, after: int = 0, types: Iterable[str] = (), visit: int | None = None) -> EventPage:
    """The events numbered above ``after``, in order. Those a fork took over from its origin are not its own (EVT.5).

    The cursor moves over what a filter leaves out, too: the run was read before.
    """
    rows = _own(run).filter(sequence__gt=after)
    types = list(types)
    if types:
        rows = rows.filter(type__in=types)
    if visit is not None:
        rows = rows.filter(visit=visit)
    found = list(rows.order_by("sequence")[: EVENT_PAGE + 1])
    has_more, found = len(found) > EVENT_PAGE, found[:EVENT_PAGE]
    last = found[-1].sequence if found else after
    cursor = last if has_more else max(last, run.next_event - 1)
    return EventPage(events=tuple(_line(row) for row in found), cursor=cursor, has_more=has_more)


def event_types(run: Run) -> list[tuple[str, int]]:
    """The types that occur in a run, with how often."""
    return list(_own(run).values_list("type").annotate(count=Count("pk")).order_by("type"))


def events_of_revision(run: Run, revision: int) -> list[EventLine]:
    """What happened in one revision."""
    rows = Event.objects.filter(run=run, revision=revision).order_by("sequence")[:EVENT_PAGE]
    return [_line(row) for row in rows]


def last_page_after(run: Run) -> int:
    """The cursor from which the newest events are one page."""
    return max(run.next_event - 1 - EVENT_PAGE, 0)


def all_events(run: Run) -> Iterator[dict[str, Any]]:
    """Every event of a run as JSON, read piece by piece."""
    for row in _own(run).order_by("sequence").iterator(chunk_size=1_000):
        yield event_document(row)


def _own(run: Run) -> Any:
    return Event.objects.filter(run=run, inherited=False)


def _line(row: Event) -> EventLine:
    return EventLine(
        number=row.sequence,
        revision=row.revision,
        type=row.type,
        at=row.at,
        actor=row.actor,
        visit=row.visit,
        attempt=row.attempt,
        data=json.loads(row.payload),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A control message. ``content`` is what it says, in words or as JSON; ``taken_at`` None: it waits."""

    sequence: int
    kind: str
    name: str
    content: str
    sender: str
    accepted_at: datetime
    consumed_by: str
    consumed_at: datetime | None
    request_id: str


def messages_of(run: Run) -> list[Message]:
    """The newest control messages first."""
    rows = ControlMessage.objects.filter(run=run).order_by("-sequence")[:MOST_MESSAGES]
    return [_message(row) for row in rows]


def _message(row: ControlMessage) -> Message:
    payload: dict[str, Any] = json.loads(row.payload)
    return Message(
        sequence=row.sequence,
        kind=row.kind,
        name=str(payload.get("name", "")) if row.kind == ControlKind.SIGNAL else "",
        content=_content(row.kind, payload)[:MOST_CONTENT],
        sender=row.sender,
        accepted_at=row.accepted_at,
        consumed_by=row.consumed_by,
        consumed_at=row.consumed_at,
        request_id=row.request_id,
    )


def _content(kind: str, payload: dict[str, Any]) -> str:
    if kind == ControlKind.SIGNAL:
        value = payload.get("payload")
        return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    if set(payload) <= {"reason", "text"}:
        return str(payload.get("text") or payload.get("reason") or "")
    rest = {name: value for name, value in payload.items() if name != "reason"}
    told = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in rest.items())
    return f"{told}: {payload['reason']}" if payload.get("reason") else told
