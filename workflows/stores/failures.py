"""What an error of a database driver means: may the work run again, and what should a person do.

The one place that reads SQLite's error numbers and PostgreSQL's SQLSTATEs. Nothing looks at error texts.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

import django.db

from workflows.errors import Refusal


class StoreFailureKind(Enum):
    """CONTENDED: certainly rolled back, another try may succeed. CONNECTION_LOST: everything uncommitted is gone.

    UNAVAILABLE: a person must do something. OTHER: not a failure of the store but of what was asked of it.
    """

    CONTENDED = "contended"
    CONNECTION_LOST = "connection lost"
    UNAVAILABLE = "unavailable"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailure:
    kind: StoreFailureKind
    detail: str
    advice: str = ""

    def as_refusal(self) -> Refusal | None:
        """``store.contended`` or ``store.unavailable``; None for OTHER."""
        match self.kind:
            case StoreFailureKind.OTHER:
                return None
            case StoreFailureKind.CONTENDED:
                return Refusal("store.contended", detail=self.detail)
            case _:
                return Refusal("store.unavailable", detail=self.detail, advice=self.advice)


_CONTENDED = StoreFailureKind.CONTENDED
_LOST = StoreFailureKind.CONNECTION_LOST
_UNAVAILABLE = StoreFailureKind.UNAVAILABLE

_SQLITE: dict[int, StoreFailure] = {
    sqlite3.SQLITE_BUSY: StoreFailure(kind=_CONTENDED, detail="another process is writing"),
    sqlite3.SQLITE_LOCKED: StoreFailure(kind=_CONTENDED, detail="another connection is writing"),
    sqlite3.SQLITE_READONLY: StoreFailure(
        kind=_UNAVAILABLE,
        detail="the file is read-only",
        advice="Make the database file and its directory writable for this user.",
    ),
    sqlite3.SQLITE_CANTOPEN: StoreFailure(
        kind=_UNAVAILABLE,
        detail="the file cannot be opened",
        advice="Check that its directory exists and that this user may write there.",
    ),
    sqlite3.SQLITE_PERM: StoreFailure(
        kind=_UNAVAILABLE,
        detail="access to the file is denied",
        advice="Make the database file and its directory writable for this user.",
    ),
    sqlite3.SQLITE_FULL: StoreFailure(
        kind=_UNAVAILABLE, detail="the disk is full", advice="Free some space, then try again."
    ),
    sqlite3.SQLITE_IOERR: StoreFailure(
        kind=_UNAVAILABLE, detail="the disk reported an error", advice="Check the disk and its free space."
    ),
    sqlite3.SQLITE_CORRUPT: StoreFailure(
        kind=_UNAVAILABLE, detail="the file is damaged", advice="Restore it from a backup."
    ),
    sqlite3.SQLITE_NOTADB: StoreFailure(
        kind=_UNAVAILABLE,
        detail="the file is not an SQLite database",
        advice="Restore it from a backup, or move it away to start with an empty one.",
    ),
}

_SQLSTATES: dict[str, StoreFailure] = {
    "40001": StoreFailure(kind=_CONTENDED, detail="the transaction collided with another one"),
    "40P01": StoreFailure(kind=_CONTENDED, detail="the transaction collided with another one (deadlock)"),
    "55P03": StoreFailure(kind=_CONTENDED, detail="a lock was not free in time"),
    "57014": StoreFailure(kind=_CONTENDED, detail="a statement was ended by its time limit"),
    "25P03": StoreFailure(kind=_LOST, detail="the server ended a transaction that had been idle too long"),
    "25P04": StoreFailure(kind=_LOST, detail="the server ended a transaction that had taken too long"),
    "53100": StoreFailure(kind=_UNAVAILABLE, detail="the server's disk is full", advice="Free some space there."),
    "53300": StoreFailure(
        kind=_UNAVAILABLE,
        detail="the server has no connection left",
        advice="Stop some processes or raise the server's max_connections.",
    ),
    "25006": StoreFailure(kind=_UNAVAILABLE, detail="the server is read-only", advice="Connect to the primary server."),
    "28P01": StoreFailure(kind=_UNAVAILABLE, detail="the password is wrong", advice="Correct DATABASE_URL."),
    "28000": StoreFailure(kind=_UNAVAILABLE, detail="the user may not connect", advice="Correct DATABASE_URL."),
    "3D000": StoreFailure(
        kind=_UNAVAILABLE, detail="the database does not exist", advice="Create it, or correct DATABASE_URL."
    ),
    "42501": StoreFailure(
        kind=_UNAVAILABLE, detail="the user lacks a privilege", advice="Grant it to the user in DATABASE_URL."
    ),
}
#: SQLSTATE classes: 08 connection exception, 57P shutdown and start of the server.
_LOST_PREFIXES = ("08", "57P")
_LOST_CONNECTION = StoreFailure(
    kind=_LOST, detail="there is no connection to the server", advice="Check that the server runs and DATABASE_URL."
)
_OTHER = StoreFailure(kind=StoreFailureKind.OTHER, detail="")


def classify(error: BaseException) -> StoreFailure:
    """What ``error`` (Django's, or the driver's own) means for the work that met it."""
    cause = error.__cause__ if isinstance(error, django.db.Error) and error.__cause__ else error
    if isinstance(cause, sqlite3.Error):
        # extended codes keep the primary code in their lowest byte
        return _SQLITE.get((getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF, _OTHER)
    psycopg = sys.modules.get("psycopg")  # a driver that nobody imported (it takes its time) has raised nothing
    if psycopg is not None and isinstance(cause, psycopg.Error):
        return _classify_psycopg(cause, psycopg)
    return _OTHER


def _classify_psycopg(cause: BaseException, psycopg: ModuleType) -> StoreFailure:
    state: str | None = getattr(cause, "sqlstate", None)
    if state is None:
        lost = isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
        return _LOST_CONNECTION if lost else _OTHER
    if state.startswith(_LOST_PREFIXES):
        return _LOST_CONNECTION
    return _SQLSTATES.get(state, _OTHER)


@contextmanager
def store_failures_as_refusals() -> Iterator[None]:
    """Turns a failing database into ``store.contended`` or ``store.unavailable``; other errors pass unchanged."""
    try:
        yield
    except django.db.Error as error:
        refusal = classify(error).as_refusal()
        if refusal is None:
            raise
        raise refusal from error
