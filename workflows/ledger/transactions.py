"""How a ledger verb becomes one durable transaction.

``@ledger_transaction`` makes a function the body of a transaction. Around the body the runner

1. refuses to nest: a verb is whole or it is not a verb;
2. on SQLite waits for its turn in the write queue, so that writers are served in order of arrival;
3. opens ``atomic(durable=True)`` and lets managers see it (``require_ledger_transaction``);
4. commits, leaves the queue, then calls what the body handed to ``after_commit``.

What may go wrong, and what happens then:

* The database has certainly rolled back (deadlock, serialization failure, lock timeout, SQLite busy at BEGIN, a
  connection that broke before COMMIT was sent): the whole body runs again, a few times, with growing pauses; then
  ``store.contended`` or ``store.unavailable``. So a body has no effects outside the database.
* The reply to COMMIT is lost: the body never runs again. After reconnecting, when the server has ended the old session,
  ``already_mine`` (given with the verb, called with the verb's arguments) looks for the random id that the verb wrote
  and returns the verb's result, or None if it is not there. Not found, or no lookup given: ``store.unavailable``.
* The body raises: rolled back, nothing is published, the error passes unchanged.

Bodies are plain functions: no generators, no coroutines.
"""

from __future__ import annotations

import functools
import inspect
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, overload

import django.db
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from workflows.errors import Refusal
from workflows.ledger.write_queue import WriteQueue, queue_for
from workflows.models.guard import require_ledger_transaction, writing
from workflows.stores.failures import StoreFailure, StoreFailureKind, classify

__all__ = [
    "after_commit",
    "database_thread",
    "ledger_transaction",
    "require_ledger_transaction",
    "run_ledger_transaction",
    "run_single_statement",
]

logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

#: Pauses before the body runs again, in seconds, by what happened. Their number bounds the repetitions; so does the
#: time that this process waits for a lock, since every single try may have waited that long already.
PAUSES_S: dict[StoreFailureKind, tuple[float, ...]] = {
    StoreFailureKind.CONTENDED: (0.005, 0.02, 0.05, 0.1, 0.2),
    StoreFailureKind.CONNECTION_LOST: (0.0, 0.05, 0.2, 0.5, 1.0, 1.5, 2.0),
}
#: How long the old session may take to end after its connection broke, in seconds.
SESSION_END_S = 5.0
_DEFAULT_WAIT_S = 30.0


class NestedLedgerTransactionError(RuntimeError):
    """A programming error: a ledger verb was called inside a transaction."""


class _Transaction:
    """One try of a verb."""

    __slots__ = ("committing", "listeners", "session")

    def __init__(self) -> None:
        self.committing = False
        self.listeners: list[Callable[[], object]] = []
        self.session: int | None = None

    def publish(self) -> None:
        for listener in self.listeners:
            try:
                listener()
            except Exception:
                # what is committed is a fact; a listener that fails must not make it look otherwise
                logger.exception("A listener of a committed ledger transaction failed.")


_current: ContextVar[_Transaction | None] = ContextVar("waypost_current_transaction", default=None)


def after_commit(listener: Callable[[], object]) -> None:
    """Call ``listener`` once this ledger transaction is committed; never if it is not. Its errors are only logged."""
    current = _current.get()
    if current is None:
        raise RuntimeError("after_commit belongs inside a ledger transaction.")
    current.listeners.append(listener)


@overload
def ledger_transaction(verb: Callable[Arguments, Answer], /) -> Callable[Arguments, Answer]: ...


@overload
def ledger_transaction(
    *, already_mine: Callable[..., Answer | None], using: str = DEFAULT_DB_ALIAS
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]: ...


