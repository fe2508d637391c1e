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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from workflows.engine import driver
from workflows.ledger import transactions
from workflows.ledger.batch import Batch
from workflows.statuses import LIVE_STATUSES, AttemptStatus

_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
_TABLE = re.compile(r'(?:INTO|UPDATE|FROM)\s+"?workflows_(\w+)', re.IGNORECASE)


#: The windows of promise KILL, by name.
KILL_WINDOWS = (
    "inside publish",
    "after publish",
    "inside acquire",
    "after acquire",
    "inside admission",
    "after admission before the effect",
    "during the effect",
    "after the effect before settlement",
    "inside settlement",
    "after settlement",
    "inside a question's commit",
    "after a question's commit",
    "inside an answer",
    "after an answer before it is used",
    "inside child publication",
    "after child publication",
    "inside a signal's acceptance",
    "after a signal's acceptance",
    "inside a cancel's acceptance",
    "after a cancel's acceptance",
    "inside fork",
    "after fork",
    "inside finish of the run",
    "after finish of the run",
)
_EFFECT = "the effect "
_EFFECT_WINDOWS = {
    "before": "after admission before the effect",
    "began": "during the effect",
    "done": "after the effect before settlement",
    "after": "after the effect before settlement",
}
_COMMITTED = {"admission": "after admission before the effect", "an answer": "after an answer before it is used"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a driver is killed: the ``turn``-th time (from 0) that it comes to ``place`` of ``subject``.

    ``detail`` says what is written: the table before a write, the shape of it all around a commit.
    """

    subject: str
    place: str
    turn: int = 0
    detail: str = field(default="", compare=False)

    @property
    def windows(self) -> tuple[str, ...]:
        """The crash windows as promise KILL names them; one transaction may be several things at once."""
        if self.subject.startswith(_EFFECT):
            return (_EFFECT_WINDOWS[self.place],)
        parts = self.subject.split(" and ")
        if self.place == "before":
            return ("after the effect before settlement",) if "settlement" in parts else (f"before {self.subject}",)
        if self.place != "committed":
            return tuple(f"inside {part}" for part in parts)
        return tuple(_COMMITTED.get(part, f"after {part}") for part in parts)

    @property
    def write(self) -> tuple[str, ...]:
        """What makes this point different from others. Whatever a transaction has written before its commit is gone
        with its driver, so only the table counts there; of effects step and place count."""
        if not self.subject.startswith(_EFFECT):
            place = "before a write" if self.place.startswith("before write ") else self.place
            return (self.subject, place, self.detail)
        path, _, number = self.subject.removeprefix(_EFFECT).rpartition("@")
        step = re.sub(r"\[\d+\]|#\d+", "", path)
        return (step, "first" if number == "1" else "again", self.place)

    @property
    def depends_on_promises(self) -> bool:
        """Whether the access of steps decides what happens after a death here."""
        if self.subject.startswith(_EFFECT):
            return True
        is_about_effects = any(word in self.subject for word in ("admission", "settlement", "recovery", "reconcil"))
        return is_about_effects and not self.place.startswith("before write ")

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

    def reach(self, subject: str, place: str, detail: str = "") -> None:
        if self._next(subject, place, detail):
            os.kill(self.process, self._number)
            if self._number == signal.SIGKILL:
                time.sleep(60)  # the signal has come before this thread sleeps

    def foretell(self, subject: str, places: tuple[str, ...]) -> str | None:
        """Note moments that another process will reach; at which of them it shall kill this one."""
        return next((place for place in places if self._next(subject, place)), None)

    def _next(self, subject: str, place: str, detail: str = "") -> bool:
        with self._lock:
            point = Point(subject=subject, place=place, turn=self._turns[subject, place], detail=detail)
            self._turns[subject, place] += 1
            self.points.append(point)
            return point == self._dies_at


class _Now:
    """What this process does at the moment: who watches it, and the transaction its main thread is in."""

    watch: Watch | None = None
    verb: str | None = None
    writes = 0
    batch: Batch | None = None

    def is_watched(self) -> bool:
        return self.watch is not None and self.verb is not None and in_main_thread()

    def reach(self, place: str, detail: str = "") -> None:
        if self.watch is not None and self.is_watched():
            shape = shape_of(self.batch) if self.batch is not None and not detail else ""
            self.watch.reach(self.subject, place, detail or shape)

    @property
    def subject(self) -> str:
        return subject_of(self.batch) if self.verb == "advance" and self.batch is not None else str(self.verb)


#: A chain of pure steps is not cut by the clock here: a busy machine would move the points of a run.
UNCUT_S = 3_600.0
_now = _Now()
_is_installed = False


def in_main_thread() -> bool:
    """Other threads, such as the heartbeat's, write when the clock says so; they have no points."""
    return threading.current_thread() is threading.main_thread()


def subject_of(batch: Batch) -> str:
    """What a driver's transaction is about: ``settlement and admission``."""
    parts = []
    if batch.attempts_settled or batch.attempts_closed:
        parts.append("settlement" if batch.attempts_settled else "recovery")
    if any(attempt.status == AttemptStatus.RUNNING for attempt in batch.attempts_new):
        parts.append("admission")
    if batch.interrupts_new:
        parts.append("a question's commit")
    if batch.children:
        parts.append("child publication")
    if batch.state is not None and batch.state.status not in LIVE_STATUSES:
        parts.append("finish of the run")
    elif batch.parks:
        parts.append("park")
    return " and ".join(parts) or "pure steps"


def shape_of(batch: Batch) -> str:
    """What a driver's transaction writes, without names and numbers: the kinds of its visits and how attempts end."""
    kinds = {f"{visit.kind} {visit.outcome or visit.status}" for visit in (*batch.visits_new, *batch.visits_changed)}
    ends = {str(attempt.status) for attempt in (*batch.attempts_settled, *batch.attempts_closed)}
    others = {
        "items": batch.scopes_new,
        "a list": batch.fanouts,
        "variables": batch.variables or batch.variables_new,
        "closed questions": batch.interrupts_closed,
        "a place in line": batch.slots_wanted,
        "a free place": batch.slots_freed,
        "a control": batch.controls,
        "a release": batch.release,
    }
    return ", ".join([*sorted(kinds), *sorted(ends), *(name for name, is_there in others.items() if is_there)])


def verb_of(work: Any) -> str:
    """What a transaction is about, in the words of promise KILL."""
    if work.verb == "send":
        return f"a {work.body.keywords['kind']}'s acceptance"
    return {"answer": "an answer", "reconcile": "a reconciliation"}.get(work.verb, str(work.verb))


@contextmanager
def unwatched() -> Iterator[None]:
    """What the kit does for itself has no moments."""
    watch, _now.watch = _now.watch, None
    try:
        yield
    finally:
        _now.watch = watch


def watch_ledger(watch: Watch) -> None:
    """Let ``watch``, and no other any more, see every write of this process."""
    global _is_installed
    _now.watch = watch
    if not _is_installed:
        _is_installed = True
        driver.CHAIN_S = UNCUT_S
        _watch_verbs()
        _watch_batches()
        connection_created.connect(_watch_sqlite, dispatch_uid="tests.crashes")
        _watch_postgresql()


def _before_statement(sql: str) -> None:
    if not _now.is_watched():
        return
    if _WRITES.match(sql):
        _now.writes += 1
        _now.reach(f"before write {_now.writes}", table_of(sql))
    elif sql == "COMMIT":
        _now.reach("before COMMIT")


def table_of(sql: str) -> str:
    """The table that a statement writes first."""
    found = _TABLE.search(sql)
    return found.group(1) if found else ""


def _watch_verbs() -> None:
    run, run_once = transactions._run, transactions._run_once

    def watched(connection: BaseDatabaseWrapper, work: Any) -> Any:
        if not in_main_thread():
            return run(connection, work)
        _now.verb, _now.writes = verb_of(work), 0
        _now.reach("before")
        try:
            return run(connection, work)
        finally:
            _now.verb = None

    def watched_once(*args: Any) -> Any:
        answer = run_once(*args)
        _now.reach("committed")
        return answer

    transactions._run = watched
    transactions._run_once = watched_once


def _watch_batches() -> None:
    advance = driver.advance

    def watched(batch: Batch) -> None:
        _now.batch = batch
        try:
            advance(batch)
        finally:
            _now.batch = None

    driver.advance = watched


def _watch_sqlite(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if connection.vendor == "sqlite":
        connection.connection.set_trace_callback(_before_statement)


def _watch_postgresql() -> None:
    try:
        import psycopg
    except ImportError:
        return
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

    def watched_execute(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        _before_statement(query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else "")
        return execute(self, query, *args, **kwargs)

    def watched_commit(self: Any) -> None:
        _before_statement("COMMIT")
        commit(self)

    psycopg.Cursor.execute = watched_execute
    psycopg.Connection.commit = watched_commit
