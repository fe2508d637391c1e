"""The database clock: integer Unix milliseconds, the only clock that decides about leases.

``DatabaseNow`` is an expression for the ORM, ``NOW_MS`` the same as SQL text for each database. On PostgreSQL it is
``clock_timestamp()``, since statement time is stale after a lock wait. On SQLite the time is constant within one
statement. There is no ``%`` in the text: placeholders would eat it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Func
from django.db.models.sql.compiler import SQLCompiler

#: SQL text of the clock by vendor (``connection.vendor``).
NOW_MS: dict[str, str] = {
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    "postgresql": "(extract(epoch from clock_timestamp()) * 1000)::bigint",
}


class DatabaseNow(Func):
    """The database's present moment in Unix milliseconds, for ``filter``, ``update``, ``annotate`` and ``create``."""

    output_field = BigIntegerField()  # type: ignore[assignment]  # declared the way Django's own functions do
    arity = 0

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template=NOW_MS["sqlite"], **extra)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template=NOW_MS["postgresql"], **extra)


def database_now_ms(using: str = DEFAULT_DB_ALIAS) -> int:
    """The database's present moment in Unix milliseconds. One round trip."""
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW_MS[connection.vendor]}")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def moment(unix_ms: int) -> datetime:
    """``unix_ms`` as an aware datetime in UTC.

    >>> moment(1_500).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    seconds, milliseconds = divmod(unix_ms, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=milliseconds * 1000)


def unix_ms(at: datetime) -> int:
    """Whole Unix milliseconds of an aware datetime, rounded down.

    >>> unix_ms(moment(1_700_000_000_123))
    1700000000123
    """
    if at.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    passed = at - datetime.fromtimestamp(0, UTC)
    return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds // 1000
