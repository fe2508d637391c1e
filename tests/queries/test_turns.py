"""When somebody in the line of a rate goes on."""

from __future__ import annotations

import pytest

from workflows.queries.turns import earliest
from workflows.queries.why_facts import LineFacts, Standing, WaitFacts
from workflows.queries.why_steps import reasons_of_steps
from workflows.statuses import WaitsFor

NOW = 100


@pytest.mark.parametrize(
    ("started", "line", "turn"),
    [
        ([], [(1, 50)], NOW),
        ([60], [(1, 50)], 110),
        ([60], [(2, 50)], NOW),
        ([60, 90], [(2, 50)], 110),
        ([60], [(1, 50), (1, 50), (1, 50)], 210),
        ([60], [(1, 50), (2, 50)], 110),
        ([60], [(None, None), (1, 50)], 150),
        ([10, 20], [(1, 50)], NOW),
    ],
)
def test_each_goes_on_when_its_own_rate_lets_it_and_not_before_the_one_before_it(
    started: list[int], line: list[tuple[int | None, int | None]], turn: int
) -> None:
    assert earliest(started, line, NOW) == turn


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ({"max": 2}, "At most 2 attempts of this limit may run at once, over all runs."),
        ({"max": 0, "starts": 60, "per_ms": 60_000}, "At most 60 may start in any 1m, over all runs."),
        (
            {"max": 1, "starts": 5, "per_ms": 3_600_000},
            "At most 1 attempt of this limit may run at once, and 5 may start in any 1h, over all runs.",
        ),
    ],
)
def test_the_bounds_of_a_limit_are_told(line: dict[str, int], advice: str) -> None:
    """WEB.5"""
    wait = WaitFacts(cause=WaitsFor.SLOT, step="work", line=LineFacts(name="g", **line))  # type: ignore[arg-type]
    standing = Standing(run=1, status="waiting", now=None, created_at=None, waits=(wait,))  # type: ignore[arg-type]
    (because,) = reasons_of_steps(standing)
    assert because.advice == advice
