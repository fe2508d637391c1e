"""The raw floor: one durable transaction of three statements on the bare driver, nothing around it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.stores import Store

#: Transactions of one sample.
TRANSACTIONS = 100

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS benchmark_run (id integer PRIMARY KEY, revision integer NOT NULL)",
    "CREATE TABLE IF NOT EXISTS benchmark_event (run_id integer NOT NULL, sequence integer NOT NULL, payload text)",
)
_UPDATE = "UPDATE benchmark_run SET revision = revision + 1 WHERE id = 1"
_INSERT = "INSERT INTO benchmark_event (run_id, sequence, payload) VALUES ({0}, {0}, {0})"


@contextmanager
def floor_of(store: Store) -> Iterator[Callable[[], float]]:
    """A function that measures: milliseconds of one transaction."""
    with _transaction(store) as transaction:
        for _ in range(20):
            transaction()

        def measure() -> float:
            begun = time.perf_counter()
            for _ in range(TRANSACTIONS):
                transaction()
            return (time.perf_counter() - begun) * 1000 / TRANSACTIONS

        yield measure


@contextmanager
def _transaction(store: Store) -> Iterator[Callable[[], None]]:
    if store.vendor == "sqlite":
        with _sqlite(f"{store.path}-floor") as transaction:
            yield transaction
    else:
        with _postgresql(store.url) as transaction:
            yield transaction


@contextmanager
def _sqlite(path: str) -> Iterator[Callable[[], None]]:
    """In a file of its own beside the engine's, so that neither waits for the lock of the other."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    for statement in (*_SCHEMA, "INSERT OR IGNORE INTO benchmark_run VALUES (1, 1)"):
        connection.execute(statement)
    insert = _INSERT.format("?")

    def transaction() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_UPDATE)
        connection.execute(insert, (1, 1, "{}"))
        connection.execute(insert, (1, 2, "{}"))
        connection.execute("COMMIT")

    try:
        yield transaction
    finally:
        connection.close()


@contextmanager
def _postgresql(url: str) -> Iterator[Callable[[], None]]:
    import psycopg

    with psycopg.connect(url, prepare_threshold=1, autocommit=True) as connection:
        for statement in (*_SCHEMA, "INSERT INTO benchmark_run VALUES (1, 1) ON CONFLICT DO NOTHING"):
            connection.execute(statement)
        insert = _INSERT.format("%s").encode()

        def transaction() -> None:
            connection.execute("BEGIN")
            connection.execute(_UPDATE)
            connection.execute(insert, (1, 1, "{}"))
            connection.execute(insert, (1, 2, "{}"))
            connection.execute("COMMIT")

        yield transaction
