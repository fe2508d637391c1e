"""The databases of the test run: emptied quickly after each test, and reachable from other processes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from django.db import connection, connections, transaction

#: What migrations and Django put into a new database; a test that changed it gets it back.
_baseline: dict[str, list[tuple[Any, ...]]] = {}


def _tables() -> list[str]:
    return [name for name in connection.introspection.table_names() if name != "django_migrations"]


def _rows(table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} ORDER BY 1")
        return [tuple(row) for row in cursor.fetchall()]


def _tables_with_rows(tables: list[str]) -> list[str]:
    questions = " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {connection.ops.quote_name(table)})" for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(questions)
        return [name for (name,) in cursor.fetchall()]


def hurry() -> None:
    """A database that lives as long as its tests need not survive a loss of power: no commit waits for the disk.

    That of SQLite is opened so (``tests/settings.py``).
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            name = connection.ops.quote_name(str(connection.settings_dict["NAME"]))
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit TO off")
        connection.close()


def remember_baseline() -> None:
    """Note what a freshly migrated database holds."""
    _baseline.clear()
    _baseline.update({table: _rows(table) for table in _tables_with_rows(_tables())})


def wipe() -> None:
    """Back to the baseline: one transaction over the tables that hold rows, instead of Django's flush of all."""
    filled = _tables_with_rows(_tables())
    stale = [table for table in filled if table not in _baseline or _rows(table) != _baseline[table]]
    missing = [table for table in _baseline if table not in filled]
    if not stale and not missing:
        return
    with connection.constraint_checks_disabled(), transaction.atomic(), connection.cursor() as cursor:
        for table in stale:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
        for table in [*stale, *missing]:
            if rows := _baseline.get(table):
                places = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {connection.ops.quote_name(table)} VALUES ({places})", rows)
    for other in connections.all(initialized_only=True):
        other.close_if_unusable_or_obsolete()


def test_database_url() -> str:
    """``DATABASE_URL`` for another process that shall use the database of this test."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    place = f"{quote(found['HOST'] or '', safe='')}:{found['PORT']}" if found["PORT"] else quote(found["HOST"] or "")
    person = ":".join(quote(part, safe="") for part in (found["USER"], found["PASSWORD"]) if part)
    return f"postgres://{person}{'@' if person else ''}{place}/{found['NAME']}"


test_database_url.__test__ = False  # type: ignore[attr-defined]
