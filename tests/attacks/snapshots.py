"""Every row of the product as the database returns it: quick to take, since attacks take one after each death."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.db import connection

Snapshot = dict[str, list[tuple[Any, ...]]]


def snapshot() -> Snapshot:
    """The rows of every table, by table, in an order of their own: values on SQLite, their text on PostgreSQL, which
    then is asked once instead of once for each table."""
    tables = {model.__name__: model._meta.db_table for model in apps.get_app_config("workflows").get_models()}
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            return _in_one_statement(cursor, tables)
        found: Snapshot = {}
        for name, table in tables.items():
            cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
            found[name] = cursor.fetchall()
    return found


def _in_one_statement(cursor: Any, tables: Mapping[str, str]) -> Snapshot:
    questions = (f"SELECT '{name}', rows::text FROM {table} AS rows" for name, table in tables.items())
    cursor.execute(" UNION ALL ".join(questions))
    found: Snapshot = {name: [] for name in tables}
    for name, text in cursor.fetchall():
        found[name].append((text,))
    return {name: sorted(rows) for name, rows in found.items()}
