"""``prune_runs`` and ``runs keep``, as an operator uses them (promise REV.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.support import manage, workflow_file
from tests.pruning.test_pruning import family, finished, numbers, remove
from tests.support.plans import publish_run, workflow
from workflows.models import AuditEntry, Payload

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dry_run_counts_and_says_why_runs_stay() -> None:
    """REV.4"""
    finished(), finished()
    family()
    held = finished(name="other")
    publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    assert manage("runs", "keep", str(held), "--reason", "the auditors ask").code == 0
    before = numbers()
    told = manage("prune_runs", "--keep", "0", "--dry-run")
    assert (told.code, told.lines) == (
        0,
        [
            "3 runs would be removed, with 1 child run.",
            "    demo: 2",
            "    parent: 1",
            "2 runs kept:",
            "    not ended: 1",
            "    on audit hold: 1",
        ],
    )
    assert numbers() == before
    assert manage("prune_runs", "--keep", "1", "--dry-run", "--json").json == {
        "dry_run": True,
        "runs": 1,
        "children": 0,
        "by_workflow": {"demo": 1},
        "payloads": 0,
        "plans": 0,
        "kept": {"live": 1, "newest": 3},
    }


def test_nothing_is_removed_without_a_yes() -> None:
    """REV.4"""
    finished()
    refused = manage("prune_runs", "--older-than", "0s")
    assert (refused.code, refused.err) == (
        2,
        "error: 1 run would be removed, and nobody can be asked.\n"
        "hint: `--yes` removes them, `--dry-run` shows what would go.\n",
    )
    assert len(numbers()) == 1
    done = manage("prune_runs", "--older-than", "0s", "--yes")
    assert (done.code, done.lines[0], numbers()) == (0, "1 run removed.", set())
    again = manage("prune_runs", "--older-than", "0s", "--yes")
    assert (again.code, again.lines) == (0, ["0 runs removed."])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "error: It needs a rule: an age, or how many runs of each workflow stay."),
        (("--keep", "1", "--workflow", "nothing"), "error: There is no workflow nothing."),
    ],
)
def test_a_rule_that_cannot_be_meant_is_told(words: tuple[str, ...], error: str) -> None:
    answer = manage("prune_runs", *words, "--yes")
    assert (answer.code, answer.err.splitlines()[0]) == (2, error)


def test_leftovers_of_a_prune_that_was_cut_short_go_by_command() -> None:
    """REV.4"""
    remove(finished("left behind"))
    count = Payload.objects.count()
    told = manage("prune_runs", "--leftovers")
    assert (told.code, told.lines[1]) == (
        0,
        f"{count} values and 0 private versions that nothing needs any more removed.",
    )
    assert not Payload.objects.exists()


def test_the_workspace_of_a_run_goes_with_it(tmp_path: Path, settings: Any) -> None:
    """REV.4"""
    settings.WORKSPACE_ROOT = tmp_path / "workspaces"
    file = workflow_file(tmp_path, "steps: [{ id: a, kind: shell, run: echo made > here }]\n")
    assert manage("run_workflow", file, "--quiet").code == 0
    (run_id,) = numbers()
    workspace = tmp_path / "workspaces" / f"run-{run_id}"
    assert (workspace / "here").exists()
    other = tmp_path / "workspaces" / "run-4711"
    other.mkdir()
    assert manage("prune_runs", "--keep", "0", "--yes").code == 0
    assert not workspace.exists()
    assert other.exists()


def test_keeping_says_what_became_of_each_run() -> None:
    """REV.4"""
    run_id = finished()
    answer = manage("runs", "keep", str(run_id), "4711", "--reason", "the auditors ask")
    assert (answer.code, answer.out, answer.err) == (
        2,
        f"run {run_id}: is kept: it will not be pruned\n",
        "error: There is no run 4711.\n",
    )
    assert manage("runs", "keep", str(run_id), "--reason", "again").out == f"run {run_id}: was kept already\n"
    assert manage("runs", "keep", str(run_id)).code == 2, "a reason is needed"
    assert manage("runs", "keep", str(run_id), "--off", "--json").json == [
        {"run": run_id, "kept": False, "new": True, "error": None}
    ]
    assert manage("runs", "keep", str(run_id), "--off").out == f"run {run_id}: was not on audit hold\n"
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["run.keep", "run.keep_off"]
