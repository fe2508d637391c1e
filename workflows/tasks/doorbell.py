"""The doorbell: after a commit that concerns a run, a message tells the Celery workers to look for work.

A commit never waits for the broker: it leaves the run's number here, and a thread sends the message. When that fails it
is logged and forgotten, since the workers' sweep finds every run that could go on.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable

from workflows.ledger.listeners import listeners

logger = logging.getLogger(__name__)

#: Numbers of runs that may wait for the broker; more are left to the sweep.
MOST_PENDING = 1_000
#: Time without a try after the broker failed, and the most that the end of a process waits for it, in seconds.
AFTER_FAILURE_S, LAST_WAIT_S = 1.0, 2.0
#: Sends one message about a run.
Send = Callable[[int], object]


class Doorbell:
    """Rings for runs from a thread of its own, which is started when it is first needed, in each process anew."""

    def __init__(self, connect: Callable[[], Send]) -> None:
        self._connect = connect
        self._forget()

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._changed = threading.Condition()
        self._pending: dict[int, None] = {}
        self._thread: threading.Thread | None = None
        self._is_sending = False
        self._failed_at: float | None = None

    def ring(self, run_id: int, revision: int = 0) -> bool:
        """Ask for a message about this run; returns at once. False when too many wait already."""
        if self._owner != os.getpid():
            self._forget()  # a fork has the numbers of its parent, and no thread
        with self._changed:
            if len(self._pending) >= MOST_PENDING:
                return False
            self._pending[run_id] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="waypost-doorbell", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def flush(self, seconds: float = LAST_WAIT_S) -> bool:
        """Wait until everything was sent or given up; False when it takes longer."""
        if self._owner != os.getpid():
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._is_sending, timeout=seconds)

    def _run(self) -> None:
        send: Send | None = None
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._pending))
                run_id = next(iter(self._pending))
                del self._pending[run_id]
                self._is_sending = True
            try:
                send = send or self._connect()
                send(run_id)
                self._note_success()
            except Exception as error:
                send = None
                self._give_up(error)

    def _note_success(self) -> None:
        if self._failed_at is not None:
            logger.warning("The broker takes messages again after %.0f s.", time.monotonic() - self._failed_at)
            self._failed_at = None

    def _give_up(self, error: Exception) -> None:
        with self._changed:
            dropped = len(self._pending) + 1
            self._pending.clear()
            self._is_sending = False
            self._changed.notify_all()
        if self._failed_at is None:
            self._failed_at = time.monotonic()
            logger.warning(
                "The broker took no message (%s); the sweep of the workers finds %d run(s) later.",
                type(error).__name__,
                dropped,
            )
        time.sleep(AFTER_FAILURE_S)


def connect() -> Send:
    """A connection of its own: those of Celery's pool may have been opened before a fork."""
    from workflows.tasks.app import DRIVE_RUN, app  # slow to import

    connection = app.connection_for_write()
    producer = app.amqp.Producer(connection, auto_declare=False)

    def send(run_id: int) -> None:
        app.send_task(DRIVE_RUN, args=[run_id], producer=producer, retry=False)

    return send


DOORBELL = Doorbell(connect)


def listen() -> None:
    """From now on every change of a run that others may have to act on rings. Called once in a process."""
    if DOORBELL.ring not in listeners:
        listeners.append(DOORBELL.ring)
        atexit.register(DOORBELL.flush)
