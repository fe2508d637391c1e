"""Whoever watches a driver: told after each commit, and never able to disturb it."""

from __future__ import annotations

import logging
from typing import Protocol

from workflows.engine.tally import count_events
from workflows.facts import EventRow, RunState

logger = logging.getLogger(__name__)


class Observer(Protocol):
    """Hears what a driver does, after it is committed. Must be quick."""

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None: ...

    def progress(self, run_id: int, visit: int, text: str) -> None: ...


class SilentObserver:
    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        """Nobody listens."""

    def progress(self, run_id: int, visit: int, text: str) -> None:
        """Nobody listens."""


class GuardedObserver:
    """Passes everything on to an observer; one that raises is logged once, and the run goes on as if nobody watched.

    What is told has been committed: a screen that cannot be drawn says nothing about the run.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._has_failed = False

    def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
        count_events(event.type for event in events)
        try:
            self._observer.committed(run_id, events, state)
        except Exception:
            self._failed(run_id)

    def progress(self, run_id: int, visit: int, text: str) -> None:
        try:
            self._observer.progress(run_id, visit, text)
        except Exception:
            self._failed(run_id)

    def _failed(self, run_id: int) -> None:
        if not self._has_failed:
            logger.warning("What happens in run %s cannot be shown; it goes on.", run_id, exc_info=True)
        self._has_failed = True
