"""The task, and what Celery tells of its processes."""

from __future__ import annotations

import sys
import time
from typing import Any

from celery import bootsteps, signals
from django.db import connections

from workflows.errors import Refusal
from workflows.stores.bootstrap import ensure_schema
from workflows.tasks.app import DRIVE_RUN, app
from workflows.tasks.process import LOOKED, SHARED, STOPPING, end_process, own_process

#: Time between two signs of the main loop, in seconds.
LOOK_S = 1.0


@app.task(name=DRIVE_RUN)  # type: ignore[untyped-decorator]
def drive_run(run_id: int) -> int | None:
    """Answer a doorbell: drive one run for a while. ``run_id`` is a hint (``Process.answer``)."""
    return own_process().answer(run_id)


class SignOfLife(bootsteps.StartStopStep):  # type: ignore[misc]
    """Notes that the main loop comes round and has its broker: a timer of the consumer, gone when it has not."""

    requires = {"celery.worker.consumer.tasks:Tasks"}

    def __init__(self, parent: Any, **options: Any) -> None:
        self.timer: Any = None

    def start(self, parent: Any) -> None:
        _look()
        self.timer = parent.timer.call_repeatedly(LOOK_S, _look)

    def stop(self, parent: Any) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


app.steps["consumer"].add(SignOfLife)


def _look() -> None:
    SHARED[LOOKED] = time.monotonic()


@signals.worker_init.connect  # type: ignore[untyped-decorator]
def prepare(**signal: Any) -> None:
    """Before the fork: the tables are there, and no connection is shared."""
    SHARED[STOPPING], SHARED[LOOKED] = 0.0, time.monotonic()
    try:
        ensure_schema()
    except Refusal as refusal:
        sys.exit(f"error: {refusal.message}\nhint: {refusal.hint}")
    finally:
        connections.close_all()


@signals.worker_process_init.connect  # type: ignore[untyped-decorator]
def begin(**signal: Any) -> None:
    own_process()


@signals.worker_ready.connect  # type: ignore[untyped-decorator]
def begin_without_fork(sender: Any = None, **signal: Any) -> None:
    """A pool of threads has no process of its own."""
    if type(sender.pool).__module__ == "celery.concurrency.thread":
        own_process()


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def hand_back(**signal: Any) -> None:
    """The first signal: every process hands its run back within the grace."""
    SHARED[STOPPING] = time.monotonic()


@signals.worker_process_shutdown.connect  # type: ignore[untyped-decorator]
def end(**signal: Any) -> None:
    end_process()


@signals.worker_shutdown.connect  # type: ignore[untyped-decorator]
def end_without_fork(**signal: Any) -> None:
    end_process()
