from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.definitions.durations import LONGEST_MS, DurationError, parse_duration, parse_rate, write_duration


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("90m", 5_400_000),
        ("0s", 0),
        ("1m5ms", 60_005),
    ],
)
def test_durations_are_read(written, milliseconds):
    assert parse_duration(written) == milliseconds


@pytest.mark.parametrize(
    ("written", "without_unit"),
    [
        (30, True),
        (1.5, True),
        ("30", True),
        ("1.5", True),
        ("", False),
        ("5 minutes", False),
        ("5 m", False),
        ("1.5h", False),
        ("30m1h", False),
        ("-5m", False),
        ("5M", False),
        ("m", False),
        ("٣s", False),
        ("4000d", False),
        (True, False),
        (None, False),
        (["5m"], False),
    ],
)
def test_everything_else_is_refused_and_a_missing_unit_is_told_apart(written, without_unit):
    with pytest.raises(DurationError) as caught:
        parse_duration(written)
    assert caught.value.without_unit is without_unit
    assert caught.value.written == written


def test_the_error_lists_examples():
    with pytest.raises(DurationError) as caught:
        parse_duration("soon")
    assert str(caught.value) == '"soon" is not a duration. Examples: 500ms, 30s, 5m, 2h, 1h30m, 7d.'


@given(st.integers(min_value=0, max_value=LONGEST_MS))
def test_every_duration_is_read_back_from_its_shortest_text(milliseconds):
    assert parse_duration(write_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("written", "rate"), [("60/1m", (60, 60_000)), ("1/10s", (1, 10_000)), ("5/2h", (5, 7_200_000))]
)
def test_rates_are_read(written, rate):
    assert parse_rate(written) == rate


@pytest.mark.parametrize("written", ["60", "60/m", "0/1m", "1/0s", "60/1d", "a/1m", ""])
def test_other_rates_are_refused(written):
    with pytest.raises(ValueError, match=r"is not a rate\. Example: 60/1m\."):
        parse_rate(written)
