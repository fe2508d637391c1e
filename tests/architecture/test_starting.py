"""What a command takes to start: half a second of imports that it does not need is half a second that a person waits."""

from __future__ import annotations

import pytest

from tests.processes import PROJECT, TIMEOUT_S, Processes
from tests.support.plans import store_plan, workflow

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite")]

#: What no command needs that neither serves pages nor talks to another program.
FOREIGN = frozenset(
    {
        "axes.middleware",
        "celery",
        "croniter",
        "django.contrib.auth.admin",
        "httpx",
        "ninja",
        "playwright",
        "psycopg",
        "rich.console",
        "workflows.admin",
        "workflows.admin.runs",
        "workflows.api",
        "workflows.definitions.models",
        "workflows.definitions.validation",
        "workflows.pages",
        "yaml",
    }
)
#: What only changes runs, or drives them.
MOVING = frozenset({"pydantic", "workflows.engine.driver", "workflows.operations.runs", "workflows.steps"})
DRIVING = "workflows.operations.driving"
STARTED = """
import atexit, sys
atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
sys.argv[0] = "manage.py"
import manage
manage.main()
"""


def imported_by(processes: Processes, *words: str) -> set[str]:
    """Every module that a command has imported when it ends. (Of ``-X importtime`` some are missing.)"""
    done = processes.start_python("-c", STARTED, *words)
    _, stderr = done.communicate(timeout=TIMEOUT_S)
    assert done.returncode == 0, stderr
    return set(stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [("runs", "list"), ("runs", "audit"), ("check_ledger",)], ids=" ".join)
def test_a_command_that_only_looks_imports_nothing_that_moves_runs(
    processes: Processes, words: tuple[str, ...]
) -> None:
    assert sorted(imported_by(processes, *words) & (FOREIGN | MOVING)) == []


def test_a_run_of_a_stored_workflow_needs_no_checks_of_files(processes: Processes) -> None:
    store_plan(workflow("  - { id: work, kind: wait, for: 1ms }", name="demo"), private=False)
    modules = imported_by(processes, "run_workflow", "demo", "--quiet")
    assert DRIVING in modules
    assert sorted(modules & FOREIGN) == []


def test_everything_that_is_slow_to_import_is_there() -> None:
    """A name that nobody has would never be found."""
    own = {name for name in FOREIGN | MOVING if name.startswith("workflows.")}
    missing = [
        name
        for name in sorted(own)
        if not any((PROJECT / name.replace(".", "/")).with_suffix(suffix).exists() for suffix in ("", ".py"))
    ]
    assert missing in ([], ["workflows.api"])
