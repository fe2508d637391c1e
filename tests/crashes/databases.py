"""A database for one use of the kit, and the settings its drivers live under."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from checks.postgresql import find_server

#: Nobody waits for a dead driver's lease: the kit ends it. So it lives as long as it does in production.
TTL_MS = 60_000


@contextmanager
def private_database(store: str, url: str | None) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """A directory, and the environment in which Django finds an empty database (or the one at ``url``).

    Raises ``SystemExit`` when there is no PostgreSQL server.
    """
    with tempfile.TemporaryDirectory(prefix="waypost-crashes-", dir=_memory()) as name:
        directory = Path(name)
        environment = {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "SECRET_KEY": "only for tests",
            "WAYPOST_VAR": str(directory / "var"),
            "WAYPOST_LEASE_TTL_MS": str(TTL_MS),
            "WAYPOST_HEARTBEAT_MS": str(TTL_MS // 3),
            "WAYPOST_EFFECT_THREADS": "4",
        }
        if url is not None:
            yield directory, {**environment, "DATABASE_URL": url}
        elif store == "sqlite":
            yield directory, {**environment, "DATABASE_URL": f"sqlite:///{directory / 'crashes.sqlite3'}"}
        else:
            with _postgresql_database() as made:
                yield directory, {**environment, "DATABASE_URL": made}


def _memory() -> str | None:
    """A directory in memory where there is one: what a killed process has written does not depend on the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


@contextmanager
def _postgresql_database() -> Iterator[str]:
    import psycopg

    server = find_server()
    if server is None:
        raise SystemExit("No PostgreSQL server was found; WAYPOST_TEST_DATABASE_URL may name one.")
    name = f"waypost_crashes_{uuid.uuid4().hex[:10]}"
    address = server.replace("postgres://", "postgresql://", 1)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        # drivers are killed here, never the server: what it was told to commit need not wait for the disk
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def prepare(environment: Mapping[str, str], *, is_new: bool) -> None:
    """Set Django up on the database, with its tables."""
    os.environ.update(environment)
    import django

    django.setup()
    if is_new:
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
