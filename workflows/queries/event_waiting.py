"""Waiting for the events of a run (promise EVT.6)."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

from workflows.models import Run
from workflows.queries.events import EventPage, events_after
from workflows.seats import SEATS

LONGEST_WAIT_S = 20.0
#: Between two looks: short at first, since much happens soon after something was done.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0


def wait_for_events(
    run_id: int,
    after: int,
    *,
    limit: int,
    wait_s: float,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> EventPage:
    """The events after a cursor as soon as there are some, at the latest after ``wait_s`` seconds; at once for a run
    that has ended. Raises ``run.not_found``.

    No connection to the database is held during a pause. A look is one row by its key. When no
    seat is free in this process, it answers at once.
    """
    page = events_after(run_id, after, limit=limit)
    if page.events or page.is_over or wait_s <= 0 or not SEATS.take():
        return page
    try:
        ends_at, next_pause = now() + min(wait_s, LONGEST_WAIT_S), FIRST_PAUSE_S
        while (left := ends_at - now()) > 0:
            connection.close()
            pause(min(next_pause, left))
            next_pause = min(next_pause * 1.5, LONGEST_PAUSE_S)
            if _is_news(run_id, after):
                break
        return events_after(run_id, after, limit=limit)
    finally:
        SEATS.leave()


def _is_news(run_id: int, after: int) -> bool:
    """Whether there may be an event after the cursor, or no more to wait for."""
    row = Run.objects.filter(pk=run_id).only("next_event", "status").first()
    return row is None or row.is_final or row.next_event - 1 > after
