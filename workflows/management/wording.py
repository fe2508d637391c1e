"""Words of the commands: durations, moments, and what a run waits for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from workflows.clock import moment
from workflows.statuses import WaitsFor


def duration(seconds: float) -> str:
    """
    >>> [duration(seconds) for seconds in (0.004, 1.25, 61, 3725, 90000)]
    ['0.00s', '1.25s', '1m 01s', '1h 02m', '1d 01h']
    """
    if seconds < 60:
        return f"{max(seconds, 0.0):.2f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02d}h"


def until(until_ms: int) -> str:
    """A moment (Unix milliseconds) as UTC text for people."""
    return f"{moment(until_ms).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start is not None and end is not None else None


_CAUSES: dict[str, str] = {
    WaitsFor.TIMER: "{step} waits for a moment{until}",
    WaitsFor.RETRY: "{step} waits for its next attempt{until}",
    WaitsFor.RECONCILE: "{step} (v{visit}) was interrupted, and nobody knows whether it happened",
    WaitsFor.CODE: "{step} needs code that this server lacks",
    "held": "an operator holds the run",
}


def reason_text(reason: Mapping[str, Any]) -> str:
    """One cause of a run's status as a sentence without its full stop."""
    sentence = _CAUSES.get(reason["cause"], "{step} waits for: " + str(reason["cause"]))
    until_ms = reason.get("until_ms")
    return sentence.format(
        step=reason.get("step", ""),
        visit=reason.get("visit", "?"),
        until=f" (until {until(until_ms)})" if until_ms is not None else "",
    )


def next_moves(run_id: int, status: str, reasons: list[Mapping[str, Any]]) -> Iterator[str]:
    """What a person can do about a run that is not over."""
    causes = {reason["cause"] for reason in reasons}
    if "held" in causes:
        yield f"`runs resume {run_id}` lets it go on."
    if WaitsFor.RECONCILE in causes:
        yield f"Say what happened: `runs reconcile {run_id} happened|did_not|stop --reason …`."
    if WaitsFor.CODE in causes:
        yield f"Install what is missing, then `runs resume {run_id}` and `run_workflow {run_id}`."
    if status in ("queued", "running", "waiting"):
        yield f"`run_workflow {run_id}` goes on with it."


def value_text(value: Any) -> str:
    """A value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def one_line(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, without line breaks and control characters."""
    flat = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
