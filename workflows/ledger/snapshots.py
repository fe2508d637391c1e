"""Looking at the whole database at one moment, while others write. Nothing is written, nobody is kept waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def snapshot(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Inside of this all reads see the database as it was at the first of them, and writes are refused by it.

    On SQLite it is a deferred transaction, which takes no lock of a writer, as ``atomic`` would. Not to be kept open
    for long: on SQLite the log cannot be shortened meanwhile. Raises ``RuntimeError`` inside of a transaction.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        raise RuntimeError("A snapshot is a transaction of its own.")
    if connection.vendor == "sqlite":
        with _sqlite_snapshot(connection):
            yield
        return
    with transaction.atomic(using=using, durable=True):
        _execute(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _sqlite_snapshot(connection: BaseDatabaseWrapper) -> Iterator[None]:
    _execute(connection, "PRAGMA query_only = ON")
    try:
        _execute(connection, "BEGIN DEFERRED")
        try:
            yield
        finally:
            _execute(connection, "ROLLBACK")
    finally:
        _execute(connection, "PRAGMA query_only = OFF")


def _execute(connection: BaseDatabaseWrapper, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
