"""Axis and rows of the timeline, as tables: no database, no clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from workflows.queries.timeline import (
    THINNEST,
    Counts,
    Facts,
    Fold,
    Row,
    ScopeFacts,
    Timeline,
    TryFacts,
    VisitFacts,
    timeline,
    visit_state,
)
from workflows.queries.timescale import BREAK_WIDTH, MOST_TICKS, scale

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def visit(number: int, begin: float, end: float | None = None, **more: Any) -> VisitFacts:
    values: dict[str, Any] = {
        "number": number,
        "scope": "",
        "step": f"step{number}",
        "kind": "shell",
        "status": "open" if end is None else "settled",
        "started_at": at(begin),
        "ended_at": None if end is None else at(end),
        "outcome": "" if end is None else "ok",
        "attempts": 1,
    }
    return VisitFacts(**{**values, **more})


def attempt(visit: int, number: int, begin: float, end: float | None, status: str = "succeeded") -> TryFacts:
    return TryFacts(
        visit=visit,
        number=number,
        status=status,
        started_at=at(begin),
        ended_at=None if end is None else at(end),
    )


def drawn(facts: Facts, *, end: float | None = 10, now: float = 10, **more: Any) -> Timeline:
    return timeline(facts, start=START, end=None if end is None else at(end), now=at(now), **more)


def bars(row: Row) -> list[tuple[str, str, float, float]]:
    return [(bar.kind, bar.state, round(bar.left, 1), round(bar.width, 1)) for bar in row.bars]


# ---- the axis --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0.004, 0.3, 1, 7, 59, 61, 3_600, 20_000, 86_400, 900_000, 4_000_000, 2e9])
def test_an_axis_of_any_length_has_a_few_round_marks(length: float) -> None:
    ticks = scale(START, at(length), []).ticks()
    assert 2 <= len(ticks) <= MOST_TICKS + 1
    assert ticks[0].label == "0"
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


def test_marks_are_at_the_time_that_they_name() -> None:
    ticks = scale(START, at(60), []).ticks()
    assert [(tick.label, round(tick.at, 1)) for tick in ticks] == [
        ("0", 0.0), ("10 s", 16.7), ("20 s", 33.3), ("30 s", 50.0), ("40 s", 66.7), ("50 s", 83.3), ("1 min", 100.0),
    ]  # fmt: skip


def test_long_pauses_are_left_out_where_they_are_most_of_the_whole() -> None:
    """A wait of days between two seconds of work does not hide the work."""
    axis = scale(START, at(100_000), [(at(0), at(10)), (at(99_990), at(100_000))])
    assert axis.is_broken
    assert axis.has_pauses
    ((left, width),) = axis.breaks
    assert round(left, 3) == round((100 - BREAK_WIDTH) / 2, 3)
    assert width == BREAK_WIDTH
    assert axis.place(at(0)) == 0
    assert axis.place(at(5)) == pytest.approx(24.25)
    assert axis.place(at(50_000)) == pytest.approx(50.0, abs=2)
    assert axis.place(at(100_000)) == 100


def test_pauses_are_shown_in_full_when_asked_and_when_they_are_short() -> None:
    busy = [(at(0), at(10)), (at(99_990), at(100_000))]
    assert not scale(START, at(100_000), busy, without_pauses=False).is_broken
    mostly_busy = [(at(0), at(70)), (at(80), at(100))]
    assert not scale(START, at(100), mostly_busy).is_broken
    assert scale(START, at(100), mostly_busy, without_pauses=True).is_broken


def test_every_moment_keeps_its_order_on_an_axis_with_breaks() -> None:
    axis = scale(START, at(1_000), [(at(0), at(5)), (at(500), at(520)), (at(990), at(1_000))])
    places = [axis.place(at(seconds)) for seconds in range(0, 1_001, 5)]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == 100
    assert axis.place(at(-50)) == 0
    assert axis.place(at(5_000)) == 100


def test_marks_of_an_axis_with_breaks_do_not_touch() -> None:
    axis = scale(START, at(10_000), [(at(n * 1_000), at(n * 1_000 + 20)) for n in range(10)])
    places = [tick.at for tick in axis.ticks()]
    assert all(later - earlier >= 9 for earlier, later in pairwise(places))
    assert len(places) >= 2


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_a_step_is_a_row_and_its_tries_are_bars_with_the_waits_between_them() -> None:
    tries = [attempt(1, 1, 0, 2, "failed"), attempt(1, 2, 4, 5, "failed"), attempt(1, 3, 8, 10)]
    (row,) = drawn(Facts(visits=[visit(1, 0, 10, attempts=3)], tries=tries), without_pauses=False).rows
    assert bars(row) == [
        ("attempt", "failed", 0.0, 20.0),
        ("wait", "waiting", 20.0, 20.0),
        ("attempt", "failed", 40.0, 10.0),
        ("wait", "waiting", 50.0, 30.0),
        ("attempt", "succeeded", 80.0, 20.0),
    ]
    assert (row.state, row.attempts, row.seconds) == ("succeeded", 3, 10.0)


def test_bars_of_a_live_run_reach_to_now() -> None:
    facts = Facts(visits=[visit(1, 0, None)], tries=[attempt(1, 1, 5, None, "running")])
    found = drawn(facts, end=None, now=10)
    assert bars(found.rows[0]) == [("wait", "waiting", 0.0, 50.0), ("attempt", "running", 50.0, 50.0)]
    assert found.now == 100


def test_a_run_that_is_over_has_no_now() -> None:
    assert drawn(Facts(visits=[visit(1, 0, 1)])).now is None


def test_people_and_timers_have_bars_of_their_own_kind() -> None:
    asked = visit(1, 0, 4, kind="approval", outcome="approved")
    slept = visit(2, 4, 9, kind="wait", attempts=0, outcome="elapsed")
    found = drawn(Facts(visits=[asked, slept], tries=[attempt(1, 1, 0, 4)]), without_pauses=False)
    assert [bars(row)[0][0] for row in found.rows] == ["people", "wait"]


def test_what_takes_no_time_can_still_be_seen() -> None:
    (row,) = drawn(Facts(visits=[visit(1, 3, 3, kind="assign", attempts=0)])).rows
    assert row.bars[0].kind == "point"
    assert row.bars[0].width == THINNEST
    (row,) = drawn(Facts(visits=[visit(1, 10, 10, kind="assign", attempts=0)])).rows
    assert row.bars[0].left + row.bars[0].width <= 100


def test_items_stand_below_their_map_in_order_and_one_with_a_single_step_is_one_row() -> None:
    visits = [
        visit(1, 0, 9, kind="map", attempts=0),
        visit(2, 0, 4, scope="step1[1]"),
        visit(3, 0, 3, scope="step1[0]"),
        visit(4, 3, 5, scope="step1[0]"),
    ]
    scopes = [
        ScopeFacts(path="step1[1]", kind="item", parent_visit=1, index=1, key="red", outcome="ok"),
        ScopeFacts(path="step1[0]", kind="item", parent_visit=1, index=0, key="0", outcome="ok"),
    ]
    fold = Fold(counts=Counts(total=2, ok=2), shown=2)
    found = drawn(Facts(visits=visits, scopes=scopes, folds={1: fold}))
    assert [(row.key, row.depth, row.place or row.step) for row in found.rows] == [
        ("v1", 0, "step1"),
        ("s1-0", 1, "[0]"),
        ("v3", 2, "step3"),
        ("v4", 2, "step4"),
        ("v2", 1, "[1] red"),
    ]
    assert found.rows[0].fold == fold


def test_the_steps_of_a_block_stand_below_it_without_a_row_between() -> None:
    visits = [visit(1, 0, 9, kind="block", attempts=0), visit(2, 0, 9, scope="step1")]
    scopes = [ScopeFacts(path="step1", kind="block", parent_visit=1)]
    assert [(row.key, row.depth) for row in drawn(Facts(visits=visits, scopes=scopes)).rows] == [("v1", 0), ("v2", 1)]


def test_a_map_whose_items_are_not_all_shown_is_no_pause() -> None:
    """What is folded may have worked all the time."""
    visits = [visit(1, 0, 100, kind="map", attempts=0), visit(2, 0, 1, scope="step1[0]")]
    scopes = [ScopeFacts(path="step1[0]", kind="item", parent_visit=1, index=0, outcome="ok")]
    facts: dict[str, Any] = {"visits": visits, "tries": [attempt(2, 1, 0, 1)], "scopes": scopes}
    part = Fold(counts=Counts(total=900, ok=900), is_large=True, shown=1)
    assert not drawn(Facts(**facts, folds={1: part}), end=100).scale.has_pauses
    whole = Fold(counts=Counts(total=1, ok=1), shown=1)
    assert drawn(Facts(**facts, folds={1: whole}), end=100).scale.is_broken


def test_visits_taken_over_from_before_the_start_begin_the_axis() -> None:
    """FORK.2: inherited visits have the moments of the origin."""
    found = drawn(Facts(visits=[visit(1, -20, -10, inherited=True), visit(2, 0, 10)]), without_pauses=False)
    assert found.scale.start == at(-20)
    assert found.rows[0].bars[0].left == 0
    assert found.rows[0].inherited


@pytest.mark.parametrize(
    ("more", "statuses", "state"),
    [
        ({"status": "settled"}, [], "succeeded"),
        ({"status": "settled", "error_code": "timeout"}, [], "failed"),
        ({"status": "settled", "outcome": "skipped"}, [], "skipped"),
        ({"status": "settled", "outcome": "cancelled", "error_code": "cancelled"}, [], "cancelled"),
        ({"status": "refused"}, [], "refused"),
        ({"status": "open"}, ["running"], "running"),
        ({"status": "open"}, ["failed"], "waiting"),
        ({"status": "open"}, ["interrupted"], "waiting"),
        ({"status": "open"}, [], "waiting"),
        ({"status": "open", "kind": "approval"}, ["paused"], "paused"),
        ({"status": "open", "kind": "workflow"}, ["paused"], "running"),
        ({"status": "open", "kind": "map"}, [], "running"),
        ({"status": "levitating"}, [], "levitating"),
    ],
)
def test_the_state_of_a_visit_is_one_word(more: dict[str, Any], statuses: list[str], state: str) -> None:
    """WEB.4: a status of a newer version is told as it is."""
    tries = [attempt(1, number, 0, None, status) for number, status in enumerate(statuses, start=1)]
    assert visit_state(visit(1, 0, 1, **more), tries) == state


def test_pages_of_a_map_go_forth_and_back() -> None:
    fold = Fold(counts=Counts(total=120, ok=100, failed=3, running=5), is_large=True, first=50, shown=50)
    assert (fold.next, fold.previous) == (100, 0)
    assert Fold(counts=fold.counts, is_open=False).next is None
    assert fold.counts.waiting == 12
