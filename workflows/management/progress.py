"""What runs do, as lines: made from their events, drawn by the plain and by the live view."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from workflows.facts import EventRow, RunState
from workflows.management.places import Places
from workflows.management.run_progress import MapLine, RunProgress, StepLine
from workflows.management.wording import duration
from workflows.statuses import FINAL_STATUSES, RunStatus

#: A view tells every step of so many child runs; of further ones only what fails.
MOST_CHILDREN = 20
#: Time between two lines about the same map, in seconds.
MAP_LINES_S = 5.0
#: Events of a run without a visit that are told of child runs and by workers, with the words for them.
RUN_WORDS = {
    "run_paused": "waits for people",
    "run_blocked": "waits for an operator",
    "run_held": "is held",
    "run_cancelling": "is being cancelled",
    **{f"run_{status}": str(status) for status in FINAL_STATUSES},
}


def plain_line(line: StepLine) -> str:
    """A visit in one line of text."""
    visit = f"v{line.visit}" if line.visit is not None else ""
    parts = [f"  {line.label}{visit:<4} {line.path:<24} {line.word}"]
    if line.detail:
        parts.append(f"({line.detail})")
    if line.is_over and (seconds := line.seconds()) is not None:
        parts.append(duration(seconds))
    if line.attempt > 1:
        parts.append(f"attempt {line.attempt}")
    return " ".join(parts)


class PlainView:
    """Lines for pipes and logs: one for each visit that ends or begins to wait, and for each line of progress.

    A large map is told by its counts, every few seconds and when it joins. Drivers of several runs may share a view.
    """

    def __init__(self, write: Callable[[str], None], places: Places | None = None) -> None:
        self._write = write
        self._places = places or Places()
        self._runs: dict[int, RunProgress] = {}
        self._told_at: dict[tuple[int, int], float] = {}
        self._lock = threading.Lock()

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        with self._lock:
            run = self.run(run_id)
            for line in run.take(events):
                if line.mark != "running" and self.tells(run, line):
                    self._write(plain_line(line))
            for large in run.maps.values():
                if large.is_large and self._is_time_for(run_id, large):
                    self._write(_told(run, large.visit, large.path, large.text()))
            for words in self.run_words(run, events, state):
                self._write(f"  {run.label}{words}")
            self.leave(run_id, state)

    def progress(self, run_id: int, visit: int, text: str) -> None:
        with self._lock:
            run = self._runs.get(run_id)
            line = run.says(visit, text) if run is not None else None
            if run is not None and line is not None and self.tells(run, line):
                self._write(_told(run, visit, line.path, line.said))

    def notice(self, text: str) -> None:
        """A word to the person at the terminal. Called by a signal handler: it must not use a buffered stream, since
        the main thread may be inside of one."""
        try:
            os.write(2, f"{text}\n".encode())
        except OSError:
            return

    def waits(self, text: str) -> None:
        """Why nothing happens at the moment."""
        self._write(f"  {text}")

    def asks(self, lines: list[str]) -> None:
        """Questions that people may answer while the run goes on elsewhere."""
        for line in lines:
            self._write(line)

    def close(self) -> None:
        """Nothing is left on the screen."""

    def run(self, run_id: int) -> RunProgress:
        if run_id not in self._runs:
            self._runs[run_id] = self._places.progress_of(run_id)
        return self._runs[run_id]

    def leave(self, run_id: int, state: RunState) -> None:
        """Somebody else may go on with a run that is not running; one that has ended needs nothing more."""
        self._runs[run_id].is_stale = state.status != RunStatus.RUNNING
        if state.status in FINAL_STATUSES:
            del self._runs[run_id]

    def tells(self, run: RunProgress, line: StepLine) -> bool:
        """Whether a line of a step is for people, or one of too many."""
        return not run.label or run.order <= MOST_CHILDREN or line.mark == "failed"

    def run_words(self, run: RunProgress, events: tuple[EventRow, ...], state: RunState) -> list[str]:
        """What to say of a run that is not the one that was asked for."""
        if not run.label or (run.order > MOST_CHILDREN and state.status != "failed"):
            return []
        told = [RUN_WORDS[event.type] for event in events if event.visit is None and event.type in RUN_WORDS]
        return [f"{words}{_took(state)}" for words in told]

    def _is_time_for(self, run_id: int, large: MapLine) -> bool:
        key, now = (run_id, large.visit), time.monotonic()
        last = self._told_at.setdefault(key, now)
        if now - last < MAP_LINES_S:
            return False
        self._told_at[key] = now
        return True


def _told(run: RunProgress, visit: int, path: str, text: str) -> str:
    return f"  {run.label}{f'v{visit}':<4} {path:<24} {text}"


def _took(state: RunState) -> str:
    if state.ended_at is None or state.started_at is None:
        return ""
    return f" after {duration((state.ended_at - state.started_at).total_seconds())}"


class WorkerView(PlainView):
    """What a worker says: the runs that end or park, and what fails in them."""

    def tells(self, run: RunProgress, line: StepLine) -> bool:
        return line.mark == "failed"

    def run_words(self, run: RunProgress, events: tuple[EventRow, ...], state: RunState) -> list[str]:
        told = [RUN_WORDS[event.type] for event in events if event.visit is None and event.type in RUN_WORDS]
        return [f"{words}{_took(state)}" for words in told]


class SilentView(PlainView):
    """Shows nothing but notices."""

    def __init__(self) -> None:
        super().__init__(lambda line: None)

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        """Nobody looks."""

    def progress(self, run_id: int, visit: int, text: str) -> None:
        """Nobody looks."""
