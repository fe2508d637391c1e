"""What a person should know about a database that cannot be used: which file it is, or what the server lacks."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from workflows.errors import Refusal

#: Every server has this database; it is asked which others there are.
_MAINTENANCE = "postgres"
_CONNECT_TIMEOUT_S = 5


def explained(refusal: Refusal, using: str = DEFAULT_DB_ALIAS) -> Refusal:
    """``store.unavailable`` in more words, every other refusal as it is. May ask the server."""
    if refusal.code != "store.unavailable":
        return refusal
    connection = connections[using]
    detail, advice = str(refusal.data["detail"]), str(refusal.data.get("advice", ""))
    if connection.vendor == "sqlite":
        file = str(connection.settings_dict["NAME"])
        return refusal if file in detail else Refusal(refusal.code, detail=f"{detail} ({file})", advice=advice)
    if connection.connection is None and _lacks_database(connection.settings_dict):
        name = connection.settings_dict["NAME"]
        advice = f"Create it (`createdb {name}` on the server), or correct DATABASE_URL."
        return Refusal(refusal.code, detail=f'the server has no database "{name}"', advice=advice)
    return refusal


def _lacks_database(settings: dict[str, Any]) -> bool:
    """Whether the server answers and has no database of this name. A failed connection has no code that says so."""
    import psycopg  # an extra; whoever has a server has it

    words = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    given: dict[str, Any] = {name: str(settings[key]) for name, key in words.items() if settings.get(key)}
    try:
        with psycopg.connect(dbname=_MAINTENANCE, connect_timeout=_CONNECT_TIMEOUT_S, **given) as server:
            row = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [settings["NAME"]]).fetchone()
    except psycopg.Error:
        return False
    return row is None
