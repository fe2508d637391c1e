"""Settings come from the environment, and docs/settings.md names every variable."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import databases
from tests.processes import PROJECT
from workflows.conf import Conf

SHOW = """
import json
from django.conf import settings
database = settings.DATABASES["default"]
print(json.dumps({
    "engine": database["ENGINE"].rpartition(".")[2],
    "name": str(database["NAME"]),
    "options": database["OPTIONS"],
    "atomic": database["ATOMIC_REQUESTS"],
    "embedded": settings.WAYPOST_USES_EMBEDDED_DATABASE,
    "key": settings.SECRET_KEY,
    "zone": [settings.USE_TZ, settings.TIME_ZONE],
}))
"""


def settings_of(var: Path, **environment: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={"DJANGO_SETTINGS_MODULE": "config.settings", "WAYPOST_VAR": str(var), **environment},
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_without_an_environment_there_is_an_embedded_database(tmp_path: Path) -> None:
    found = settings_of(tmp_path / "var")
    assert found == {
        "engine": "sqlite3",
        "name": str(tmp_path / "var" / "waypost.sqlite3"),
        "options": {
            "init_command": "PRAGMA journal_mode=wal;PRAGMA synchronous=FULL",
            "timeout": 30.0,
            "transaction_mode": "IMMEDIATE",
        },
        "atomic": False,
        "embedded": True,
        "key": (tmp_path / "var" / "secret_key").read_text(),
        "zone": [True, "UTC"],
    }


def test_a_web_process_waits_for_two_seconds(tmp_path: Path) -> None:
    options = settings_of(tmp_path / "var", WAYPOST_PROCESS="web")["options"]
    assert isinstance(options, dict)
    assert options["timeout"] == 2.0


def test_a_journal_mode_that_was_chosen_is_kept(tmp_path: Path) -> None:
    options = settings_of(tmp_path / "var", WAYPOST_SQLITE_JOURNAL_MODE="delete")["options"]
    assert isinstance(options, dict)
    assert options["init_command"] == "PRAGMA journal_mode=delete;PRAGMA synchronous=FULL"


def test_options_of_the_address_win_but_writers_still_take_the_lock_at_once() -> None:
    given = {
        "ENGINE": databases.SQLITE,
        "NAME": "/d",
        "OPTIONS": {"init_command": "PRAGMA journal_mode=truncate", "timeout": "7", "transaction_mode": "DEFERRED"},
    }
    assert databases.configure(given, process="web", journal_mode="wal")["OPTIONS"] == {
        "init_command": "PRAGMA journal_mode=truncate",
        "timeout": 7.0,
        "transaction_mode": "IMMEDIATE",
    }


def test_postgresql_is_chosen_by_its_address(tmp_path: Path) -> None:
    found = settings_of(tmp_path / "var", DATABASE_URL="postgres://me@db.example/waypost", SECRET_KEY="given")
    assert (found["engine"], found["name"], found["embedded"], found["key"]) == (
        "postgresql",
        "waypost",
        False,
        "given",
    )
    assert found["options"] == {
        "server_side_binding": True,
        "prepare_threshold": 1,
        "application_name": "waypost",
        "options": "-c lock_timeout=10000 -c statement_timeout=25000 -c idle_in_transaction_session_timeout=15000",
    }


def test_web_processes_share_connections_and_workers_keep_theirs() -> None:
    """A thread that waits for a browser or a long poll holds no connection."""
    address = {"ENGINE": databases.POSTGRESQL, "NAME": "waypost", "OPTIONS": {}}
    web = databases.configure(address, process="web", journal_mode="wal")
    assert (web["OPTIONS"]["pool"], web["CONN_MAX_AGE"]) == (databases.WEB_POOL, 0)
    worker = databases.configure(address, process="command", journal_mode="wal")
    assert ("pool" in worker["OPTIONS"], worker["CONN_MAX_AGE"]) == (False, None)
    given = databases.configure({**address, "OPTIONS": {"pool": False}}, process="web", journal_mode="wal")
    assert (given["OPTIONS"]["pool"], given["CONN_MAX_AGE"]) == (False, 60)


@pytest.mark.parametrize("process", ["web", "command"])
def test_the_limits_of_a_postgresql_session_end_before_a_lease_does(process: str) -> None:
    assert sum(databases.POSTGRESQL_TIMEOUTS_MS[process].values()) < Conf(workspace_root=Path()).lease_ttl_ms


def test_the_defaults_of_the_environment_are_those_of_the_application() -> None:
    source = (PROJECT / "config" / "settings.py").read_text()
    defaults = {
        name.lower(): int(value) for name, value in re.findall(r'env\.int\("WAYPOST_(\w+)", default=([\d_]+)\)', source)
    }
    conf = Conf(workspace_root=Path())
    assert defaults == {name: getattr(conf, name) for name in defaults}
    assert len(defaults) == 9


def test_every_variable_is_documented() -> None:
    source = (PROJECT / "config" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    documented = set(re.findall(r"^\| `([A-Z_]+)(?:<NAME>)?` \|", (PROJECT / "docs" / "settings.md").read_text(), re.M))
    assert read | {"WAYPOST_SECRET_", "SSL_CERT_FILE", "SSL_CERT_DIR"} == documented


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WAYPOST_LEASE_TTL_MS", "abc", 'WAYPOST_LEASE_TTL_MS must be a whole number, but it is "abc".'),
        (
            "DATABASE_URL",
            "mysql://me:secret@db/x",
            'DATABASE_URL must begin with postgres:// or sqlite:///, but it begins with "mysql". '
            "Waypost runs on PostgreSQL and SQLite.",
        ),
        ("WAYPOST_PROCESS", "x", 'WAYPOST_PROCESS must be one of web, command, but it is "x".'),
        ("TIME_ZONE", "Mars", 'TIME_ZONE must be a time zone such as Europe/Vienna, but it is "Mars".'),
    ],
)
def test_a_setting_that_cannot_be_read_is_told_in_two_lines(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    done = manage_py([], WAYPOST_VAR=str(tmp_path), **{name: value})
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [f"error: The settings cannot be used: {message}", "hint: docs/settings.md lists every variable."],
    )


def test_a_python_without_django_is_told_in_two_lines() -> None:
    done = manage_py(["-S", "-I"])
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [
            f"error: Django is not installed for this Python ({sys.executable}).",
            "hint: Run `python3 -m venv .venv && .venv/bin/pip install -e .`, then use `.venv/bin/python manage.py`.",
        ],
    )


def manage_py(options: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, str(PROJECT / "manage.py"), "runs", "list"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


PRODUCTION = {
    "WAYPOST_PROCESS": "web",
    "DATABASE_URL": "postgres://waypost:secret@db.example.com/waypost",
    "SECRET_KEY": "K9!" + "0123456789abcdefghij" * 3,
    "ALLOWED_HOSTS": "waypost.example.com",
    "HTTPS_ONLY": "1",
    "HTTPS_PROXY_HEADER": "X-Forwarded-Proto",
}
SHOW_SECURITY = """
import json
from django.conf import settings
names = ["SECURE_SSL_REDIRECT", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS",
         "SECURE_PROXY_SSL_HEADER", "DEBUG"]
