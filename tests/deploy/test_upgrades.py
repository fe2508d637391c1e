"""An upgrade while runs go on: old and new code side by side on one database, and tables of an older version (MIG 3–5).

The next version (``tests.deploy.newer``) is this one with one migration and one column more, in tables that are written
with every step. So this version is the old one: it never heard of them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

from tests.deploy.versions import NEXT, Installation, installation
from workflows.statuses import RunStatus

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = """
format: 1
name: small
steps:
  - { id: first, kind: shell, access: read, run: "true" }
  - { id: second, kind: shell, access: read, run: "true" }
"""
ASKS = """
format: 1
name: asks
steps:
  - { id: ask, kind: question, ask: "Well?" }
  - { id: work, kind: shell, access: read, run: "true" }
"""
FAILS = """
format: 1
name: fails
steps:
  - { id: work, kind: shell, access: read, run: 'test -e mended', cwd: "." }
"""
#: Two runs at once, each of which waits until the other one has begun: both versions are at work at the same moment.
MEETS = """
format: 1
name: meets
params: { mine: { type: string }, other: { type: string } }
steps:
  - { id: first, kind: shell, access: read, run: "true" }
  - id: meet
    kind: shell
    access: read
    timeout: 60s
    env: { MINE: "${ params.mine }", OTHER: "${ params.other }" }
    run: 'touch "$MINE"; until [ -e "$OTHER" ]; do sleep 0.05; done'
  - { id: last, kind: shell, access: read, run: "true" }
"""

STATUSES = """
from workflows.models import Run
print(json.dumps(dict(Run.objects.values_list("pk", "status"))))
"""
REMARKS = """
from workflows.models import Run, Visit
print(json.dumps([list(Run.objects.order_by("pk").values_list("remark", flat=True)),
                  sorted(set(Visit.objects.filter(run=given).values_list("remark", flat=True)))]))
"""


def statuses(place: Installation, version: str = NEXT) -> dict[str, str]:
    return place.script(STATUSES, version=version)


def files(folder: Path) -> None:
    for name, text in {"small": SMALL, "asks": ASKS, "fails": FAILS, "meets": MEETS}.items():
        (folder / f"{name}.yaml").write_text(text)


def test_old_and_new_code_drive_runs_side_by_side_on_one_database(store: str, tmp_path: Path) -> None:
    """MIG.4: the tables are new before the first new process; old ones go on, and neither disturbs the other."""
    files(tmp_path)
    with installation(store, tmp_path) as place:
        place.manage("migrate", "-v0")
        place.manage("run_workflow", "asks.yaml", "--quiet", code=3)
        place.manage("run_workflow", "asks.yaml", "--quiet", code=3)
        place.manage("run_workflow", "fails.yaml", "--quiet", code=1)
        before = statuses(place, "config.settings")
        assert before == {"1": "paused", "2": "paused", "3": "failed"}

        place.manage("migrate", "-v0", version=NEXT)

        assert statuses(place) == before
        assert "waypost.W004" in place.manage("check", "--database", "default")
        _drive_at_once(place, tmp_path)
        # each answers and drives on what the old one parked; the old one starts anew on new tables
        place.manage("runs", "answer", "1", "v1", "--field", "answer=yes")
        place.manage("run_workflow", "1", "--quiet")
        place.manage("runs", "answer", "2", "v1", "--field", "answer=yes", version=NEXT)
        place.manage("run_workflow", "2", "--quiet", version=NEXT)
        place.manage("run_workflow", "small.yaml", "--quiet")
        place.manage("run_workflow", "small.yaml", "--quiet", version=NEXT)

        assert set(statuses(place).values()) == {"succeeded", "failed"}
        for version in ("config.settings", NEXT):
            place.manage("check_ledger", version=version)
        remarks, of_visits = place.script(REMARKS, version=NEXT, given=1)
        assert (remarks[5], remarks[6], of_visits) == ("by old code", "written by new code", ["by old code"])


def _drive_at_once(place: Installation, folder: Path) -> None:
    one, other = str(folder / "one"), str(folder / "other")
    words = ("run_workflow", "meets.yaml", "--quiet", "-P")
    started = [
        place.start(*words, f"mine={one}", "-P", f"other={other}"),
        place.start(*words, f"mine={other}", "-P", f"other={one}", version=NEXT),
    ]
    printed = [process.communicate(timeout=90)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], printed


def test_a_worker_of_each_version_takes_runs_from_one_queue(store: str, tmp_path: Path) -> None:
    """MIG.4: an old worker is told to stop, a new one goes on with what it handed back."""
    files(tmp_path)
    with installation(store, tmp_path) as place:
        place.manage("migrate", "-v0", version=NEXT)
        numbers = place.script(_START, given=[SMALL, 12])
        workers = [place.start("run_worker", "--burst"), place.start("run_worker", "--burst", version=NEXT)]
        for worker in workers:
            assert worker.communicate(timeout=90)
            assert worker.returncode == 0
        assert statuses(place) == dict.fromkeys(map(str, numbers), "succeeded")
        place.manage("check_ledger")


_START = """
from tests.support.plans import publish_run
text, count = given
print(json.dumps([publish_run(text) for _ in range(count)]))
"""


def test_code_refuses_the_tables_of_an_older_version(store: str, tmp_path: Path) -> None:
    """MIG.1: so tables come first and code second."""
    with installation(store, tmp_path) as place:
        place.manage("migrate", "-v0")
        done: subprocess.CompletedProcess[str] = place.python(
            "-c",
            "import django; django.setup(); from workflows.stores.schema_state import schema_state; "
            "print(schema_state().state.value)",
            version=NEXT,
        )
        assert (done.stdout, done.returncode) == ("old\n", 0)


# ---- tables of the first release -------------------------------------------------------------------------------------

OLDEST = "0004_indexes"
COLUMNS = """
from django.core.management import call_command
from django.db import connection
call_command("migrate", "auth", verbosity=0)
call_command("migrate", "workflows", given, verbosity=0)
with connection.cursor() as cursor:
    found = {name: [one.name for one in connection.introspection.get_table_description(cursor, name)]
             for name in connection.introspection.table_names(cursor) if name.startswith("workflows_")}
