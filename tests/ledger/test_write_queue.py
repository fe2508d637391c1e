"""The queue of writers: in order of arrival, fair between processes, and never in the way of safety (docs/architecture.md)."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import run_in_threads
from workflows.errors import Refusal
from workflows.ledger import write_queue
from workflows.ledger.write_queue import FairLock, WriteQueue


def wait_until(is_true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(5000):
        if is_true():
            return
        pause.wait(0.002)
    raise AssertionError("it never became true")


def test_threads_get_the_lock_in_the_order_they_came() -> None:
    lock = FairLock()
    order: list[int] = []
    threads = []

    def take(number: int) -> None:
        assert lock.acquire(10)
        order.append(number)
        lock.release()

    assert lock.acquire(10)
    for number in range(5):
        threads.append(threading.Thread(target=take, args=(number,)))
        threads[-1].start()
        wait_until(lambda count=number + 1: lock.waiting == count)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3, 4]


def test_a_waiter_that_gives_up_leaves_the_line() -> None:
    lock = FairLock()
    assert lock.acquire(1)
    assert lock.acquire(0.01) is False
    assert lock.waiting == 0
    lock.release()
    assert lock.acquire(0) is True


def test_threads_that_wait_too_long_are_told_that_the_store_is_contended(tmp_path: Path) -> None:
    queue = WriteQueue(tmp_path / "database")
    queue.enter(1)
    with pytest.raises(Refusal) as caught:
        queue.enter(0.01)
    queue.leave()
    queue.close()
    assert caught.value.message == "The database is busy: other threads of this process are writing."


def test_the_side_file_names_the_writer_and_is_private(tmp_path: Path) -> None:
    queue = WriteQueue(tmp_path / "database")
    assert queue.last_writer() is None
    queue.enter(1)
    queue.leave()
    queue.close()
    writer = tmp_path / "database-writer"
    pid, started_at = writer.read_text().split()
    assert pid == str(os.getpid())
    assert queue.last_writer() == f"process {pid}, started {started_at}"
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {
        "database-door": 0o600,
        "database-writer": 0o600,
    }


def test_a_link_in_place_of_a_side_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "database-writer").symlink_to(tmp_path / "elsewhere")
    queue = WriteQueue(tmp_path / "database")
    with pytest.raises(Refusal) as caught:
        queue.enter(1)
    queue.close()
    assert caught.value.code == "store.unavailable"
    assert caught.value.message == (
        f"The database cannot be used: {tmp_path}/database-writer cannot be opened (Too many levels of symbolic links)."
    )


@pytest.mark.parametrize("kept", ["database-door", "database-writer"])
def test_a_process_that_was_stopped_in_the_queue_does_not_hold_up_the_others(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "PATIENCE_S", 0.02)
    with (tmp_path / kept).open("w") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        queue = WriteQueue(tmp_path / "database")
        queue.enter(1)
        queue.leave()
        queue.close()


def test_queues_that_share_a_file_let_one_writer_in_at_a_time(tmp_path: Path) -> None:
    """Two queues of one file behave like two processes: their file locks exclude each other."""
    inside: list[int] = []
    most = []

    def write(number: int) -> int:
        queue = WriteQueue(tmp_path / "database")
        for _ in range(50):
            queue.enter(10)
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)
            queue.leave()
        queue.close()
        return number

    assert run_in_threads(*(lambda number=number: write(number) for number in range(4))) == [0, 1, 2, 3]
    assert len(most) == 200
    assert max(most) == 1


def test_a_database_in_memory_has_no_side_files(tmp_path: Path) -> None:
    queue = WriteQueue(None)
    queue.enter(1)
    queue.leave()
    assert queue.last_writer() is None
