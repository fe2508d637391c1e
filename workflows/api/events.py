"""Events of a run by their cursor, at once or as soon as there are some (promises EVT)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from workflows.api.callers import Needs
from workflows.api.looking import about_run
from workflows.api.problems import document
from workflows.api.shapes import MOST_ID, EventsOut, RunNumber
from workflows.queries.event_waiting import LONGEST_WAIT_S, wait_for_events
from workflows.queries.events import PAGE
from workflows.queries.seen import seen_run

router = Router(tags=["events"])


@router.get("/{run}/events", auth=Needs("read"), response=EventsOut)
def list_events(
    request: HttpRequest,
    run: RunNumber,
    after: Annotated[int, Query(ge=0, le=MOST_ID, description="The cursor: events with larger numbers.")] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    wait: Annotated[float, Query(ge=0, description=f"Seconds; at most {LONGEST_WAIT_S:g} are waited.")] = 0,
) -> HttpResponse:
    """The events after a cursor, in order. With `wait` it answers with the first event after the cursor, or when the
    time is over with the cursor as it is; of a run that has ended at once."""
    caller = about_run(request, run)
    page = wait_for_events(run, after, limit=limit, wait_s=wait)
    if wait:
        seen_run(run, caller.user)  # what may be seen can have changed meanwhile
    return document(asdict(page))
