"""The queue of writers of one SQLite file: first come first served, between threads and between processes.

SQLite itself lets waiting writers sleep and look again, and whoever looks at the right moment wins; under load one of
them waits for seconds. So a ledger transaction takes its turn here before ``BEGIN``:

* between threads of a process by a lock that is handed on in order of arrival;
* between processes by two file locks: the *door*, where one process waits at a time, and the *desk*, where the writer
  sits. Who leaves the desk and wants it again must queue at the door behind who waits there.

The queue gives fairness, never safety. A process that finds the door or the desk taken for too long goes on to SQLite's
own lock, so one that was stopped while it waited cannot hold up the others; one that was stopped at the desk is waited
for once. The desk's file holds process id and start time of the last writer; ``store.contended`` names it.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from django.db.backends.base.base import BaseDatabaseWrapper

from workflows.errors import Refusal

#: How long door and desk are waited for before SQLite's own lock decides.
PATIENCE_S = 5.0
_FIRST_PAUSE_S = 0.0002
_LONGEST_PAUSE_S = 0.002
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_RECORD_LENGTH = 64


class FairLock:
    """A lock that its waiters get in the order they came."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads stand in line."""
        return len(self._waiting)

    def acquire(self, timeout_s: float) -> bool:
        """Whether the lock was had within ``timeout_s`` seconds."""
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            if turn.acquire(timeout=timeout_s):
                return True
        except BaseException:
            if not self._withdraw(turn):
                self.release()
            raise
        return not self._withdraw(turn)

    def _withdraw(self, turn: threading.Lock) -> bool:
        """Leave the line; False if the lock was handed over in this very moment."""
        with self._mutex, suppress(ValueError):
            self._waiting.remove(turn)
            return True
        return False

    def release(self) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class WriteQueue:
    """The queue of one database file; ``path`` None for a database that no other process can open."""

    def __init__(self, path: Path | None) -> None:
        self._threads = FairLock()
        self._path = path
        self._door: int | None = None
        self._desk: int | None = None
        self._seated = False
        self._stuck: bytes | None = None
        self._record = f"{os.getpid()} {_process_started_at()}".ljust(_RECORD_LENGTH - 1).encode() + b"\n"

    def enter(self, timeout_s: float) -> None:
        """Wait for the turn. Raises ``store.contended`` when other threads kept it for ``timeout_s`` seconds."""
        if not self._threads.acquire(timeout_s):
            raise Refusal("store.contended", detail="other threads of this process are writing")
        if self._path is None:
            return
        try:
            self._take_desk(min(timeout_s, PATIENCE_S))
        except BaseException:
            self._threads.release()
            raise

    def leave(self) -> None:
        if self._seated and self._desk is not None:
            self._seated = False
            fcntl.flock(self._desk, fcntl.LOCK_UN)
        self._threads.release()

    def _take_desk(self, patience_s: float) -> None:
        if self._desk is None:
            self._open_files()
        assert self._door is not None
        assert self._desk is not None
        if self._stuck is not None and self._stuck == self._last_record():
            patience_s = 0.0  # it did not leave within the patience before
        deadline = time.monotonic() + patience_s
        if not _lock_until(self._door, deadline):
            return
        try:
            self._seated = _lock_until(self._desk, deadline)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)
        self._stuck = None if self._seated else self._last_record()
        if self._seated:
            os.pwrite(self._desk, self._record, 0)

    def _last_record(self) -> bytes:
        assert self._desk is not None
        return os.pread(self._desk, _RECORD_LENGTH, 0)

    def _open_files(self) -> None:
        assert self._path is not None
        try:
            self._door = os.open(f"{self._path}-door", _OPEN, 0o600)
            self._desk = os.open(f"{self._path}-writer", _OPEN, 0o600)
        except OSError as error:
            raise Refusal(
                "store.unavailable",
                detail=f"{error.filename} cannot be opened ({error.strerror})",
                advice="Make the database file and its directory writable for this user.",
            ) from error

    def last_writer(self) -> str | None:
        """Who wrote last by this queue: ``process 4711, started 2026-11-30T12:00:00+00:00``."""
        if self._path is None:
            return None
        try:
            words = Path(f"{self._path}-writer").read_text().split()
        except (OSError, UnicodeDecodeError):
            return None
        return f"process {words[0]}, started {words[1]}" if len(words) == 2 else None

    def close(self) -> None:
        for descriptor in (self._door, self._desk):
            if descriptor is not None:
                os.close(descriptor)
        self._door = self._desk = None


def _lock_until(descriptor: int, deadline: float) -> bool:
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        else:
            return True


def _process_started_at() -> str:
    """When this process started, to the second; where the system does not tell, this moment."""
    moment = datetime.now(UTC)
    with suppress(OSError, ValueError, StopIteration):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        lines = Path("/proc/stat").read_text().splitlines()
        booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        moment = datetime.fromtimestamp(booted + ticks / os.sysconf("SC_CLK_TCK"), UTC)
    return moment.isoformat(timespec="seconds")


_queues: dict[str, WriteQueue] = {}
_queues_lock = threading.Lock()


def queue_for(connection: BaseDatabaseWrapper) -> WriteQueue:
    """The queue of the SQLite file that ``connection`` opens, one per process and file."""
    name = str(connection.settings_dict["NAME"])
    queue = _queues.get(name)
    if queue is None:
        with _queues_lock:
            queue = _queues.setdefault(name, WriteQueue(_shared_file(name)))
    return queue


def _shared_file(name: str) -> Path | None:
    if ":memory:" in name or "mode=memory" in name:
        return None
    if name.startswith("file:"):
        return Path(name.removeprefix("file:").partition("?")[0])
    return Path(name)


def forget_queues() -> None:
    """Close the side files. A child process must not share its parent's locks, so it starts with none."""
    global _queues_lock
    _queues_lock = threading.Lock()
    for queue in _queues.values():
        queue.close()
    _queues.clear()


os.register_at_fork(after_in_child=forget_queues)
