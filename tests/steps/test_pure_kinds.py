"""assign, condition, wait and end: pure decisions of the values they are given (docs/format.md, 3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.steps.support import enter, step_of
from workflows.engine.contract import EndBody, Settled, Sleep
from workflows.expressions import BadExpression, compile_value

NOW_MS = 1_769_850_000_000  # 2026-01-31T09:00:00Z


def options(**written: Any) -> dict[str, Any]:
    return {key: compile_value(value) for key, value in written.items()}


# ---- assign -----------------------------------------------------------------------------------------------------------


def test_all_values_are_computed_before_any_is_stored() -> None:
    step = step_of("assign", {"set": options(a="${ vars.b }", b="${ vars.a }", text="${ vars.a }!", fixed=[1, None])})

    values = {"a": 2, "b": 1, "text": "1!", "fixed": [1, None]}
    assert enter(step, vars={"a": 1, "b": 2}) == Settled(outcome="ok", output=values, variables=values)


def test_a_failing_value_is_left_to_the_engine() -> None:
    with pytest.raises(BadExpression):
        enter(step_of("assign", {"set": options(a="${ vars.a + 1 }")}), vars={"a": "text"})


# ---- condition --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "outcome"), [(11, "then"), (10, "else")])
def test_if_chooses_then_or_else(n: int, outcome: str) -> None:
    step = step_of("condition", {"if": compile_value("${ params.n > 10 }"), "cases": ()})

    assert enter(step, params={"n": n}) == Settled(outcome=outcome, output=outcome)


@pytest.mark.parametrize(("n", "outcome"), [(9, "large"), (4, "medium"), (1, "else")])
def test_the_first_true_case_wins(n: int, outcome: str) -> None:
    cases = ((compile_value("${ n > 5 }"), "large"), (compile_value("${ n > 2 }"), "medium"))

    assert enter(step_of("condition", {"if": None, "cases": cases}), n=n) == Settled(outcome=outcome, output=outcome)


def test_cases_after_the_first_true_one_are_not_evaluated() -> None:
    cases = ((compile_value("${ true }"), "first"), (compile_value("${ 1 / 0 > 0 }"), "second"))

    assert enter(step_of("condition", {"cases": cases})) == Settled(outcome="first", output="first")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1, "the number 1"),
        ("true", 'the text "true"'),
        (None, "null"),
        ([True], "a list"),
        ({}, "a mapping"),
        (1.5, "the number 1.5"),
        ("x" * 100, f'the text "{"x" * 80}…"'),
    ],
)
def test_only_true_and_false_decide(value: Any, told: str) -> None:
    with pytest.raises(BadExpression) as caught:
        enter(step_of("condition", {"if": compile_value("${ v }"), "cases": ()}), v=value)
    assert str(caught.value) == f'"if" must be true or false, but it is {told}.'

    with pytest.raises(BadExpression) as caught:
        enter(step_of("condition", {"cases": ((compile_value("${ v }"), "one"),)}), v=value)
    assert str(caught.value) == f'"cases[0].when" must be true or false, but it is {told}.'


# ---- wait -------------------------------------------------------------------------------------------------------------


def test_a_timer_counts_from_the_decision() -> None:
    step = step_of("wait", options(**{"for": "1h30m"}))

    assert enter(step, now_ms=NOW_MS) == Sleep(until_ms=NOW_MS + 5_400_000, outcome="elapsed")


def test_a_timer_may_be_computed_and_nought_does_not_wait() -> None:
    step = step_of("wait", options(**{"for": "${ string(n) + 'ms' }"}))

    assert enter(step, now_ms=NOW_MS, n=5) == Sleep(until_ms=NOW_MS + 5, outcome="elapsed")
    assert enter(step, now_ms=NOW_MS, n=0) == Settled(outcome="elapsed")


@pytest.mark.parametrize(
    ("point", "until_ms"),
    [
        ("2026-01-31T09:00:01Z", NOW_MS + 1_000),
        ("2026-01-31t09:00:01z", NOW_MS + 1_000),
        ("2026-01-31 10:00:00.5+01:00", NOW_MS + 500),
        ("2026-01-31T04:00:00.0001-05:00", NOW_MS + 1),
        ("2026-01-31T09:00:00.123456789Z", NOW_MS + 124),
        ("2026-01-31T09:00:00.120000000Z", NOW_MS + 120),
        ("2026-12-31T23:59:60Z", 1_798_761_600_000),
        ('${ timestamp("2026-01-31T09:00:02Z") }', NOW_MS + 2_000),
    ],
)
def test_a_point_in_time_is_never_reached_early(point: str, until_ms: int) -> None:
    assert enter(step_of("wait", options(until=point)), now_ms=NOW_MS) == Sleep(until_ms=until_ms, outcome="elapsed")


@pytest.mark.parametrize("point", ["2026-01-31T09:00:00Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_the_past_does_not_wait(point: str) -> None:
    assert enter(step_of("wait", options(until=point)), now_ms=NOW_MS) == Settled(outcome="elapsed")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("for", 30, '"for" must be a duration: "30" is not a duration. Examples: 500ms, 30s, 5m, 2h, 1h30m, 7d.'),
        (
            "for",
            "5 minutes",
            '"for" must be a duration: "5 minutes" is not a duration. Examples: 500ms, 30s, 5m, 2h, 1h30m, 7d.',
        ),
        (
            "until",
            "tomorrow",
            '"until" must be a point in time such as "2026-01-31T09:30:00+01:00", but it is the text "tomorrow".',
        ),
        (
            "until",
            "2026-01-31T09:00:00",
            '"until" must be a point in time such as "2026-01-31T09:30:00+01:00", '
            'but it is the text "2026-01-31T09:00:00".',
        ),
        ("until", None, '"until" must be a point in time such as "2026-01-31T09:30:00+01:00", but it is null.'),
        (
            "until",
            "2026-02-30T09:00:00Z",
            '"until" is not a point in time: day is out of range for month, in the text "2026-02-30T09:00:00Z".',
        ),
    ],
)
def test_what_is_no_time_is_told(key: str, value: Any, message: str) -> None:
    with pytest.raises(BadExpression) as caught:
        enter(step_of("wait", options(**{key: "${ v }"})), v=value)
    assert str(caught.value) == message


# ---- end --------------------------------------------------------------------------------------------------------------


def test_end_keeps_the_usual_output_unless_it_says_another() -> None:
    assert enter(step_of("end", {"status": "succeeded", "reason": None, "output": None})) == EndBody(succeeded=True)
    assert enter(step_of("end", {"status": "failed", **options(reason="After ${ n } tries", output=None)}), n=3) == (
        EndBody(succeeded=False, reason="After 3 tries", output=None, replaces=True)
    )
    assert enter(step_of("end", {"status": "succeeded", **options(output={"n": "${ n }"})}), n=3) == (
        EndBody(succeeded=True, output={"n": 3}, replaces=True)
    )


def test_a_reason_is_text() -> None:
    assert enter(step_of("end", {"status": "failed", **options(reason="${ n }")}), n=[1, 2]) == (
        EndBody(succeeded=False, reason="[1,2]")
    )
