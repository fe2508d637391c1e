"""The worker's side of the supervisor: one small process per worker that outlives it and kills what it left behind.

The worker tells it of every process group before the group can do anything (``engine.processes``), and moves a deadline
with each renewal of its leases. The supervisor kills all of them when the worker dies (its pipe closes) or when it is
frozen (the deadline passes).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from workflows.engine import supervisor_process

PROGRAM = Path(supervisor_process.__file__)


class Supervisor:
    """A :class:`workflows.engine.contract.GroupKeeper`. Starts its process with the first group; safe for threads.

    A supervisor process that died is started again and told of everything that runs. After a fork the child process
    gets a supervisor process of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        self._lapsed: set[int] = set()
        self._deadline: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    @property
    def pid(self) -> int | None:
        """Process id of the supervisor process, None before the first group."""
        return self._process.pid if self._process else None

    def watch(self, group: int, mark: str = "") -> None:
        """Kill this group, and all processes with this mark, when the worker is gone. Told before this returns."""
        with self._lock:
            self._own_this_process()
            self._groups[group] = mark
            self._tell(f"watch {group} {mark}")

    def forget(self, group: int) -> bool:
        """The group has ended. Call it before the leader is waited for: from then on its number may be reused.

        True when a deadline passed, or everything was killed, while it was watched: its end may be ours.
        """
        with self._lock:
            self._own_this_process()
            self._note_lapse()
            lapsed = group in self._lapsed
            self._lapsed.discard(group)
            if self._groups.pop(group, None) is not None and self._process is not None:
                self._tell(f"forget {group}")
            return lapsed

    def extend(self, seconds: float) -> None:
        """The worker holds its leases for ``seconds`` from now on; without another call everything is killed then."""
        with self._lock:
            self._own_this_process()
            self._note_lapse()
            self._deadline = time.monotonic() + seconds
            if self._process is not None:
                self._tell(f"deadline {self._deadline!r}")

    def kill_all(self) -> int:
        """Kills everything that is watched, from this process: the worker can no longer vouch for it."""
        with self._lock:
            groups = dict(self._groups)
            self._lapsed.update(groups)
            # Under the lock: a group is forgotten before its number can be reused, so no stranger is killed here.
            for group in groups:
                supervisor_process.kill_group(group)
        supervisor_process.kill_marked(groups.values())
        return len(groups)

    def close(self) -> None:
        """Ends the supervisor process; it kills what is still watched."""
        with self._lock:
            process, self._process = self._process, None
            self._groups.clear()
        if process is not None and self._owner == os.getpid():
            self._discard(process)

    def _own_this_process(self) -> None:
        if self._owner == os.getpid():
            return
        if self._process is not None and self._process.stdin is not None:
            # A copy inherited by a fork: closing it here leaves the pipe of the parent open.
            self._process.returncode = 0
            self._process.stdin.close()
        self._owner, self._process, self._groups, self._deadline = os.getpid(), None, {}, None
        self._lapsed = set()

    def _note_lapse(self) -> None:
        """A worker that was frozen beyond its deadline learns here that its groups were killed meanwhile."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._lapsed.update(self._groups)

    def _tell(self, line: str) -> None:
        if self._process is not None and self._send(line):
            return
        if self._process is not None:
            self._discard(self._process)
        self._process = self._start()
        lines = [f"watch {group} {mark}" for group, mark in self._groups.items()]
        if self._deadline is not None:
            lines.insert(0, f"deadline {self._deadline!r}")
        for known in lines:
            if not self._send(known):
                raise RuntimeError("The supervisor process ended as soon as it was started.")

    def _send(self, line: str) -> bool:
        assert self._process is not None
        assert self._process.stdin is not None
        data = memoryview(f"{line}\n".encode("utf-8", "surrogateescape"))
        try:
            while data:
                data = data[os.write(self._process.stdin.fileno(), data) :]
        except BrokenPipeError:
            return False
        return True

    @staticmethod
    def _discard(process: subprocess.Popen[bytes]) -> None:
        if process.stdin is not None:
            process.stdin.close()
        process.wait()

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={},
            start_new_session=True,
        )
