"""Events of a run after a cursor (promises EVT)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workflows.models import Event
from workflows.queries.runs import find_run, moment_text

PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """``cursor`` is the number to ask after next; ``is_over``: the run has ended and there is nothing after this."""

    events: list[dict[str, Any]]
    cursor: int
    is_over: bool


def events_after(run_id: int, after: int = 0, *, limit: int = PAGE) -> EventPage:
    """The events numbered above ``after``, in order, at most ``limit``. Two queries. Raises ``run.not_found``.

    Those that a fork inherited are its origin's and hidden: it begins with ``run_forked``, numbered on from the cut.

    The run is read before its events: an event that is committed in between is found by the next page.
    """
    run = find_run(run_id)
    rows = Event.objects.filter(run_id=run_id, sequence__gt=after, inherited=False).order_by("sequence")[:limit]
    events = [event_document(row) for row in rows]
    cursor = events[-1]["number"] if events else after
    return EventPage(events=events, cursor=cursor, is_over=run.is_final and cursor >= run.next_event - 1)


def event_document(row: Event) -> dict[str, Any]:
    """An event as it is shown and downloaded."""
    return {
        "number": row.sequence,
        "revision": row.revision,
        "type": row.type,
        "at": moment_text(row.at),
        "actor": row.actor or None,
        "visit": row.visit,
        "attempt": row.attempt,
        "data": json.loads(row.payload),
    }
