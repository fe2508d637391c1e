"""The database configuration: the embedded SQLite file by default, PostgreSQL when ``DATABASE_URL`` says so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "django.db.backends.postgresql"

#: Seconds that a process of each sort waits for a lock. Pages answer soon, workers and commands wait.
LOCK_WAIT_S = {"web": 2, "command": 30}

#: Timeouts of one PostgreSQL session in milliseconds. Their sum stays below the life of a lease (60 s): a worker that
#: freezes inside a transaction has lost its locks before another one may take its run over.
POSTGRESQL_TIMEOUTS_MS = {
    "web": {"lock_timeout": 2_000, "statement_timeout": 20_000, "idle_in_transaction_session_timeout": 15_000},
    "command": {"lock_timeout": 10_000, "statement_timeout": 25_000, "idle_in_transaction_session_timeout": 15_000},
}

#: Connections of one web process to PostgreSQL, shared by its threads: most of them wait for a browser, a long poll or
#: a lock at any moment. One is lent for a request, or for one look of a long poll. ``timeout`` is in seconds.
WEB_POOL = {"min_size": 1, "max_size": 16, "timeout": 10}


def configure(database: dict[str, Any], *, process: str, journal_mode: str) -> dict[str, Any]:
    """``database`` (as parsed from a URL) with what Waypost needs of it; options that were given explicitly stay.

    ``process`` is ``web`` or ``command``. ``journal_mode`` is SQLite's.
    """
    options = dict(database.get("OPTIONS") or {})
    if database["ENGINE"] == SQLITE:
        options = _sqlite_options(options, process=process, journal_mode=journal_mode)
        if database["NAME"] != ":memory:":
            database = {**database, "NAME": str(Path(database["NAME"]).absolute())}
    elif database["ENGINE"] == POSTGRESQL:
        options = _postgresql_options(options, process=process)
    kept_s = 60 if process == "web" else None
    return {
        # what a pool lends is given back after each request
        "CONN_MAX_AGE": 0 if options.get("pool") else kept_s,
        "CONN_HEALTH_CHECKS": process == "web",
        **database,
        "ATOMIC_REQUESTS": False,
        "OPTIONS": options,
    }


def _sqlite_options(given: dict[str, Any], *, process: str, journal_mode: str) -> dict[str, Any]:
    wait = given.pop("timeout", LOCK_WAIT_S[process])
    return {
        "init_command": f"PRAGMA journal_mode={journal_mode};PRAGMA synchronous=FULL",
        **given,
        "timeout": float(wait),
        "transaction_mode": "IMMEDIATE",
    }


def _postgresql_options(given: dict[str, Any], *, process: str) -> dict[str, Any]:
    if importlib.util.find_spec("psycopg") is None:
        raise ImproperlyConfigured("PostgreSQL needs its driver: pip install 'waypost[postgres]'.")
    timeouts = " ".join(f"-c {name}={value}" for name, value in POSTGRESQL_TIMEOUTS_MS[process].items())
    spelled = given.pop("options", "")
    has_pool = process == "web" and importlib.util.find_spec("psycopg_pool") is not None
    return {
        **({"pool": dict(WEB_POOL)} if has_pool else {}),
        "server_side_binding": True,
        "prepare_threshold": 1,
        "application_name": "waypost",
        **given,
        # later settings win, so what the address says comes last
        "options": f"{timeouts} {spelled}".strip(),
    }
