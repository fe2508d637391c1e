"""The tables of the embedded database, made and migrated by the command that needs them (MIG.2).

On SQLite ``ensure_schema`` applies what is missing, under a file lock and in one transaction: of two processes that
start at once one applies, the other waits and finds nothing to do, and a migration that fails leaves nothing behind.
On PostgreSQL nothing migrates by itself.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from workflows.errors import Refusal
from workflows.stores import files
from workflows.stores.failures import store_failures_as_refusals
from workflows.stores.schema_state import SchemaReport, SchemaState, schema_state

logger = logging.getLogger(__name__)

#: How long another process may take to migrate before this one gives up, in seconds.
MIGRATION_WAIT_S = 120.0
_PAUSE_S = 0.02
_warned: set[str] = set()


def ensure_schema(using: str = DEFAULT_DB_ALIAS) -> SchemaReport:
    """See to it that the tables are those of this code, and say what was found before.

    1. Current: nothing. Newer: one warning per process, nothing is applied.
    2. Old, on SQLite: take the lock, look again, apply everything that is missing in one transaction.

    Raises ``schema.behind`` (PostgreSQL; or a migration failed and was undone), ``schema.inconsistent``,
    ``store.contended`` and ``store.unavailable``.
    """
    connection = connections[using]
    with store_failures_as_refusals():
        if connection.vendor == "sqlite" and (path := _file_of(connection)) is not None:
            files.prepare_private_file(path)
        report = _usable_or_refused(schema_state(using), using)
        if report.state is not SchemaState.OLD:
            return report
        if connection.vendor != "sqlite":
            raise report.as_refusal()
        with _migration_lock(_file_of(connection)):
            report = _usable_or_refused(schema_state(using), using)
            if report.state is SchemaState.OLD:
                _migrate(connection, report)
        return report


def _usable_or_refused(report: SchemaReport, using: str) -> SchemaReport:
    if report.state is SchemaState.INCONSISTENT:
        raise report.as_refusal()
    if report.state is SchemaState.NEWER and using not in _warned:
        _warned.add(using)
        logger.warning("%s", report.describe())
    return report


def _file_of(connection: BaseDatabaseWrapper) -> Path | None:
    name = str(connection.settings_dict["NAME"])
    return None if ":memory:" in name or name.startswith("file:") else Path(name)


def _migrate(connection: BaseDatabaseWrapper, report: SchemaReport) -> None:
    """Apply everything in one transaction. Foreign keys cannot be switched inside of it, so they are off before."""
    connection.disable_constraint_checking()
    try:
        with store_failures_as_refusals(), transaction.atomic(using=connection.alias, durable=True):
            call_command("migrate", database=connection.alias, verbosity=0, interactive=False, skip_checks=True)
            connection.check_constraints()
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(
            "schema.behind",
            state="empty" if report.is_empty else "old",
            detail=f"migrating it failed and was undone: {type(error).__name__}: {error}",
        ) from error
    finally:
        connection.enable_constraint_checking()


@contextmanager
def _migration_lock(database: Path | None) -> Iterator[None]:
    if database is None:
        yield
        return
    path = f"{database}-migrate"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, files.PRIVATE_FILE)
    except OSError as error:
        raise Refusal(
            "store.unavailable",
            detail=f"{path} cannot be opened ({error.strerror})",
            advice="Make the directory of the database writable for this user.",
        ) from error
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + MIGRATION_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Refusal("store.contended", detail="another process has been migrating it for too long") from None
            time.sleep(_PAUSE_S)
        else:
            return
