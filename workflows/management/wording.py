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


def counted(count: int, noun: str) -> str:
    """
    >>> [counted(count, "item") for count in (1, 3)]
    ['1 item', '3 items']
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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
    WaitsFor.PEOPLE: "{step} (v{visit}) waits for an answer{until}",
    WaitsFor.SIGNAL: "{step} (v{visit}) waits for the signal {signal}{until}",
    WaitsFor.CHILD: "{step} (v{visit}) waits for run {child}, which is {child_status}{until}",
    WaitsFor.EXTERNAL: "{step} (v{visit}) {work}{until}",
    WaitsFor.SLOT: '{step} waits for a place in "{group}"{holders}{until}',
    "later": "it starts later{until}",
    "concurrency": 'it waits in line for a slot of "{key}"{ahead}{holders}',
    "held": "an operator holds the run",
}


def reason_text(reason: Mapping[str, Any]) -> str:
    """One cause of a run's status as a sentence without its full stop."""
    sentence = _CAUSES.get(reason["cause"], "{step} waits for: " + str(reason["cause"]))
    if any(f"{{{name}}}" in sentence and name not in reason for name in _KNOWN_ONLY_SOMETIMES):
        sentence = "{step} waits for: " + str(reason["cause"])
    until_ms = reason.get("until_ms")
    holders, ahead = reason.get("holders", []), reason.get("ahead", 0)
    words = {
        "step": reason.get("scope", "") + ("/" if reason.get("scope") else "") + reason.get("step", ""),
        "visit": reason.get("visit", "?"),
        "until": f" (until {until(until_ms)})" if until_ms is not None else "",
        "holders": f", held by {', '.join(f'run {run}' for run in holders)}" if holders else "",
        "work": _work(reason),
        "ahead": f" behind {counted(ahead, 'other run')}" if ahead else "",
    }
    return sentence.format_map({**reason, **words})


def _work(reason: Mapping[str, Any]) -> str:
    """How the work of a step stands that another program does."""
    if reason.get("worker"):
        return f"is being done by {one_line(reason['worker'], 80)}"
    queue = reason.get("queue")
    return f'waits for a program in the queue "{queue}"' if queue else "waits for another program"


#: Names that are looked up beside the reason; without them it is told plainly.
_KNOWN_ONLY_SOMETIMES = ("signal", "child", "group", "key")


def next_moves(run_id: int, status: str, reasons: list[Mapping[str, Any]], *, is_asked: bool = False) -> Iterator[str]:
    """What a person can do about a run that is not over. ``is_asked``: it or its child runs wait for answers."""
    causes = {reason["cause"] for reason in reasons}
    if "held" in causes:
        yield f"`python manage.py runs resume {run_id}` lets it go on."
    if WaitsFor.RECONCILE in causes:
        yield f"Say what happened: `python manage.py runs reconcile {run_id} happened|did_not|stop --reason …`."
    if WaitsFor.CODE in causes:
        resume, go_on = f"`python manage.py runs resume {run_id}`", f"`python manage.py run_workflow {run_id}`"
        yield f"Install what is missing, then {resume} and {go_on}."
    for reason in reasons:
        if reason["cause"] == WaitsFor.SIGNAL and "signal" in reason:
            yield f"`python manage.py runs signal {run_id} {reason['signal']}` sends it."
    if is_asked:
        yield f"`python manage.py run_workflow {run_id}` goes on after the answers."
    elif status in ("queued", "running", "waiting"):
        yield f"`python manage.py run_workflow {run_id}` goes on with it."


def placed(path: str, item: Mapping[str, Any] | None) -> str:
    """A path of a step for people; the key of its item only where it says more than the index.

    >>> placed("each[2]/ok", {"index": 2, "key": "red"})
    'each[2]/ok (red)'
    """
    return path if item is None or item["key"] == str(item["index"]) else f"{path} ({one_line(item['key'], 60)})"


def value_text(value: Any) -> str:
    """A value for people: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def one_line(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, without line breaks and control characters."""
    flat = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