def ledger_transaction(
    verb: Callable[Arguments, Answer] | None = None,
    /,
    *,
    already_mine: Callable[..., Any] | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> Any:
    """Make a function a ledger verb: its body runs as one durable transaction (see the head of this file).

    ``already_mine`` is called with the verb's arguments after a lost COMMIT; it answers the verb's result or None.
    """

    def decorate(body: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        if inspect.isgeneratorfunction(body) or inspect.iscoroutinefunction(body):
            raise TypeError(f"{body.__qualname__} is not a plain function.")

        @functools.wraps(body)
        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            lookup = functools.partial(already_mine, *args, **kwargs) if already_mine is not None else None
            answer: Answer = run_ledger_transaction(
                functools.partial(body, *args, **kwargs), verb=body.__name__, already_mine=lookup, using=using
            )
            return answer

        return run

    return decorate if verb is None else decorate(verb)


def run_ledger_transaction(
    body: Callable[[], Answer],
    *,
    verb: str,
    already_mine: Callable[[], Answer | None] | None = None,
    using: str = DEFAULT_DB_ALIAS,
) -> Answer:
    """Run ``body`` as one durable transaction and return its answer. ``verb`` names it in errors.

    Raises ``store.contended`` and ``store.unavailable`` (Refusal); whatever ``body`` raises passes unchanged.
    """
    work = _Work(body=body, verb=verb, already_mine=already_mine, is_single_statement=False)
    return _run(connections[using], work)


def run_single_statement(
    body: Callable[[], Answer],
    *,
    verb: str,
    already_mine: Callable[[], Answer | None],
    using: str = DEFAULT_DB_ALIAS,
) -> Answer:
    """Run ``body``, which executes exactly one writing statement, and let the statement be the transaction.

    This saves the round trips of BEGIN and COMMIT. Every statement whose reply is lost may have been committed, so
    ``already_mine`` always decides. Unlike a transaction the statement is repeated when the old session is known to
    have ended and nothing of it is there: otherwise every connection that died while it was idle would cost a step.

    Raises what ``run_ledger_transaction`` raises.
    """
    work = _Work(body=body, verb=verb, already_mine=already_mine, is_single_statement=True)
    return _run(connections[using], work)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work(Generic[Answer]):
    body: Callable[[], Answer]
    verb: str
    already_mine: Callable[[], Answer | None] | None
    is_single_statement: bool


def _run(connection: BaseDatabaseWrapper, work: _Work[Answer]) -> Answer:
    _refuse_nesting(connection, work.verb)
    queue = queue_for(connection) if connection.vendor == "sqlite" else None
    repetitions, deadline = 0, time.monotonic() + _wait_s(connection)
    while True:
        attempt = _Transaction()
        try:
            answer = _run_once(connection, queue, work, attempt)
            break
        except django.db.Error as error:
            failure = classify(error)
            if failure.kind is StoreFailureKind.OTHER:
                raise
            if failure.kind is StoreFailureKind.CONNECTION_LOST:
                connection.close()
                if attempt.committing:
                    found = _find_lost_commit(connection, attempt, work, error)
                    if found is not None:
                        answer = found
                        break
            _pause_or_refuse(failure, repetitions, deadline, queue, error)
            repetitions += 1
    attempt.publish()
    return answer


def _refuse_nesting(connection: BaseDatabaseWrapper, verb: str) -> None:
    # the atomic block that Django's TestCase wraps around a test does not count, as for durable blocks
    blocks = connection.atomic_blocks
    if _current.get() is not None or (blocks and not getattr(blocks[-1], "_from_testcase", False)):
        raise NestedLedgerTransactionError(f"{verb} opens a transaction of its own and was called inside one.")


def _run_once(
    connection: BaseDatabaseWrapper, queue: WriteQueue | None, work: _Work[Answer], attempt: _Transaction
) -> Answer:
    if queue is not None:
        queue.enter(_wait_s(connection))
    current_token, writing_token = _current.set(attempt), writing.set(True)
    try:
        if work.is_single_statement:
            connection.ensure_connection()
            attempt.session = _session_of(connection)
            attempt.committing = True
            return work.body()
        with transaction.atomic(using=connection.alias, durable=True):
            if queue is None:
                attempt.session = _session_of(connection)
            answer = work.body()
            attempt.committing = True
        return answer
    finally:
        writing.reset(writing_token)
        _current.reset(current_token)
        if queue is not None:
            queue.leave()


def _wait_s(connection: BaseDatabaseWrapper) -> float:
    return float(connection.settings_dict["OPTIONS"].get("timeout", _DEFAULT_WAIT_S))


def _session_of(connection: BaseDatabaseWrapper) -> int | None:
    """The process id of the server's side of this connection, known without a round trip."""
    driver = connection.connection
    return driver.pgconn.backend_pid if connection.vendor == "postgresql" and driver is not None else None


def _pause_or_refuse(
    failure: StoreFailure, repetitions: int, deadline: float, queue: WriteQueue | None, error: django.db.Error
) -> None:
    pauses = PAUSES_S.get(failure.kind, ())
    if repetitions < len(pauses) and time.monotonic() < deadline:
        time.sleep(pauses[repetitions] * random.uniform(0.5, 1.0))  # noqa: S311  # spreads colliding writers
        return
    if failure.kind is StoreFailureKind.CONTENDED and queue is not None and (writer := queue.last_writer()):
        raise Refusal("store.contended", detail=f"{failure.detail} (last seen: {writer})") from error
    refusal = failure.as_refusal()
    assert refusal is not None
    raise refusal from error


def _find_lost_commit(
    connection: BaseDatabaseWrapper, attempt: _Transaction, work: _Work[Answer], error: django.db.Error
) -> Answer | None:
    """The answer of a verb whose COMMIT got no reply, if its traces are found.

    None: nothing was written and the body may run again. Everything else is ``store.unavailable``.
    """
    ended = _session_has_ended(connection, attempt.session)
    found = work.already_mine() if work.already_mine is not None else None
    if found is not None:
        return found
    is_certain = ended and work.already_mine is not None
    if is_certain and work.is_single_statement:
        return None
    raise Refusal(
        "store.unavailable",
        detail=(
            f"the connection broke while {work.verb} was being committed, "
            + ("and nothing of it was written" if is_certain else "and whether it was written is not known")
        ),
        advice="Try again." if is_certain else "Look at what is there before trying again.",
        commit_unknown=not is_certain,
    ) from error


def _session_has_ended(connection: BaseDatabaseWrapper, session: int | None) -> bool:
    """Reconnect and wait until the server has ended ``session``: until then its COMMIT may still come through."""
    deadline = time.monotonic() + SESSION_END_S
    while session is not None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [session])
                if cursor.fetchone() == (0,):
                    return True
        except django.db.Error as error:
            failure = classify(error)
            refusal = failure.as_refusal()
            if failure.kind is not StoreFailureKind.CONNECTION_LOST or time.monotonic() > deadline:
                raise (refusal or error) from error
            connection.close()
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def database_thread() -> Iterator[None]:
    """Around the life of a thread that uses the database: its connections are closed at the end."""
    try:
        yield
    finally:
        connections.close_all()
