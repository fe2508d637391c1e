"""``wait``: a timer, a point in time, or a signal that somebody sends to the run. What has passed does not wait."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from workflows.definitions.durations import DurationError, parse_duration
from workflows.engine.contract import AwaitSignal, Entered, Entry, Settled, Sleep
from workflows.expressions import BadExpression
from workflows.steps.entering import kind_of_value, milliseconds

ELAPSED = "elapsed"

#: RFC 3339, section 5.6.
_POINT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}):(\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WaitKind:
    name = "wait"

    def enter(self, entry: Entry) -> Entered:
        options = entry.step.options
        if options.get("for") is not None:
            until_ms = entry.now_ms + _duration_ms(entry.evaluate(options["for"]))
        elif options.get("until") is not None:
            until_ms = point_ms(entry.evaluate(options["until"]))
        else:
            return _signal(entry)
        if until_ms <= entry.now_ms:
            return Settled(outcome=ELAPSED)
        return Sleep(until_ms=until_ms, outcome=ELAPSED)


def _signal(entry: Entry) -> AwaitSignal:
    name = entry.evaluate(entry.step.options["signal"])
    if not isinstance(name, str) or not name:
        raise BadExpression(f'"signal" must be the name of a signal, but it is {kind_of_value(name)}.')
    return AwaitSignal(
        name=name,
        match=entry.step.options["match"],
        timeout_ms=milliseconds(entry, entry.step.timeout, "timeout"),
    )


def _duration_ms(value: object) -> int:
    try:
        return parse_duration(value)
    except DurationError as error:
        raise BadExpression(f'"for" must be a duration: {error}') from None


def point_ms(value: object) -> int:
    """Unix milliseconds of RFC 3339 text, rounded up so that no wait ends early. Raises :class:`BadExpression`."""
    found = _POINT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise BadExpression(
            f'"until" must be a point in time such as "2026-01-31T09:30:00+01:00", but it is {kind_of_value(value)}.'
        )
    day, minute, second, fraction, offset = found.groups()
    # A leap second is written as 60; clocks repeat the last second of the minute instead.
    leap = second == "60"
    try:
        moment = datetime.fromisoformat(f"{day}T{minute}:{'59' if leap else second}{offset.upper()}")
    except ValueError as error:
        raise BadExpression(f'"until" is not a point in time: {error}, in {kind_of_value(value)}.') from None
    whole_ms = (moment - _EPOCH) // timedelta(milliseconds=1) + (1_000 if leap else 0)
    if fraction is None:
        return whole_ms
    thousands = int(fraction[:3].ljust(3, "0"))
    return whole_ms + thousands + (1 if fraction[3:].strip("0") else 0)
