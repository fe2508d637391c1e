"""The supervisor process: kills what a dead or frozen worker left running.

Run as a program by ``engine.supervisor`` with ``python -I -S``; it imports nothing of the project, so that it starts in
a few milliseconds. It reads lines from standard input:

* ``watch GROUP MARK``: kill this process group, and every process that carries the mark, when the worker is gone;
* ``forget GROUP``: the group has ended;
* ``deadline SECONDS``: the worker is alive until then (monotonic clock of the system) unless it says otherwise.

When the input ends (the worker died) or the deadline passes (it is frozen), everything watched is killed. The mark
finds what left its group by ``setsid``: it is a set of entries ``NAME=value``, joined by U+001F, which the environment
of every process of the effect holds. Marks need ``/proc``; elsewhere only groups are killed.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable

SEPARATOR = "\x1f"
ROUNDS = 10
PAUSE_SECONDS = 0.003


def kill_group(group: int, number: int = signal.SIGKILL) -> bool:
    """Sends a signal to a process group; False when nobody is there (or nobody who may be signalled)."""
    if group <= 1:
        return False
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def marked_processes(marks: Iterable[str]) -> list[int]:
    """Ids of the processes whose environment holds all entries of one of the marks. Empty without ``/proc``."""
    wanted = [frozenset(os.fsencode(mark).split(b"\x1f")) for mark in marks if mark]
    if not wanted:
        return []
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would double the time this program takes to start
    except OSError:
        return []
    own = os.getpid()
    found = []
    for name in names:
        if not name.isdigit() or int(name) == own:
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                entries = frozenset(file.read().split(b"\0"))
        except OSError:
            continue
        if any(mark <= entries for mark in wanted):
            found.append(int(name))
    return found


def kill_marked(marks: Iterable[str]) -> int:
    """Kills every process that carries one of the marks, also those they start meanwhile; how many were found.

    Looks until it has found none twice: a process shows no environment for an instant while it becomes a program.
    """
    marks = tuple(mark for mark in marks if mark)
    if not marks:
        return 0
    killed = found_none = 0
    for _ in range(ROUNDS):
        found = marked_processes(marks)
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        killed += len(found)
        found_none = 0 if found else found_none + 1
        if found_none == 2:
            break
        time.sleep(PAUSE_SECONDS)
    return killed


class Watch:
    """What the worker has told so far."""

    def __init__(self) -> None:
        self.groups: dict[int, str] = {}
        self.deadline: float | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(line.decode("utf-8", "surrogateescape").split(" ", 2))

    def _obey(self, words: list[str]) -> None:
        if words[0] == "watch":
            self.groups[int(words[1])] = words[2] if len(words) > 2 else ""
        elif words[0] == "forget":
            self.groups.pop(int(words[1]), None)
        elif words[0] == "deadline":
            self.deadline = float(words[1])

    def kill(self) -> None:
        for group in self.groups:
            kill_group(group)
        kill_marked(self.groups.values())


def supervise(source: int) -> None:
    """Obeys the worker until it is gone."""
    watch = Watch()
    poll = select.poll()
    poll.register(source, select.POLLIN)
    while True:
        expired = watch.deadline is not None and time.monotonic() >= watch.deadline
        if expired and watch.groups:
            watch.kill()
            watch.groups.clear()
        if expired or watch.deadline is None or not watch.groups:
            ready = poll.poll()
        else:
            ready = poll.poll(max(1, int((watch.deadline - time.monotonic()) * 1000) + 1))
        if not ready:
            continue
        data = os.read(source, 65_536)
        if not data:
            break
        watch.feed(data)
    # A process that was between fork and exec when the worker died shows its mark only a moment later.
    for pause in (0.0, 0.05, 0.2, 0.75) if watch.groups else ():
        time.sleep(pause)
        watch.kill()


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    supervise(sys.stdin.fileno())
