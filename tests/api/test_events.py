"""Events by their cursor, at once or as soon as there are some (promise EVT.6)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests.api.programs import program
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from tests.support.rows import all_rows
from workflows.models import Event
from workflows.operations.people import Actor
from workflows.operations.runs import pause
from workflows.queries.event_waiting import LONGEST_PAUSE_S, LONGEST_WAIT_S, wait_for_events
from workflows.seats import SEATS

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = workflow("  - { id: ready, kind: wait, signal: go_on }", name="waits")
ENDS = workflow("  - { id: a, kind: end, status: succeeded }", name="ends")
SHELL = Actor(name="shell:root", recorded="shell:root")


class Time:
    """A clock that only moves while somebody pauses; ``then`` happens at a moment."""

    def __init__(self, *then: tuple[float, Any]) -> None:
        self.now, self.then, self.pauses = 0.0, list(then), 0
        self.held: list[bool] = []

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        assert 0 < seconds <= LONGEST_PAUSE_S
        self.held.append(connection.connection is not None)
        self.pauses += 1
        self.now += seconds
        while self.then and self.then[0][0] <= self.now:
            self.then.pop(0)[1]()
            connection.close()


def waiting_run() -> int:
    run = publish_run(WAITS)
    play(run)
    return run


def last(run: int) -> int:
    return int(Event.objects.filter(run=run).order_by("-sequence").values_list("sequence", flat=True)[0])


def test_what_is_there_is_told_at_once() -> None:
    """EVT.6"""
    run, time = waiting_run(), Time()
    page = wait_for_events(run, 0, limit=100, wait_s=20, now=time.clock, pause=time.pause)
    assert [event["number"] for event in page.events] == [*range(1, last(run) + 1)]
    assert time.pauses == 0


def test_the_first_event_after_the_cursor_ends_the_wait() -> None:
    """EVT.6"""
    run = waiting_run()
    cursor = last(run)
    time = Time((7.0, lambda: pause(run, actor=SHELL)))
    page = wait_for_events(run, cursor, limit=100, wait_s=20, now=time.clock, pause=time.pause)
    assert page.events[0]["number"] == cursor + 1
    assert page.cursor == last(run)
    assert 7.0 <= time.now <= 7.0 + LONGEST_PAUSE_S


def test_nothing_within_the_time_is_the_cursor_as_it_is() -> None:
    """EVT.6"""
    run, time = waiting_run(), Time()
    before = all_rows()
    page = wait_for_events(run, last(run), limit=100, wait_s=1_000, now=time.clock, pause=time.pause)
    assert (page.events, page.cursor, page.is_over) == ([], last(run), False)
    assert time.now == pytest.approx(LONGEST_WAIT_S)
    assert all_rows() == before


def test_no_connection_is_held_while_it_waits_and_few_looks_are_taken() -> None:
    """EVT.6"""
    run, time = waiting_run(), Time()
    wait_for_events(run, last(run), limit=100, wait_s=20, now=time.clock, pause=time.pause)
    assert not any(time.held)
    assert time.pauses <= 26


def test_a_run_that_has_ended_answers_at_once() -> None:
    """EVT.6"""
    run, time = publish_run(ENDS), Time()
    play(run)
    page = wait_for_events(run, last(run), limit=100, wait_s=20, now=time.clock, pause=time.pause)
    assert (page.events, page.cursor, page.is_over) == ([], last(run), True)
    assert time.pauses == 0


def test_a_run_that_ends_while_somebody_waits_says_so() -> None:
    """EVT.6"""
    run = publish_run(ENDS)
    cursor = last(run)
    time = Time((3.0, lambda: play(run)))
    page = wait_for_events(run, cursor, limit=100, wait_s=20, now=time.clock, pause=time.pause)
    assert page.is_over
    assert page.events[-1]["number"] == last(run)


def test_only_so_many_wait_at_once_and_the_others_get_their_cursor(settings: Any) -> None:
    """EVT.6"""
    settings.WAYPOST_API_WAITING_LIMIT = 1
    run = waiting_run()
    cursor = last(run)
    inner: list[Any] = []
    second = Time()

    def meanwhile() -> None:
        inner.append(wait_for_events(run, cursor, limit=9, wait_s=20, now=second.clock, pause=second.pause))

    time = Time((2.0, meanwhile))
    wait_for_events(run, cursor, limit=9, wait_s=5, now=time.clock, pause=time.pause)
    assert second.pauses == 0
    assert (inner[0].events, inner[0].cursor) == ([], cursor)
    assert SEATS.take()
    assert not SEATS.take()
    SEATS.leave()


def test_a_program_follows_a_run_page_by_page() -> None:
    """EVT.6"""
    run = publish_run(ENDS)
    play(run)
    reader = program("view_run")
    found, cursor, is_over = [], 0, False
    while not is_over:
        page = reader.get(f"/runs/{run}/events", after=cursor, limit=1, wait=5).json()
        found += [event["number"] for event in page["events"]]
        cursor, is_over = page["cursor"], page["is_over"]
    assert found == [*range(1, last(run) + 1)]
    beyond = reader.get(f"/runs/{run}/events", after=cursor + 5, wait=5).json()
    assert (beyond["events"], beyond["cursor"]) == ([], cursor + 5)
