"""Sending a batch as a transaction of its own: BEGIN, fence, writes and COMMIT without anything in between.

On SQLite this is a sequence of statements. On PostgreSQL a batch of few updates is one statement, which is one round
trip; any other is two: BEGIN and the fence, then the writes and COMMIT. In both the rows of a table come as arrays, so
that the texts stay few and prepared.

The guard on the revision in the fence makes every other guard hold too: whoever changes an attempt of this run raises
the revision under the same row lock. Called by ``ledger.advance``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from workflows.errors import Refusal
from workflows.ledger.batch import Batch
from workflows.ledger.hot_path import Statement, Writer, fence, inserts, join, releases, updates, writer_for
from workflows.ledger.side_rows import has_side_rows

#: Bytes of values that a pipeline may carry between two synchronizations. psycopg waits there for answers without
#: having sent what the socket did not take at once, so a statement has to fit into the smallest buffer of a socket.
MOST_PIPELINED = 8_000
#: Updates of a table beyond which a batch is not one statement: each is a part with a plan of its own.
MOST_UPDATES = 2


def is_possible(connection: BaseDatabaseWrapper, batch: Batch) -> bool:
    """Whether a batch can be sent alone: what lies beside its rows is written with the managers, in their way."""
    return not connection.in_atomic_block and not has_side_rows(batch)


def write(connection: BaseDatabaseWrapper, batch: Batch) -> bool:
    """Write a batch and commit it. False: the fence let nothing pass. Raises ``attempt.conflict``."""
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if connection.vendor == "sqlite":
            return _write_in_sequence(connection, batch)
        if is_one_statement(batch):
            return _write_as_one(connection, batch)
        return _write_in_two_trips(connection, batch)


# ---- SQLite ----------------------------------------------------------------------------------------------------------


def _write_in_sequence(connection: BaseDatabaseWrapper, batch: Batch) -> bool:
    driver = connection.connection
    writer = writer_for(connection)
    cursor = driver.cursor()
    try:
        cursor.execute("BEGIN IMMEDIATE")
        try:
            passed = _write_behind_fence(cursor, writer, batch)
            if passed:
                driver.commit()
        except BaseException:
            driver.rollback()
            raise
        if not passed:
            driver.rollback()
        return passed
    finally:
        cursor.close()


def _write_behind_fence(cursor: Any, writer: Writer, batch: Batch) -> bool:
    first = fence(writer, batch)
    if cursor.execute(first.sql, first.parameters).rowcount != 1:
        return False
    for statement in updates(writer, batch):
        changed = cursor.execute(statement.sql, statement.parameters).rowcount
        if statement.must_change and changed != statement.must_change:
            raise Refusal("attempt.conflict", run=batch.run_id, attempt=statement.attempt)
    for statement in inserts(writer, batch):
        cursor.execute(statement.sql, statement.parameters)
    for statement in releases(writer, batch):
        cursor.execute(statement.sql, statement.parameters)
    return True


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------


def is_one_statement(batch: Batch) -> bool:
    """Whether the writes of a batch are few updates that do not depend on their order.

    Statements of one WITH see one snapshot, so an attempt that takes the place of another of its visit, and a lease
    whose active time is copied, need a sequence of statements.
    """
    if batch.release or batch.attempts_closed or batch.controls or batch.interrupts_closed:
        return False
    changed = (batch.attempts_settled, batch.visits_changed, batch.scopes_changed, batch.variables)
    if any(len(rows) > MOST_UPDATES for rows in changed):
        return False
    ended = {row.visit for row in batch.attempts_settled}
    return not any(row.visit in ended for row in batch.attempts_new)


_joined: dict[tuple[str, ...], str] = {}


def _write_as_one(connection: BaseDatabaseWrapper, batch: Batch) -> bool:
    writer = writer_for(connection)
    first = fence(writer, batch)
    rest = [*updates(writer, batch), *inserts(writer, batch, hanging=True)]
    key = (first.sql, *[statement.sql for statement in rest])
    text = _joined.get(key)
    if text is None:
        if len(_joined) > 500:
            _joined.clear()
        text = _joined[key] = numbered(join(first, rest))
    parameters = list(first.parameters)
    for statement in rest:
        parameters.extend(statement.parameters)
    with _raw_cursor(connection) as cursor:
        cursor.execute(text, parameters)
        return bool(cursor.fetchone()[0])


def _write_in_two_trips(connection: BaseDatabaseWrapper, batch: Batch) -> bool:
    driver = connection.connection
    writer = writer_for(connection)
    first = fence(writer, batch)
    rest = [*updates(writer, batch), *inserts(writer, batch), *releases(writer, batch)]
    if any(_size(statement) > MOST_PIPELINED for statement in (first, *rest)):
        return _write_statement_by_statement(connection, first, rest)
    try:
        with driver.pipeline() as pipeline, _raw_cursor(connection) as cursor:
            cursor.execute("BEGIN")
            cursor.execute(numbered(first.sql), first.parameters)
            # not a flush: the server's limit for idle transactions counts only after a synchronization
            pipeline.sync()
            cursor.nextset()
            passed: bool = cursor.rowcount == 1
            if passed:
                for statement in rest:
                    cursor.execute(numbered(statement.sql), statement.parameters)
                    # a worker frozen here is idle in a transaction, which the server ends by its limit
                    pipeline.sync()
                driver.commit()
    except BaseException:
        _undo(driver)
        raise
    if not passed:
        driver.rollback()
    return passed


def _write_statement_by_statement(connection: BaseDatabaseWrapper, first: Statement, rest: list[Statement]) -> bool:
    """What is too large for a pipeline, a round trip each: beside the bytes these cost little."""
    driver = connection.connection
    try:
        with _raw_cursor(connection) as cursor:
            cursor.execute("BEGIN")
            cursor.execute(numbered(first.sql), first.parameters)
            passed: bool = cursor.rowcount == 1
            if passed:
                for statement in rest:
                    cursor.execute(numbered(statement.sql), statement.parameters)
                driver.commit()
    except BaseException:
        _undo(driver)
        raise
    if not passed:
        driver.rollback()
    return passed


def _size(statement: Statement) -> int:
    """About how many bytes the values of a statement take; a character outside of ASCII may be four of them."""
    texts = [value for value in statement.parameters if isinstance(value, str)]
    return sum(len(text) if text.isascii() else 4 * len(text) for text in texts) + 16 * len(statement.parameters)


def _undo(driver: Any) -> None:
    """End what is open on a connection that still works; one that broke is closed by the runner."""
    if not driver.closed:
        driver.rollback()


@contextmanager
def _raw_cursor(connection: BaseDatabaseWrapper) -> Iterator[Any]:
    """A cursor that takes ``$1`` and sends the text as it is: any other reads a long text anew at each execution."""
    from psycopg import RawCursor

    driver = connection.connection
    usual, driver.cursor_factory = driver.cursor_factory, RawCursor
    try:
        cursor = driver.cursor()
    finally:
        driver.cursor_factory = usual
    try:
        yield cursor
    finally:
        cursor.close()


@lru_cache(maxsize=1_000)
def numbered(text: str) -> str:
    """The text with ``$1``, ``$2`` and so on for its placeholders."""
    numbers = count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", text)
