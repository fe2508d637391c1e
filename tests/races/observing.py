"""Stops a transaction where a test wants it, and sees on PostgreSQL who waits for whose lock. Nobody sleeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection

from tests.support.tap import tap
from workflows.ledger.transactions import database_thread

TIMEOUT_S = 30
Answer = TypeVar("Answer")


class Gate:
    """Where a thread stops: ``reached`` is set when it is there, ``opened`` lets it go on."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def stop_here(self) -> None:
        self.reached.set()
        assert self.opened.wait(TIMEOUT_S)


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(count) as pool:
        yield pool


def in_thread(pool: ThreadPoolExecutor, body: Callable[[], Answer]) -> Future[Answer | Exception]:
    """The answer of ``body`` or the exception it raised, from a thread with a connection of its own."""

    def run() -> Answer | Exception:
        with database_thread():
            try:
                return body()
            except Exception as error:
                return error

    return pool.submit(run)


def stopping_before_commit(gate: Gate, body: Callable[[], Answer]) -> Callable[[], Answer]:
    """``body``, stopped before its transaction is committed, with all its locks held."""

    def run() -> Answer:
        with tap(lambda sql: None, on_commit=gate.stop_here):
            return body()

    return run


def wait_for_lock_waits(count: int) -> None:
    """Until ``count`` sessions of this database wait for a lock that another one holds."""
    for _ in range(100_000):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(DISTINCT waiting.pid) FROM pg_locks AS waiting "
                "JOIN pg_stat_activity AS session ON session.pid = waiting.pid "
                "WHERE NOT waiting.granted AND session.datname = current_database()"
            )
            row = cursor.fetchone()
        assert row is not None
        if row[0] >= count:
            return
    raise AssertionError(f"{count} sessions never waited for a lock")
