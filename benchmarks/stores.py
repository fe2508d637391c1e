"""Databases that live as long as one measurement: a SQLite file in ``var``, or a database on a PostgreSQL server."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checks.postgresql import find_server

PROJECT = Path(__file__).resolve().parent.parent
VENDORS = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """``directory`` is private to the measurement; ``path`` is the SQLite file, ``url`` the PostgreSQL database."""

    vendor: str
    directory: str
    path: str = ""
    url: str = ""

    @property
    def database_url(self) -> str:
        """As ``DATABASE_URL`` takes it."""
        return f"sqlite:///{self.path}" if self.vendor == "sqlite" else self.url


def find_postgresql() -> str | None:
    """A server on which databases may be made (``WAYPOST_TEST_DATABASE_URL`` names one); None without any."""
    return find_server()


@contextmanager
def temporary(vendor: str, server: str | None) -> Iterator[Store]:
    """An empty database, gone afterwards. The file lies on the disk of the project, as the embedded database does."""
    directory = PROJECT / "var" / "benchmarks" / uuid.uuid4().hex[:12]
    directory.mkdir(mode=0o700, parents=True)
    try:
        if vendor == "sqlite":
            yield Store(vendor=vendor, directory=str(directory), path=str(directory / "store.sqlite3"))
        else:
            assert server is not None
            with _database(server) as url:
                yield Store(vendor=vendor, directory=str(directory), url=url)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _database(server: str) -> Iterator[str]:
    import psycopg

    name = f"waypost_benchmark_{uuid.uuid4().hex[:12]}"
    address = server.replace("postgres://", "postgresql://", 1)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            head, _, query = address.partition("?")
            base = head.rpartition("/")[0]
            yield f"{base}/{name}" + (f"?{query}" if query else "")
        finally:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
