"""Ages, durations and numbers in words, for every page."""

from __future__ import annotations

from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def age_words(passed: timedelta) -> str:
    """How long ago, or in how long, something is.

    >>> age_words(timedelta(seconds=3)), age_words(timedelta(minutes=3)), age_words(timedelta(hours=-2))
    ('just now', '3 min ago', 'in 2 h')
    """
    seconds = passed.total_seconds()
    length = rough_words(abs(passed))
    if seconds < 0:
        return f"in {length}"
    return "just now" if seconds < 5 else f"{length} ago"


def rough_words(length: timedelta) -> str:
    """A length of time with one unit, rounded down.

    >>> rough_words(timedelta(seconds=75.2)), rough_words(timedelta(days=90))
    ('1 min', '2 months')
    """
    seconds = max(length.total_seconds(), 0.0)
    for unit, name, most in ((1, "s", 60), (_MINUTE, "min", 60), (_HOUR, "h", 48), (_DAY, "d", 60)):
        if seconds < unit * most:
            return f"{int(seconds // unit)} {name}"
    months = seconds / (30.44 * _DAY)
    return f"{int(months)} months" if months < 24 else f"{int(months // 12)} years"


def duration_words(length: timedelta) -> str:
    """A length of time with two units at most.

    >>> duration_words(timedelta(milliseconds=42)), duration_words(timedelta(seconds=75.2))
    ('42 ms', '1 min 15 s')
    >>> duration_words(timedelta(seconds=3.14)), duration_words(timedelta(hours=26))
    ('3.1 s', '1 d 2 h')
    """
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, name, part, part_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // part
            return f"{whole // unit} {name} {rest} {part_name}" if rest else f"{whole // unit} {name}"
    return f"{whole} s"


def exact_words(at: datetime) -> str:
    """A moment as people compare it with a log.

    >>> from datetime import UTC
    >>> exact_words(datetime(2026, 1, 31, 9, 30, 5, tzinfo=UTC))
    '2026-01-31 09:30:05 UTC'
    """
    return at.strftime("%Y-%m-%d %H:%M:%S ") + (at.tzname() or "")


def count_words(number: int) -> str:
    """A number with thin spaces between thousands.

    >>> count_words(12345)
    '12\\u202f345'
    """
    return f"{number:,}".replace(",", "\u202f")
