"""What a process tells of itself while it drives runs, and what is left when it ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.commands.test_processes import wait_until
from tests.processes import TIMEOUT_S, Processes, lines_of
from workflows.ledger import workers
from workflows.models import Worker
from workflows.operations.driving import worker_name
from workflows.operations.workers import Registration
from workflows.statuses import WorkerKind

pytestmark = pytest.mark.django_db(transaction=True)


def registration(**options: object) -> Registration:
    return Registration(kind=WorkerKind.RUN_WORKER, drivers=2, is_stopping=lambda: False, **options)  # type: ignore[arg-type]


def test_a_process_is_among_the_workers_while_it_drives() -> None:
    with registration():
        row = Worker.objects.get()
        assert (row.name, row.kind, row.drivers, row.stopped_ms) == (worker_name(), "run_worker", 2, None)
    assert Worker.objects.get().stopped_ms is not None


def test_a_process_that_ends_soon_leaves_no_row() -> None:
    with registration(after_s=60.0):
        pass
    assert not Worker.objects.exists()


def test_it_beats_from_a_thread_of_its_own_while_its_loop_hangs() -> None:
    """LEASE.13: the loop looked last a minute ago."""
    with registration(interval_s=0.01, last_look=lambda: -60.0) as told:
        first = Worker.objects.get()
        wait_until(lambda: Worker.objects.get().beat_ms > first.beat_ms)
        row = Worker.objects.get()
        assert row.beat_ms - row.polled_ms >= 60_000
        assert told.name == row.name


def test_who_was_removed_while_it_was_silent_registers_again() -> None:
    with registration(interval_s=0.01):
        started = Worker.objects.get().started_ms
        workers.forget(now_ms=started + 10**9)
        wait_until(lambda: Worker.objects.exists())


def test_a_worker_that_is_told_to_stop_says_so(processes: Processes, tmp_path: Path) -> None:
    """LEASE.9"""
    worker = processes.start("run_worker", "--threads", "3")
    lines_of(worker, 1)
    wait_until(lambda: Worker.objects.exists())
    row = Worker.objects.get()
    assert (row.kind, row.drivers, row.is_stopping) == ("run_worker", 3, False)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(TIMEOUT_S) == 0
    row.refresh_from_db()
    assert row.is_stopping
    assert row.stopped_ms is not None
