"""The registration of a worker: what its process tells of itself while it lives, for people to look at.

Signs of life come from a thread of its own, like heartbeats of leases; when the loop last looked for work is told
beside them. A loop that hangs is seen by that: it beats, and looks for nothing. No run depends on any of it (LEASE.10).
"""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from workflows.conf import KNOWN_ENGINE_VERSIONS, conf
from workflows.errors import Refusal
from workflows.ledger import workers
from workflows.ledger.transactions import database_thread
from workflows.operations.driving import worker_name
from workflows.statuses import WorkerKind

logger = logging.getLogger(__name__)


@functools.cache
def code_version() -> str:
    """The version of this code that is installed; "" when it runs from a directory."""
    try:
        return importlib.metadata.version("waypost")
    except importlib.metadata.PackageNotFoundError:
        return ""


class Registration(AbstractContextManager["Registration"]):
    """While entered, this process is among the workers.

    ``last_look`` says when (monotonic seconds) the loop last looked for work; without it ``looked`` is called by the
    loop. ``after_s``: a process that ends sooner leaves no row, which is for those that drive one run only.
    """

    def __init__(
        self,
        *,
        kind: WorkerKind,
        drivers: int,
        is_stopping: Callable[[], bool],
        last_look: Callable[[], float] | None = None,
        after_s: float = 0.0,
        interval_s: float | None = None,
    ) -> None:
        self.name = worker_name()
        self._kind = kind
        self._drivers = drivers
        self._is_stopping = is_stopping
        self._looked = time.monotonic()
        self._last_look = last_look or (lambda: self._looked)
        self._after_s = after_s
        self._interval_s = conf().heartbeat_ms / 1000 if interval_s is None else interval_s
        self._is_registered = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="waypost-registration", daemon=True)

    def __enter__(self) -> Registration:
        if not self._after_s:
            self._tell()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def looked(self) -> None:
        """The loop looks for work now."""
        self._looked = time.monotonic()

    def close(self) -> None:
        """Say that the process has stopped. Quiet when the database cannot be reached: silence tells the same."""
        self._over.set()
        self._thread.join()
        if not self._is_registered:
            return
        try:
            workers.stop(name=self.name)
        except Refusal as refusal:
            logger.warning("Worker %s could not say that it stopped: %s", self.name, refusal)

    def _run(self) -> None:
        pause = self._after_s or self._interval_s
        while not self._over.wait(timeout=pause):
            pause = self._interval_s
            with database_thread():  # no connection is kept between two beats
                self._tell()

    def _tell(self) -> None:
        ago_ms = max(0, int((time.monotonic() - self._last_look()) * 1000))
        try:
            if not workers.beat(name=self.name, polled_ago_ms=ago_ms, is_stopping=self._is_stopping()):
                self._register()
            self._is_registered = True
        except Refusal as refusal:
            logger.warning("Worker %s could not give a sign of life: %s", self.name, refusal)

    def _register(self) -> None:
        workers.register(
            name=self.name,
            kind=self._kind,
            pool=conf().pool,
            drivers=self._drivers,
            engine_versions=KNOWN_ENGINE_VERSIONS,
            code_version=code_version(),
        )


def told_when_it_takes_long(is_stopping: Callable[[], bool]) -> Registration:
    """The registration of a process that drives one run and its child runs. Most end before anybody could look."""
    interval_s = conf().heartbeat_ms / 1000
    return Registration(
        kind=WorkerKind.RUN_WORKFLOW,
        drivers=1,
        is_stopping=is_stopping,
        last_look=time.monotonic,
        after_s=interval_s,
    )
