"""Several processes of an installation, kept by one command: started, replaced when killed, and ended together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_S = 0.2
#: A process that is killed sooner than this after its start is replaced after as long a pause.
_SOON_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One process: ``name`` for people, ``words`` to start it, ``process`` its ``WAYPOST_PROCESS``."""

    name: str
    words: Sequence[str]
    process: str


@dataclass(slots=True, kw_only=True)
class _Started:
    role: Role
    process: subprocess.Popen[bytes]
    at: float


class ProcessList(AbstractContextManager["ProcessList"]):
    """While entered, the processes run. Signals of this process are passed on to all of them.

    The first signal asks them to end (what runs may finish), the second asks once more, which ends effects at once, the
    third kills. Each process has a session of its own, so that Ctrl-C in a terminal reaches it once, through here.
    """

    def __init__(self, roles: Sequence[Role], tell: Callable[[str], None]) -> None:
        self._roles = roles
        self._tell = tell
        self._started: list[_Started] = []
        self._signals = 0
        self._former: dict[int, Any] = {}

    def __enter__(self) -> ProcessList:
        self._former = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        for role in self._roles:
            self._started.append(_start(role))
            self._tell(f"{role.name} is process {self._started[-1].process.pid}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._signals:
            self._send(signal.SIGTERM)
        for one in self._started:
            one.process.wait()
        for number, former in self._former.items():
            signal.signal(number, former)

    def keep(self) -> bool:
        """Wait until a signal comes. A process that was killed is replaced. False: one ended by itself, which it would
        do again; then all have to end, and whoever started this command starts it anew."""
        while not self._signals:
            time.sleep(_LOOK_S)
            for place, one in enumerate(self._started):
                code = one.process.poll()
                if code is None or self._signals:
                    continue
                if code >= 0:
                    self._tell(f"{one.role.name} has ended with exit code {code}; everything ends.")
                    return False
                self._tell(f"{one.role.name} was ended by signal {-code}; another one takes its place.")
                if time.monotonic() - one.at < _SOON_S:
                    time.sleep(_SOON_S)
                if not self._signals:
                    self._started[place] = _start(one.role)
        self._tell("Ending: what runs may finish. Once more ends it now, a third time kills.")
        return True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self._send(signal.SIGTERM if self._signals < 3 else signal.SIGKILL)

    def _send(self, number: int) -> None:
        for one in self._started:
            if one.process.poll() is None:
                one.process.send_signal(number)


def _start(role: Role) -> _Started:
    environment = {**os.environ, "WAYPOST_PROCESS": role.process}
    process = subprocess.Popen(list(role.words), stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    return _Started(role=role, process=process, at=time.monotonic())