print(json.dumps(found))
"""
INSERT = """
from django.db import connection, transaction
with connection.constraint_checks_disabled(), transaction.atomic(), connection.cursor() as cursor:
    for table, (columns, rows) in given.items():
        names = ", ".join(f'"{name}"' for name in columns)
        places = ", ".join(["%s"] * len(columns))
        for row in rows:
            cursor.execute(f'INSERT INTO {table} ({names}) VALUES ({places})', row)
    if connection.vendor == "postgresql":
        for table, (columns, rows) in given.items():
            if "id" in columns:
                cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")
"""


def test_live_parked_and_failed_runs_outlive_every_migration_there_is(store: str, tmp_path: Path) -> None:
    """MIG.3: rows as the first release had them, the tables of today; no run changes, and each goes on."""
    files(tmp_path)
    with installation(store, tmp_path) as source, installation(store, tmp_path) as place:
        source.manage("migrate", "-v0")
        source.manage("run_workflow", "asks.yaml", "--quiet", code=3)
        source.manage("run_workflow", "fails.yaml", "--quiet", code=1)
        source.script(_START, given=[SMALL, 1])
        rows = source.script(ALL_ROWS)
        columns = place.script(COLUMNS, given=OLDEST)
        place.script(INSERT, given=_as_they_were(rows, columns))

        place.manage("migrate", "-v0")

        assert statuses(place, "config.settings") == {"1": "paused", "2": "failed", "3": "queued"}
        assert place.script(EVENTS) == source.script(EVENTS)
        place.manage("check_ledger")
        place.manage("runs", "answer", "1", "v1", "--field", "answer=yes")
        place.manage("run_worker", "--burst", "--quiet")
        assert statuses(place, "config.settings") == {"1": "succeeded", "2": "failed", "3": "succeeded"}
        place.manage("check_ledger")


ALL_ROWS = """
from django.db import connection
found = {}
with connection.cursor() as cursor:
    for name in connection.introspection.table_names(cursor):
        if name.startswith("workflows_"):
            cursor.execute(f"SELECT * FROM {name}")
            rows = [[cell if isinstance(cell, (int, str, type(None))) else str(cell) for cell in row] for row in cursor]
            found[name] = [[one[0] for one in cursor.description], rows]
print(json.dumps(found))
"""
EVENTS = """
from workflows.models import Event
print(json.dumps(list(Event.objects.order_by("run", "sequence").values_list("run", "sequence", "type", "payload"))))
"""


def _as_they_were(rows: dict[str, Any], columns: dict[str, list[str]]) -> dict[str, Any]:
    """The rows of the tables and columns that there were."""
    kept = {}
    for table, (names, found) in rows.items():
        if found and table in columns:
            places = [place for place, name in enumerate(names) if name in columns[table]]
            kept[table] = [[names[place] for place in places], [[row[place] for place in places] for row in found]]
    return kept


# ---- the rules -------------------------------------------------------------------------------------------------------

#: What takes something away, or changes what is there, which old code would notice.
_CONTRACTS = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterField,
)


def later_migrations() -> list[migrations.Migration]:
    loader = MigrationLoader(connection)
    return [one for (app, name), one in sorted(loader.disk_migrations.items()) if app == "workflows" and name > OLDEST]


def test_every_migration_only_expands() -> None:
    """MIG.5: nothing goes or is renamed, and what is new in an old table may be left out by old code."""
    made: set[str] = set()
    problems = []
    for migration in later_migrations():
        for operation in migration.operations:
            where = f"{migration.name}: {operation.describe()}"
            if isinstance(operation, migrations.CreateModel):
                made.add(operation.name.lower())
            elif isinstance(operation, _CONTRACTS) and operation.model_name_lower not in made:
                problems.append(where)
            elif isinstance(operation, migrations.AddField) and operation.model_name_lower not in made:
                field = operation.field
                if not field.null and field.db_default is NOT_PROVIDED and not field.many_to_many:
                    problems.append(where)
    assert problems == []


def test_statuses_of_runs_only_grow() -> None:
    """MIG.5: a status that the first release wrote is known for ever."""
    first = {"queued", "running", "waiting", "paused", "blocked", "succeeded", "failed", "cancelled", "abandoned"}
    assert first <= set(RunStatus)
