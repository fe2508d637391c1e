"""Timetables: the moments at which a cron expression of five fields is due in a time zone (promises SCH.1, SCH.2).

A wall clock decides, and days on which it is put forward or back are followed by two rules. A time that does not exist
is due right after the gap, once, however many of them lie in it. A time that occurs twice is due the first time only.
Pure: times are passed in and given back as aware datetimes in UTC, with the zone data of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MINUTE = timedelta(minutes=1)
#: What does not come within so many years never does; 29 February takes eight at most, on a given weekday forty.
MOST_YEARS = 50
_LAST_YEAR = 9990


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """``cron`` are the five fields, ``zone`` is the name of a time zone."""

    cron: str
    zone: str = "UTC"

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time after ``moment``; None when there is none. Raises ``ValueError`` for a zone that is unknown
        here or an expression that cannot be read."""
        return next(self.times_after(moment), None)

    def times_after(self, moment: datetime) -> Iterator[datetime]:
        """The times after ``moment``, in order. Raises what ``next_after`` raises."""
        zone = zone_of(self.zone)
        previous = moment
        for wall in _walls(self.cron, moment.astimezone(zone).replace(tzinfo=None, fold=0), forward=True):
            due = _due(wall, zone)
            if due > previous:
                previous = due
                yield due

    def times_before(self, moment: datetime) -> Iterator[datetime]:
        """The times until ``moment`` (itself included), the latest first. Raises what ``next_after`` raises."""
        zone = zone_of(self.zone)
        previous: datetime | None = None
        for wall in _walls(self.cron, _latest_wall(moment, zone) + _MINUTE, forward=False):
            due = _due(wall, zone)
            if due <= moment and (previous is None or due < previous):
                previous = due
                yield due

    def local(self, moment: datetime) -> datetime:
        """``moment`` as a clock of the zone shows it; in UTC when the zone is unknown here."""
        try:
            return moment.astimezone(zone_of(self.zone))
        except ValueError:
            return moment.astimezone(UTC)


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name. Raises ``ValueError``: this machine knows none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f'"{name}" is not a time zone that this machine knows') from None


def _walls(cron: str, start: datetime, *, forward: bool) -> Iterator[datetime]:
    """The times of a wall clock that fit, after or before ``start``, without any regard to zones."""
    from croniter import CroniterBadDateError, CroniterError, croniter  # slow to import, and few runs have a timetable

    try:
        times = croniter(cron, start, max_years_between_matches=MOST_YEARS)
        while True:
            wall: datetime = (times.get_next if forward else times.get_prev)(datetime)
            if not 1 < wall.year < _LAST_YEAR:
                return
            yield wall
    except CroniterBadDateError:
        return
    except (CroniterError, OverflowError) as error:
        raise ValueError(f'"{cron}" is not a timetable: {error}') from None


def _due(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which a wall clock shows ``wall`` first, or the end of the gap that swallows it."""
    first = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _wall(first, zone) == wall:
        return first
    return _end_of_gap(wall, zone)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first second at which the clock shows more than ``wall``, which it never shows."""
    early, late = sorted(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    seconds = int((late - early).total_seconds())
    low, high = 0, seconds
    while low < high:
        middle = (low + high) // 2
        if _wall(early + timedelta(seconds=middle), zone) >= wall:
            high = middle
        else:
            low = middle + 1
    return early + timedelta(seconds=low)


def _latest_wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """The latest that a clock has shown until ``moment``: one that was put back has shown more before."""
    shown = moment.astimezone(zone)
    offsets = (shown.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return moment.astimezone(UTC).replace(tzinfo=None) + max(offsets)
