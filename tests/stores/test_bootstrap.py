"""MIG.2: the embedded database is made by whoever needs it first, once, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.processes import Processes

BOOTSTRAP = """
import json, sys
from django.conf import settings
from workflows.errors import Refusal
from workflows.stores.bootstrap import ensure_schema
from workflows.stores.schema_state import schema_state
if len(sys.argv) > 1:
    settings.MIGRATION_MODULES = {"workflows": sys.argv[1]}
try:
    answer = {"before": ensure_schema().state.value, "after": schema_state().state.value}
except Refusal as refusal:
    answer = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
print(json.dumps(answer))
"""

FIRST = """
from django.db import migrations
class Migration(migrations.Migration):
    operations = [migrations.RunSQL("CREATE TABLE first_table (id integer primary key)")]
"""
SECOND = """
from django.db import migrations
def fail(apps, schema_editor):
    raise LookupError("made to fail")
class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_first")]
    operations = [migrations.RunPython(fail)]
"""
DANGLING = """
from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_first")]
    operations = [
        migrations.RunSQL("CREATE TABLE child (id integer primary key, parent integer REFERENCES first_table(id))"),
        migrations.RunSQL("INSERT INTO child VALUES (1, 42)"),
    ]
"""


@pytest.fixture
def bootstrap() -> object:
    started = Processes()
    yield started
    started.close()


def begin(bootstrap: Processes, database: Path, *words: str, path: str = "") -> object:
    env = {"DATABASE_URL": f"sqlite:///{database}", "WAYPOST_VAR": str(database.parent / "var")}
    if path:
        env["PYTHONPATH"] = path
    return bootstrap.start_script(BOOTSTRAP, *words, env=env)


def answer_of(process: object) -> dict[str, str]:
    output, errors = process.communicate(timeout=60)
    assert errors == ""
    return json.loads(output)


def tables_of(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    finally:
        connection.close()


def write_migrations(directory: Path, second: str) -> str:
    package = directory / "other_migrations"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "0001_first.py").write_text(FIRST)
    (package / "0002_second.py").write_text(second)
    return str(directory)


def test_processes_that_start_at_once_share_one_bootstrap(bootstrap: Processes, tmp_path: Path) -> None:
    database = tmp_path / "new" / "waypost.sqlite3"
    answers = [answer_of(process) for process in [begin(bootstrap, database) for _ in range(3)]]
    assert answers == [{"before": answer["before"], "after": "current"} for answer in answers]
    assert {answer["before"] for answer in answers} <= {"old", "current"}
    connection = sqlite3.connect(database)
    applied = connection.execute("SELECT app, name, count(*) FROM django_migrations GROUP BY 1, 2").fetchall()
    mode = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    assert {count for _, _, count in applied} == {1}
    assert mode == ("wal",)


def test_what_the_bootstrap_makes_is_private(bootstrap: Processes, tmp_path: Path) -> None:
    database = tmp_path / "new" / "waypost.sqlite3"
    assert answer_of(begin(bootstrap, database)) == {"before": "old", "after": "current"}
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in database.parent.iterdir() if path.is_file()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700


def test_a_failing_migration_leaves_nothing_of_this_call(bootstrap: Processes, tmp_path: Path) -> None:
    database = tmp_path / "waypost.sqlite3"
    path = write_migrations(tmp_path, SECOND)
    assert answer_of(begin(bootstrap, database, "other_migrations", path=path)) == {
        "code": "schema.behind",
        "message": "The database is empty: migrating it failed and was undone: LookupError: made to fail",
        "hint": "Run `python manage.py migrate`.",
    }
    assert tables_of(database) == []


def test_foreign_keys_are_checked_before_the_commit(bootstrap: Processes, tmp_path: Path) -> None:
    database = tmp_path / "waypost.sqlite3"
    path = write_migrations(tmp_path, DANGLING)
    answer = answer_of(begin(bootstrap, database, "other_migrations", path=path))
    assert answer["code"] == "schema.behind"
    assert "IntegrityError" in answer["message"]
    assert tables_of(database) == []


def test_a_file_that_is_no_database_is_a_refusal_with_advice(bootstrap: Processes, tmp_path: Path) -> None:
    database = tmp_path / "waypost.sqlite3"
    database.write_bytes(b"not a database, but long enough to look like one " * 100)
    assert answer_of(begin(bootstrap, database)) == {
        "code": "store.unavailable",
        "message": "The database cannot be used: the file is not an SQLite database.",
        "hint": "Restore it from a backup, or move it away to start with an empty one.",
    }


def test_a_place_where_no_file_can_be_is_a_refusal_with_advice(bootstrap: Processes, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert answer_of(begin(bootstrap, tmp_path / "file" / "waypost.sqlite3")) == {
        "code": "store.unavailable",
        "message": "The database cannot be used: the file cannot be opened.",
        "hint": "Check that its directory exists and that this user may write there.",
    }
