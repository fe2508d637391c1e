"""Finds a PostgreSQL server that the tests may use: it must let this user create databases."""

from __future__ import annotations

import os

#: Tried in this order when ``WAYPOST_TEST_DATABASE_URL`` is not set. Variables like PGHOST and PGUSER apply.
LOCAL_SERVERS = (
    "postgres:///postgres",
    "postgres://postgres@/postgres",
    "postgres://postgres@127.0.0.1/postgres",
)
_MAY_CREATE = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"


def find_server() -> str | None:
    """The address of a usable server, None if there is none."""
    given = os.environ.get("WAYPOST_TEST_DATABASE_URL")
    candidates = (given,) if given else LOCAL_SERVERS
    return next((url for url in candidates if _is_usable(url)), None)


def _is_usable(url: str) -> bool:
    try:
        import psycopg
    except ImportError:
        return False
    try:
        # libpq's name of the scheme
        with psycopg.connect(url.replace("postgres://", "postgresql://", 1), connect_timeout=3) as connection:
            return connection.execute(_MAY_CREATE).fetchone() == (True,)
    except psycopg.Error:
        return False
