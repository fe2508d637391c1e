"""What became of a run, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from workflows.management.wording import duration, next_moves, reason_text, seconds_between, value_text


def result_lines(result: dict[str, Any], *, quiet: bool) -> Iterator[str]:
    """Status, error, what it waits for, what to do about it (not for a past revision), output.

    ``quiet``: a succeeded run prints its output only.
    """
    status = result["status"]
    if not quiet or status != "succeeded":
        yield f"run {result['run']} {_status_text(result)}"
    error = result["error"]
    if error is not None:
        place = f" in {error['step']}" if error["step"] else ""
        yield f"  {error['code']}{place}: {error['message']}"
    for reason in result["reasons"]:
        yield f"  {reason_text(reason)}"
    if "revision" not in result:
        for move in next_moves(result["run"], status, result["reasons"]):
            yield f"  {move}"
    if result["output"] is not None:
        yield value_text(result["output"])


def _status_text(result: dict[str, Any]) -> str:
    status: str = result["status"]
    if result["ended_at"] is None:
        return f"is {status}"
    seconds = seconds_between(_moment(result["started_at"]), _moment(result["ended_at"]))
    verb = status if status in ("succeeded", "failed") else f"was {status}"
    return verb if seconds is None else f"{verb} after {duration(seconds)}"


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