print(json.dumps([getattr(settings, name) for name in names]))
"""


def test_the_documented_settings_of_a_server_leave_nothing_to_complain_about(tmp_path: Path) -> None:
    words = [str(PROJECT / "manage.py"), "check", "--deploy", "--fail-level", "WARNING"]
    done = python(*words, WAYPOST_VAR=str(tmp_path / "var"), **PRODUCTION)
    assert (done.returncode, done.stdout.strip()) == (
        0,
        "System check identified no issues (2 silenced).",
    ), done.stderr


def test_the_documented_settings_are_those_that_are_checked() -> None:
    page = (PROJECT / "docs" / "administer.md").read_text()
    documented = dict(re.findall(r"^export ([A-Z_]+)=(.*)$", page, re.M))
    assert documented.keys() == PRODUCTION.keys()
    assert {name: documented[name] for name in PRODUCTION if name != "SECRET_KEY"} == {
        name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"
    }


def test_https_is_asked_for_by_one_variable(tmp_path: Path) -> None:
    var = str(tmp_path / "var")
    found = [
        json.loads(python("-c", SHOW_SECURITY, WAYPOST_VAR=var, **more).stdout)
        for more in ({}, {"HTTPS_ONLY": "1"}, PRODUCTION)
    ]
    assert found == [
        [False, False, False, 0, None, False],
        [True, True, True, 31_536_000, None, False],
        [True, True, True, 31_536_000, ["HTTP_X_FORWARDED_PROTO", "https"], False],
    ]


def test_pages_on_a_database_of_their_own_need_a_secret_key(tmp_path: Path) -> None:
    without = {name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"}
    done = python(str(PROJECT / "manage.py"), "check", WAYPOST_VAR=str(tmp_path / "var"), **without)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: The settings cannot be used: SECRET_KEY has to be set for pages on a database of their own.",
    )
    assert python("-c", SHOW_SECURITY, WAYPOST_VAR=str(tmp_path / "var"), **{**without, "DEBUG": "1"}).returncode == 0
    assert (
        python(
            "-c", SHOW_SECURITY, WAYPOST_VAR=str(tmp_path / "var"), **{**without, "WAYPOST_PROCESS": "command"}
        ).returncode
        == 0
    )


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={"DJANGO_SETTINGS_MODULE": "config.settings", **environment},
        check=False,
        timeout=60,
    )
