"""When a schedule is due: clocks that are put forward and back, leap days, days that never come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedules.times import at, slow_times
from workflows.definitions.timetables import Timetable
from workflows.definitions.validation.cron import comes_ever, cron_trouble


def next_of(cron: str, zone: str, after: str, count: int = 3) -> list[str]:
    times = islice(Timetable(cron=cron, zone=zone).times_after(at(after)), count)
    return [f"{time:%Y-%m-%d %H:%M}" for time in times]


def test_a_time_that_does_not_exist_is_due_right_after_the_gap() -> None:
    """SCH.1"""
    assert next_of("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00") == [
        "2026-03-29 01:00",
        "2026-03-30 00:30",
        "2026-03-31 00:30",
    ]


def test_all_times_of_a_gap_are_due_once() -> None:
    """SCH.1"""
    assert next_of("*/20 * * * *", "Europe/Berlin", "2026-03-29 00:30") == [
        "2026-03-29 00:40",
        "2026-03-29 01:00",
        "2026-03-29 01:20",
    ]


def test_a_time_that_occurs_twice_is_due_the_first_time_only() -> None:
    """SCH.1"""
    assert next_of("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00") == [
        "2026-10-25 00:30",
        "2026-10-26 01:30",
        "2026-10-27 01:30",
    ]
    assert next_of("*/30 * * * *", "Europe/Berlin", "2026-10-25 00:00") == [
        "2026-10-25 00:30",
        "2026-10-25 02:00",
        "2026-10-25 02:30",
    ]


def test_in_the_second_of_two_equal_hours_the_next_time_is_after_it() -> None:
    """SCH.1"""
    assert next_of("*/30 * * * *", "Europe/Berlin", "2026-10-25 01:10", 1) == ["2026-10-25 02:00"]


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 00:00", "2026-10-03 15:30"),  # half an hour forward
        ("0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00", "2011-12-30 10:00"),  # a day that did not exist
        ("30 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-04 03:00"),  # midnight did not exist
        ("30 1 * * *", "America/New_York", "2026-11-01 00:00", "2026-11-01 05:30"),
    ],
)
def test_zones_with_other_rules(cron: str, zone: str, after: str, expected: str) -> None:
    """SCH.1"""
    assert next_of(cron, zone, after, 1) == [expected]


def test_a_leap_day_comes_every_four_years() -> None:
    """SCH.1"""
    assert next_of("0 0 29 2 *", "UTC", "2026-01-01 00:00") == [
        "2028-02-29 00:00",
        "2032-02-29 00:00",
        "2036-02-29 00:00",
    ]
    assert next_of("0 0 29 2 *", "UTC", "2096-03-01 00:00", 1) == ["2104-02-29 00:00"]


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 30,31 2 *", "0 0 31 2,4,6,9,11 *"])
def test_a_day_that_never_comes_is_no_timetable(cron: str) -> None:
    """SCH.1"""
    assert not comes_ever(cron)
    assert cron_trouble(cron) != ""
    assert next_of(cron, "UTC", "2026-01-01 00:00") == []


def test_a_zone_that_this_machine_does_not_know_is_told() -> None:
    with pytest.raises(ValueError, match='"Moon/Sea" is not a time zone'):
        Timetable(cron="0 0 * * *", zone="Moon/Sea").next_after(at("2026-01-01 00:00"))


_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca")
#: Days around which the clocks of these zones change, and an ordinary one.
_DAYS = ("2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-04-04", "2026-10-03", "2026-02-15", "2026-06-10")
_minutes = st.sampled_from(["*", "0", "30", "*/20", "5,35,59", "10-40/7"])
_hours = st.sampled_from(["*", "0", "1", "2", "3", "*/6", "1-3", "23"])
_days = st.sampled_from(["*", "*", "1", "29", "25-31", "*/2"])
_months = st.sampled_from(["*", "*", "3", "10", "2-11"])
_weekdays = st.sampled_from(["*", "*", "0", "1-5", "0,6"])
_crons = st.tuples(_minutes, _hours, _days, _months, _weekdays).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(cron=_crons, zone=st.sampled_from(_ZONES), day=st.sampled_from(_DAYS), offset=st.integers(0, 24 * 60))
def test_times_are_those_of_a_walk_through_all_minutes(cron: str, zone: str, day: str, offset: int) -> None:
    """SCH.1: forward and backward, the times of two days are what a clock on the wall shows."""
    start = at(day) - timedelta(days=1) + timedelta(minutes=offset)
    end = start + timedelta(days=2)
    slow = list(slow_times(cron, zone, start, end))
    table = Timetable(cron=cron, zone=zone)
    fast = []
    for time in table.times_after(start):
        if time > end:
            break
        fast.append(time)
    assert fast == slow
    back = []
    for time in table.times_before(end):
        if time <= start:
            break
        back.append(time)
    assert back == slow[::-1]


def test_moments_between_minutes_are_kept_apart() -> None:
    start = datetime(2026, 1, 1, 0, 0, 30, 5, tzinfo=UTC)
    table = Timetable(cron="* * * * *")
    assert table.next_after(start) == at("2026-01-01 00:01")
    assert next(table.times_before(start)) == at("2026-01-01 00:00")
    assert next(table.times_before(at("2026-01-01 00:00"))) == at("2026-01-01 00:00"), "itself included"
