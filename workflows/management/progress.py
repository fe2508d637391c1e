"""What a run does, as lines: made from its events, drawn by the plain and by the live view."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.facts import EventRow, RunState
from workflows.management.wording import duration, one_line, seconds_between, until

#: Events that end a visit, and the mark its line gets.
ENDS = {
    "step_succeeded": "ok",
    "step_failed": "failed",
    "step_skipped": "skipped",
    "step_cancelled": "cancelled",
    "step_refused": "refused",
}
#: Events that leave a visit open, with the words for it; names in braces come from the event.
_PAUSES = {
    "step_retrying": "next attempt in {wait} after {code}",
    "step_waiting": "waits until {until}",
    "step_interrupted": "interrupted",
    "step_parked": "parked: {missing}",
    "step_resumed": "goes on",
    "step_unreconciled": "was interrupted; nobody said what happened",
}


@dataclass(slots=True, kw_only=True)
class StepLine:
    """A visit as the views show it. ``mark`` is running, waiting, or how it ended; ``said`` its latest progress."""

    visit: int
    step: str
    mark: str = "running"
    attempt: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    detail: str = ""
    said: str = ""

    @property
    def is_over(self) -> bool:
        return self.mark in ENDS.values()

    def seconds(self, now: datetime | None = None) -> float | None:
        """How long it took, or has been going on at ``now``."""
        return seconds_between(self.started_at, self.ended_at or now)


class Progress:
    """The visits of a run, kept up with its events."""

    def __init__(self) -> None:
        self.lines: dict[int, StepLine] = {}

    def take(self, events: Iterable[EventRow]) -> list[StepLine]:
        """The lines that these events have changed, in order; a line that changed twice is there twice."""
        return [line for event in events if (line := self._take(event)) is not None]

    def _take(self, event: EventRow) -> StepLine | None:
        if event.visit is None or not event.type.startswith("step_"):
            return None
        data: dict[str, Any] = json.loads(event.payload)
        line = self.lines.get(event.visit) or StepLine(visit=event.visit, step=data.get("step", ""))
        self.lines[event.visit] = line
        if event.type == "step_started":
            _begin(line, event)
        elif event.type in ENDS:
            _end(line, event, data)
        else:
            line.mark = "waiting"
            line.detail = _pause_text(event.type, data)
        return StepLine(**{name: getattr(line, name) for name in StepLine.__slots__})

    def says(self, visit: int, text: str) -> StepLine | None:
        line = self.lines.get(visit)
        if line is not None:
            line.said = one_line(text, 200)
        return line


def _begin(line: StepLine, event: EventRow) -> None:
    line.mark, line.detail = "running", ""
    line.attempt = event.attempt or 0
    line.started_at = line.started_at or event.at


def _end(line: StepLine, event: EventRow, data: dict[str, Any]) -> None:
    mark = ENDS[event.type]
    outcome, code = data.get("outcome", mark), data.get("code", "")
    line.mark = mark
    line.attempt = event.attempt or line.attempt
    line.ended_at = event.at
    line.detail = ", ".join(dict.fromkeys(word for word in (outcome, code) if word and word != mark))


def _pause_text(type: str, data: dict[str, Any]) -> str:
    words = {
        "wait": duration(data.get("wait_ms", 0) / 1000),
        "code": data.get("code", "a failure"),
        "until": until(data["until_ms"]) if "until_ms" in data else "?",
        "missing": data.get("missing") or data.get("code", ""),
    }
    return _PAUSES.get(type, type).format(**words)


def plain_line(line: StepLine) -> str:
    """A visit in one line of text."""
    parts = [f"  v{line.visit:<3} {line.step:<24} {line.mark}"]
    if line.detail:
        parts.append(f"({line.detail})")
    if line.is_over and (seconds := line.seconds()) is not None:
        parts.append(duration(seconds))
    if line.attempt > 1:
        parts.append(f"attempt {line.attempt}")
    return " ".join(parts)


class PlainView:
    """Lines for pipes and logs: one for each visit that ends or begins to wait, and for each line of progress."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._progress = Progress()

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        for line in self._progress.take(events):
            if line.mark != "running":
                self._write(plain_line(line))

    def progress(self, run_id: int, visit: int, text: str) -> None:
        line = self._progress.says(visit, text)
        if line is not None:
            self._write(f"  v{visit:<3} {line.step:<24} {line.said}")

    def notice(self, text: str) -> None:
        """A word to the person at the terminal. Called by a signal handler: it must not use a buffered stream, since
        the main thread may be inside of one."""
        os.write(2, f"{text}\n".encode())

    def close(self) -> None:
        """Nothing is left on the screen."""


class SilentView(PlainView):
    """Shows nothing but notices."""

    def __init__(self) -> None:
        super().__init__(lambda line: None)
