"""Moments of a driver: before and after each of its writes, around each commit and each effect.

A driver is watched from outside, by patching what it calls; production code has no hook. A moment has a *subject* (the
verb of a transaction, or an effect) and a *place* in it; the n-th time a driver comes by the same moment is a *point*.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from workflows.engine import driver
from workflows.ledger import transactions
from workflows.ledger.batch import Batch
from workflows.statuses import LIVE_STATUSES

_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a driver is killed: the ``turn``-th time (from 0) that it comes to ``place`` of ``subject``."""

    subject: str
    place: str
    turn: int = 0

    @property
    def window(self) -> str:
        """The crash window as BEHAVIOURS KILL names it: before, inside or after something."""
        if self.subject.startswith("the effect "):
            where = {"before": "before", "after": "after"}.get(self.place, "during")
            return f"{where} the effect"
        where = {"before": "before", "committed": "after"}.get(self.place, "inside")
        return f"{where} {self.subject}"

    def __str__(self) -> str:
        again = f" (time {self.turn + 1})" if self.turn else ""
        return f"{self.subject}: {self.place}{again}"


class Watch:
    """Notes the moments of this process and sends it ``number`` (SIGKILL, or SIGSTOP to freeze it) at one of them."""

    def __init__(self, dies_at: Point | None = None, number: int = signal.SIGKILL) -> None:
        self.process = os.getpid()
        self.points: list[Point] = []
        self._dies_at = dies_at
        self._number = number
        self._turns: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def reach(self, subject: str, place: str) -> None:
        if self._next(subject, place):
            os.kill(self.process, self._number)
            if self._number == signal.SIGKILL:
                time.sleep(60)  # the signal has come before this thread sleeps

    def foretell(self, subject: str, places: tuple[str, ...]) -> str | None:
        """Note moments that another process will reach; at which of them it shall kill this one."""
        return next((place for place in places if self._next(subject, place)), None)

    def _next(self, subject: str, place: str) -> bool:
        with self._lock:
            point = Point(subject=subject, place=place, turn=self._turns[subject, place])
            self._turns[subject, place] += 1
            self.points.append(point)
            return point == self._dies_at


class _Transaction:
    """The transaction that the watched thread is in."""

    def __init__(self) -> None:
        self.verb: str | None = None
        self.is_single_statement = False
        self.writes = 0
        self.batch: Batch | None = None

    @property
    def subject(self) -> str:
        return subject_of(self.batch) if self.verb == "advance" and self.batch is not None else str(self.verb)


def subject_of(batch: Batch) -> str:
    """What a driver's transaction is about: ``settlement and admission``."""
    parts = []
    if batch.attempts_settled or batch.attempts_closed:
        parts.append("settlement" if batch.attempts_settled else "recovery")
    if batch.attempts_new:
        parts.append("admission")
    if batch.state is not None and batch.state.status not in LIVE_STATUSES:
        parts.append("finish of the run")
    elif batch.parks:
        parts.append("park")
    return " and ".join(parts) or "pure steps"


def watch_ledger(watch: Watch) -> None:
    """Let ``watch`` see every write of the main thread from now on. Other threads (the heartbeat) are not watched."""
    open_now = _Transaction()
    main = threading.main_thread()

    def is_watched() -> bool:
        return open_now.verb is not None and threading.current_thread() is main

    def before_statement(sql: str) -> None:
        if is_watched() and _WRITES.match(sql):
            open_now.writes += 1
            watch.reach(open_now.subject, f"before write {open_now.writes}")

    def after_statement(sql: str) -> None:
        if is_watched() and open_now.is_single_statement and _WRITES.match(sql):
            watch.reach(open_now.subject, "committed")

    def committing() -> None:
        if is_watched():
            watch.reach(open_now.subject, "before COMMIT")

    def committed() -> None:
        if is_watched():
            watch.reach(open_now.subject, "committed")

    _watch_verbs(watch, open_now, main)
    _watch_batches(open_now)
    _watch_commits(committing, committed)
    connection_created.connect(
        lambda connection, **_: _watch_sqlite(connection, before_statement), weak=False, dispatch_uid="tests.crashes"
    )
    _watch_postgresql(before_statement, after_statement)


def _watch_verbs(watch: Watch, open_now: _Transaction, main: threading.Thread) -> None:
    run = transactions._run

    def watched(connection: BaseDatabaseWrapper, work: Any) -> Any:
        if threading.current_thread() is not main:
            return run(connection, work)
        open_now.verb, open_now.is_single_statement, open_now.writes = work.verb, work.is_single_statement, 0
        watch.reach(open_now.subject, "before")
        try:
            return run(connection, work)
        finally:
            open_now.verb = None

    transactions._run = watched


def _watch_batches(open_now: _Transaction) -> None:
    advance = driver.advance

    def watched(batch: Batch) -> None:
        open_now.batch = batch
        try:
            advance(batch)
        finally:
            open_now.batch = None

    driver.advance = watched


def _watch_commits(committing: Callable[[], None], committed: Callable[[], None]) -> None:
    commit = BaseDatabaseWrapper._commit

    def watched(self: BaseDatabaseWrapper) -> None:
        committing()
        commit(self)
        committed()

    BaseDatabaseWrapper._commit = watched


def _watch_sqlite(connection: BaseDatabaseWrapper, before: Callable[[str], None]) -> None:
    if connection.vendor == "sqlite":
        connection.connection.set_trace_callback(before)


def _watch_postgresql(before: Callable[[str], None], after: Callable[[str], None]) -> None:
    try:
        import psycopg
    except ImportError:
        return
    execute = psycopg.Cursor.execute

    def watched(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        text = query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else ""
        before(text)
        answer = execute(self, query, *args, **kwargs)
        after(text)
        return answer

    psycopg.Cursor.execute = watched
