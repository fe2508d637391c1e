"""What became of a run, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from workflows.management.questions import open_question_lines
from workflows.management.wording import counted, duration, next_moves, reason_text, seconds_between, until, value_text
from workflows.queries.waiting import Driven
from workflows.statuses import RunStatus, WaitsFor


def result_lines(
    result: dict[str, Any],
    *,
    quiet: bool,
    questions: tuple[list[dict[str, Any]], int] = ([], 0),
    driven: Driven | None = None,
) -> Iterator[str]:
    """Status, error, what it waits for, what to do about it (not for a past revision), output.

    ``quiet``: a succeeded run prints its output only. ``questions``: open ones of the run and its child runs, and how
    many there are; they stand in the place of the reasons that they are. ``driven``: by whom, for a run of now.
    """
    status = result["status"]
    if not quiet or status != "succeeded":
        yield f"run {result['run']} {_status_text(result, driven)}"
    error = result["error"]
    if error is not None:
        place = f" in {error['step']}" if error["step"] else ""
        yield f"  {error['code']}{place}: {error['message']}"
    asked, count = questions
    for reason in result["reasons"]:
        if not (asked and reason["cause"] == WaitsFor.PEOPLE):
            yield f"  {reason_text(reason)}"
    yield from _questions_by_run(result["run"], asked, count)
    if "revision" not in result:
        for move in next_moves(result["run"], status, result["reasons"], is_asked=bool(asked)):
            yield f"  {move}"
    if result["output"] is not None:
        yield value_text(result["output"])


def _questions_by_run(run_id: int, questions: list[dict[str, Any]], count: int) -> Iterator[str]:
    """Those of child runs under the number of their run."""
    left = count
    for owner, group in groupby(questions, key=lambda question: question["run"]):
        if owner != run_id:
            yield f"  run {owner} asks:"
        listed = list(group)
        yield from open_question_lines(listed)
        left -= len(listed)
    if left:
        yield f"  and {counted(left, 'more open question')}"


def _status_text(result: dict[str, Any], driven: Driven | None) -> str:
    status: str = result["status"]
    if result["ended_at"] is None:
        return f"is {status}" if status != RunStatus.RUNNING or driven is None else _running_text(driven)
    seconds = seconds_between(_moment(result["started_at"]), _moment(result["ended_at"]))
    verb = status if status in ("succeeded", "failed") else f"was {status}"
    return verb if seconds is None else f"{verb} after {duration(seconds)}"


def _running_text(driven: Driven) -> str:
    if driven.worker is not None:
        return f"is running, driven by {driven.worker} until {until(driven.until_ms)}"
    return "is handed back: nobody drives it" if driven.was_handed_back else "lost its worker: nobody drives it"


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
