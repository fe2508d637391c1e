"""Small worker programs for tests that kill or freeze a worker, and a look at what it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

#: Runs ``sys.argv[2]`` in ``sys.argv[4]`` threads under one supervisor; every process carries the mark ``sys.argv[1]``.
PROGRAM = """
import sys, threading, time
from pathlib import Path
import django
from django.conf import settings
settings.configure()
from workflows.engine.processes import Command, mark_of, run_process
from workflows.engine.supervisor import Supervisor

token, script, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
supervisor = Supervisor()
if seconds:
    supervisor.extend(seconds)
environment = {"PATH": "/usr/bin:/bin", "WAYPOST_IDEMPOTENCY_KEY": token, "WAYPOST_ATTEMPT": "1"}

def work():
    while True:
        run_process(
            Command(
                argv=["/bin/sh", "-c", script],
                environment=environment,
                folder=Path("/"),
                mark=mark_of(environment, ["WAYPOST_IDEMPOTENCY_KEY", "WAYPOST_ATTEMPT"]),
            ),
            groups=supervisor,
            stop=threading.Event(),
            stop_reason=lambda: None,
            deadline=None,
        )

for _ in range(threads):
    threading.Thread(target=work, daemon=True).start()
while True:
    time.sleep(60)
"""


class Worker:
    """A worker process whose effects can be found by their mark."""

    def __init__(self, script: str, *, deadline_seconds: float = 0, threads: int = 1) -> None:
        self.token = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self.token, script, str(deadline_seconds), str(threads)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def effects(self) -> list[int]:
        """Ids of the living processes that carry the mark."""
        mark = f"WAYPOST_IDEMPOTENCY_KEY={self.token}".encode()
        return [pid for pid in processes() if mark in environment_of(pid)]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment_of(pid: int) -> list[bytes]:
    """The environment a process began with; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    found = []
    for other in processes():
        try:
            fields = Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(other)
    return found


def wait_until(holds: Callable[[], object], seconds: float = 10.0) -> None:
    """Looks every 10 ms; fails when it takes longer."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "this did not become true in time"
        time.sleep(0.01)
