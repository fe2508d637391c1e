"""Errors of database drivers become two refusals: busy, or something a person must do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import django.db
import psycopg
import pytest

from workflows.errors import Refusal
from workflows.stores.failures import StoreFailureKind, classify, store_failures_as_refusals


def sqlite_error(*statements: str, path: str) -> sqlite3.Error:
    connection = sqlite3.connect(path, uri=True, isolation_level=None, timeout=0)
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("no error")


def as_django_raises(cause: Exception) -> django.db.Error:
    try:
        raise django.db.OperationalError(str(cause)) from cause
    except django.db.Error as error:
        return error


def test_a_read_only_file_is_unavailable(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "database").close()
    error = sqlite_error("CREATE TABLE t (a)", path=f"file:{tmp_path / 'database'}?mode=ro")
    with pytest.raises(Refusal) as caught, store_failures_as_refusals():
        raise as_django_raises(error)
    assert caught.value.code == "store.unavailable"
    assert caught.value.message == "The database cannot be used: the file is read-only."
    assert caught.value.hint == "Make the database file and its directory writable for this user."
    assert caught.value.exit_code == 75


def test_a_full_disk_is_unavailable(tmp_path: Path) -> None:
    error = sqlite_error(
        "CREATE TABLE t (a)",
        "PRAGMA max_page_count=1",
        "INSERT INTO t VALUES (zeroblob(99999))",
        path=f"file:{tmp_path}/d",
    )
    assert classify(error).detail == "the disk is full"


def test_a_missing_directory_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.Error) as caught:
        sqlite3.connect(tmp_path / "missing" / "database")
    assert classify(as_django_raises(caught.value)).detail == "the file cannot be opened"


def test_a_lock_that_is_taken_is_contention(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "d", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    error = sqlite_error("BEGIN IMMEDIATE", path=f"file:{tmp_path}/d")
    holder.close()
    assert classify(error).kind is StoreFailureKind.CONTENDED


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.DeadlockDetected(), StoreFailureKind.CONTENDED),
        (psycopg.errors.SerializationFailure(), StoreFailureKind.CONTENDED),
        (psycopg.errors.LockNotAvailable(), StoreFailureKind.CONTENDED),
        (psycopg.errors.AdminShutdown(), StoreFailureKind.CONNECTION_LOST),
        (psycopg.errors.IdleInTransactionSessionTimeout(), StoreFailureKind.CONNECTION_LOST),
        (psycopg.OperationalError("server closed the connection unexpectedly"), StoreFailureKind.CONNECTION_LOST),
        (psycopg.errors.DiskFull(), StoreFailureKind.UNAVAILABLE),
        (psycopg.errors.ReadOnlySqlTransaction(), StoreFailureKind.UNAVAILABLE),
        (psycopg.errors.UniqueViolation(), StoreFailureKind.OTHER),
        (psycopg.errors.UndefinedTable(), StoreFailureKind.OTHER),
        (sqlite3.IntegrityError("made up"), StoreFailureKind.OTHER),
        (ValueError("not of a database"), StoreFailureKind.OTHER),
    ],
    ids=lambda value: type(value).__name__,
)
def test_codes_decide_and_never_texts(error: Exception, kind: StoreFailureKind) -> None:
    assert classify(error).kind is kind
    assert classify(as_django_raises(error)).kind is kind


def test_an_error_of_the_work_itself_passes_unchanged() -> None:
    error = as_django_raises(psycopg.errors.UniqueViolation())
    with pytest.raises(django.db.OperationalError) as caught, store_failures_as_refusals():
        raise error
    assert caught.value is error
