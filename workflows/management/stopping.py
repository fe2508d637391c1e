"""Ctrl-C and SIGTERM of a command that drives a run: the first hands it back, the second ends what runs, now."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

from workflows.conf import conf

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def goodbye_rules() -> str:
    """What becomes of running steps, and what further signals do."""
    grace = f"{conf().shutdown_grace_ms / 1000:g} s"
    return (
        f"What runs may finish within {grace}; a write that is ended then has to be reconciled. "
        "Once more ends what runs now, a third time ends this command."
    )


class Stopping(AbstractContextManager["Stopping"]):
    """While entered, signals are counted instead of ending the process.

    ``on_first`` is told of the first one, or that the time is over; the second signal calls ``end_effects`` from a
    thread of its own, since a signal handler must not wait for a lock; the third ends the process at once.
    ``deadline_s`` stops too, after so many seconds.
    """

    def __init__(self, *, on_first: Callable[[], None], deadline_s: float | None = None) -> None:
        self.end_effects: Callable[[], None] = lambda: None
        self.signals = 0
        self._on_first = on_first
        self._has_told = False
        self._deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self._former: dict[int, Any] = {}
        self._wakeup, self._alarm = -1, -1

    def __enter__(self) -> Stopping:
        self._wakeup, self._alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        if threading.current_thread() is threading.main_thread():
            self._former = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
        os.close(self._wakeup)
        os.close(self._alarm)

    def is_stopping(self) -> bool:
        if self.is_out_of_time and not self.signals and not self._has_told:
            self._has_told = True
            self._on_first()
        return self.signals > 0 or self.is_out_of_time

    @property
    def is_out_of_time(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def pause(self, seconds: float) -> None:
        """Sleep so long, or until a signal comes or the time is over."""
        if self._deadline is not None:
            seconds = min(seconds, max(0.0, self._deadline - time.monotonic()))
        if not self.signals:
            select.select([self._wakeup], [], [], seconds)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals == 1:
            os.write(self._alarm, b"!")
            self._on_first()
        elif self.signals == 2:
            threading.Thread(target=lambda: self.end_effects(), name="waypost-stop", daemon=True).start()
        else:
            os._exit(128 + number)
