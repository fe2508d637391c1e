"""What is wrong with the times of a schedule, in words: of a file, or of one that a person makes."""

from __future__ import annotations

import zoneinfo
from functools import lru_cache

from workflows.definitions.suggestions import zone_like
from workflows.definitions.validation.cron import cron_trouble
from workflows.definitions.wording import shown
from workflows.errors import Problem


def cron_problem(cron: str, path: str) -> Problem | None:
    """E504 for what is no cron expression of five fields, or never comes."""
    reason = cron_trouble(cron)
    if not reason:
        return None
    return Problem(
        code="E504",
        path=path,
        message=f"{shown(cron)} is not a valid cron expression: {reason}.",
        hint='Fields: minute hour day month weekday, e.g. "0 2 * * *" for 02:00 every day.',
    )


def zone_problem(zone: str, path: str) -> Problem | None:
    """E505 for a name that is no time zone of this machine."""
    if zone in time_zones():
        return None
    suggestion = zone_like(zone, time_zones())
    hint = f'Did you mean "{suggestion}"?' if suggestion else 'Examples: "UTC", "Europe/Berlin".'
    return Problem(code="E505", path=path, message=f"{shown(zone)} is not a time zone.", hint=hint)


@lru_cache(maxsize=1)
def time_zones() -> frozenset[str]:
    """The names of all time zones of this machine."""
    return frozenset(zone for zone in zoneinfo.available_timezones() if not zone.startswith(("posix/", "right/")))
