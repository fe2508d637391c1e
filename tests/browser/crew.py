"""A real worker process, shared by the journeys that need one, and gone for those that drive runs by hand."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from threading import Event

from tests.processes import Processes
from workflows.models import Lease

PATIENCE_S = 60
#: Told soon that somebody cancelled.
ENVIRONMENT = {"WAYPOST_CONTROL_POLL_MS": "200"}


def eventually(is_true: Callable[[], bool], what: str) -> None:
    """Look again and again until it is true; ``what`` is said when it never becomes so."""
    end, pause = time.monotonic() + PATIENCE_S, Event()
    while not is_true():
        assert time.monotonic() < end, what
        pause.wait(0.05)


class Crew:
    """At most one worker at a time."""

    def __init__(self) -> None:
        self._processes = Processes()
        self._worker: subprocess.Popen[str] | None = None

    def work(self) -> None:
        """A worker drives runs from now on."""
        if self._worker is None or self._worker.poll() is not None:
            self._worker = self._processes.start("run_worker", "--quiet", env=ENVIRONMENT)

    def kill(self) -> None:
        """SIGKILL, as when the machine fails."""
        if self._worker is not None:
            self._processes.kill(self._worker)
            self._worker = None

    def rest(self) -> None:
        """Wait until no run is driven; a worker that does not come to rest is killed."""
        try:
            eventually(lambda: not Lease.objects.exclude(owner="").exists(), "a run is driven on and on")
        except AssertionError:
            self.kill()
            raise

    def close(self) -> None:
        self._processes.close()
