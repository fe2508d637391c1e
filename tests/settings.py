"""Settings of the tests: a database of their own with a new name in every run, and everything else as shipped.

``WAYPOST_TEST_DATABASE_URL`` (or ``pytest --store postgresql``) selects PostgreSQL; the default is an SQLite file.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

from checks.postgresql import find_server

RUN = (os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex)[:10]
DIRECTORY = Path(tempfile.gettempdir()) / f"waypost-tests-{os.getuid()}-{RUN}-{os.getpid()}"


def _wanted_database() -> str:
    """The address of the server that tests use, empty for SQLite. The option is read here since settings come first."""
    words = " ".join(sys.argv).replace("=", " ").split()
    chosen = words[words.index("--store") + 1] if "--store" in words[:-1] else None
    if chosen == "sqlite":
        os.environ.pop("WAYPOST_TEST_DATABASE_URL", None)
    if url := os.environ.get("WAYPOST_TEST_DATABASE_URL"):
        return url
    if chosen == "postgresql":
        server = find_server()
        if server is None:
            raise SystemExit("No PostgreSQL server was found; WAYPOST_TEST_DATABASE_URL may name one.")
        os.environ["WAYPOST_TEST_DATABASE_URL"] = server  # worker processes of xdist inherit it
        return server
    return ""


DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
atexit.register(shutil.rmtree, DIRECTORY, ignore_errors=True)

_url = _wanted_database()
os.environ["WAYPOST_VAR"] = str(DIRECTORY / "var")
os.environ["SECRET_KEY"] = "only for tests"
os.environ["DATABASE_URL"] = _url or f"sqlite:///{DIRECTORY / 'unused.sqlite3'}"

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

DATABASES["default"]["TEST"] = {"NAME": f"waypost_test_{RUN}" if _url else str(DIRECTORY / "test.sqlite3")}
DATABASES["default"]["CONN_MAX_AGE"] = 0
if not _url:
    # a database that lives as long as its tests need not survive a loss of power; what is killed here are processes
    _options = DATABASES["default"]["OPTIONS"]
    _options["init_command"] = _options["init_command"].replace("synchronous=FULL", "synchronous=OFF")
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
