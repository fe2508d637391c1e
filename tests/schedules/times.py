"""A slow model of timetables: every minute is looked at, and the fields are compared by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def at(text: str) -> datetime:
    """A moment in UTC: ``2026-03-29 01:00``."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (int(part) for part in span.split("-"))
        else:
            first = int(span)
            last = high if step else first
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def fits(cron: str, wall: datetime) -> bool:
    """Whether a wall clock shows a time of the expression. Days: both fields must fit, or one of two restricted ones."""
    fields = cron.split()
    minute, hour, day, month, weekday = (values(f, *span) for f, span in zip(fields, _RANGES, strict=True))
    if wall.minute not in minute or wall.hour not in hour or wall.month not in month:
        return False
    by_day, by_weekday = wall.day in day, wall.isoweekday() % 7 in weekday
    both = fields[2] != "*" and fields[4] != "*"
    return (by_day or by_weekday) if both else (by_day and by_weekday)


def slow_times(cron: str, zone_name: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """The times in (start, end], found by walking through the minutes of UTC and looking at the clock on the wall.

    The clock jumps over minutes: they are due when it arrives. It shows minutes again: they are not due again.
    """
    zone = ZoneInfo(zone_name)

    def wall(moment: datetime) -> datetime:
        return moment.astimezone(zone).replace(tzinfo=None, fold=0)

    moment = start - timedelta(days=2)
    highest = wall(moment - MINUTE)
    while moment <= end:
        shown = wall(moment)
        is_due = False
        while highest < shown:
            highest += MINUTE
            is_due = is_due or fits(cron, highest)
        if is_due and moment > start:
            yield moment
        moment += MINUTE
