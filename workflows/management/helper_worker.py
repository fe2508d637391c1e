"""A worker in a process of its own that another command keeps beside itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_S = 0.5


class HelperWorker(AbstractContextManager["HelperWorker"]):
    """While entered, ``run_worker`` is at work, and the signals of this process are passed on to it.

    It has a process of its own because pages and workers wait for locks in different ways, and a session of its own so
    that Ctrl-C in a terminal reaches it once, through here. ``tell`` prints a line.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._signals = 0
        self._former: dict[int, Any] = {}

    def __enter__(self) -> HelperWorker:
        self._process = _started()
        self._former = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._signals:
            self._process.terminate()
        self._process.wait()
        for number, former in self._former.items():
            signal.signal(number, former)

    def keep_working(self) -> bool:
        """Wait until a signal comes; a worker that was killed before is replaced, and the next one takes over what it
        left. False: the worker ended by itself, which it would do again."""
        while not self._signals:
            code = self._code()
            if code is None or self._signals:
                continue
            if code >= 0:
                self._tell(f"The worker has ended with exit code {code}.")
                return False
            self._tell(f"The worker was ended by signal {-code}; another one takes over.")
            self._process = _started()
        return True

    def _code(self) -> int | None:
        """How the worker ended; None when it is at work after a moment."""
        try:
            return self._process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            return None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self._process.send_signal(signal.SIGTERM)


def _started() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WAYPOST_PROCESS": "command"}
    words = [sys.executable, sys.argv[0], "run_worker"]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
