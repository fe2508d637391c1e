"""``repository_report``: on this project, on directories with and without git, after a crash."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands.support import manage
from tests.library.support import attempts_of, begin, go_on, library_path, steps_of
from tests.processes import PROJECT, Processes
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def repository(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("one = 1\n\n# TODO: two\n", encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_app.py").write_text("def test_one(): ...\n\n\ndef test_two(): ...\n", encoding="utf-8")
    (folder / "README.md").write_text("# App", encoding="utf-8")
    (folder / "logo.bin").write_bytes(b"\0\1\2" * 10)
    return folder


def git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, "-C", str(folder), *words], check=True, capture_output=True)


def test_without_parameters_it_reports_on_this_project() -> None:
    document = begin("repository_report", style="json")
    assert (document["status"], document["error"]) == ("succeeded", None)
    output = document["output"]
    assert output["directory"] == str(PROJECT)
    assert output["languages"][0]["language"] == "Python"
    assert output["totals"]["tests"] > 100
    assert "workflows" in [folder["folder"] for folder in output["folders"]]


def test_a_directory_without_git(tmp_path: Path) -> None:
    folder = repository(tmp_path / "app")
    document = begin("repository_report", directory=str(folder), style="json", words=["TODO"])
    assert steps_of(document) == ["locate", "has_git", "list_found", "folders", "look", "report", "tidy"]
    assert document["output"] == {
        "name": "app",
        "directory": str(folder),
        "totals": {"files": 4, "lines": 8, "bytes": 98, "test_files": 1, "tests": 2, "notes": 1},
        "languages": [
            {"language": "Python", "files": 2, "lines": 7},
            {"language": "Markdown", "files": 1, "lines": 1},
            {"language": "Other", "files": 1, "lines": 0},
        ],
        "folders": [
            {"folder": ".", "files": 2, "lines": 1, "tests": 0},
            {"folder": "src", "files": 1, "lines": 3, "tests": 0},
            {"folder": "tests", "files": 1, "lines": 4, "tests": 2},
        ],
        "largest": [
            {"file": "tests/test_app.py", "lines": 4, "bytes": 42},
            {"file": "logo.bin", "lines": 0, "bytes": 30},
            {"file": "src/app.py", "lines": 3, "bytes": 21},
            {"file": "README.md", "lines": 1, "bytes": 5},
        ],
        "words": ["TODO"],
        "notes": [{"file": "src/app.py", "line": 3, "word": "TODO", "text": "TODO: two"}],
        "history": None,
    }


@needs_git
def test_git_leaves_out_what_it_ignores_and_tells_the_history(tmp_path: Path) -> None:
    folder = repository(tmp_path / "app")
    (folder / ".gitignore").write_text("*.bin\n", encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Begin", "--date", "2026-01-31T12:00:00Z")
    document = begin("repository_report", directory=str(folder), style="json")
    assert steps_of(document) == ["locate", "has_git", "list_tracked", "folders", "look", "report", "tidy"]
    assert [row["file"] for row in document["output"]["largest"]] == [
        "tests/test_app.py",
        "src/app.py",
        ".gitignore",
        "README.md",
    ]
    assert document["output"]["history"] == {
        "commits": 1,
        "first": "2026-01-31",
        "latest": ["2026-01-31 Begin"],
        "authors": ["Ada"],
    }


@needs_git
def test_a_repository_without_a_commit_has_no_history(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q")
    document = begin("repository_report", directory=str(folder), style="json")
    assert document["status"] == "succeeded"
    assert (document["output"]["totals"]["files"], document["output"]["history"]) == (0, None)


def test_the_text_is_markdown_with_padded_tables(tmp_path: Path) -> None:
    folder = repository(tmp_path / "app")
    text = begin("repository_report", directory=str(folder), largest=1)["output"]
    assert text.startswith(f"# app\n\n4 files, 8 lines, 98 B in {folder}; 2 tests in 1 file.\n\n## Languages\n")
    assert "\n| File              | Lines | Size |\n|-------------------|------:|-----:|\n" in text
    assert "\n| tests/test_app.py |     4 | 42 B |\n" in text
    assert text.endswith("## Notes (TODO, FIXME, XXX)\n\n1 found.\n\n* src/app.py:3: TODO: two\n")


def test_a_directory_that_is_not_there_fails_the_run_with_its_name(tmp_path: Path) -> None:
    document = begin("repository_report", directory=str(tmp_path / "nowhere"))
    assert document["status"] == "failed"
    assert document["error"] == {
        "code": "task_error",
        "step": "locate",
        "message": f'NotADirectoryError: There is no directory "{tmp_path / "nowhere"}".',
    }


def test_a_relative_directory_means_one_place_for_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "app")
    monkeypatch.chdir(tmp_path)
    words = ["run_workflow", library_path("repository_report"), "-P", "directory=app", "--max-steps", "2", "--json"]
    handed_back = manage(*words).json
    assert handed_back["output"] is None
    monkeypatch.chdir(PROJECT)
    assert f"in {folder};" in go_on(handed_back["run"])["output"]


def test_a_run_that_was_killed_goes_on_by_itself(tmp_path: Path, processes: Processes, workspaces: Path) -> None:
    """Everything is read-only: whatever was interrupted is done again, and nobody has to reconcile anything."""
    folder = repository(tmp_path / "app")
    (folder / ".git").mkdir()
    started = tmp_path / "started"
    os.mkfifo(started)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\necho started > {started}\nexec sleep 600\n")
    slow.chmod(0o755)
    quick = {"WAYPOST_LEASE_TTL_MS": "600", "WAYPOST_HEARTBEAT_MS": "200", "WORKSPACE_ROOT": str(workspaces)}
    words = ["run_workflow", library_path("repository_report"), "-P", f"directory={folder}", "-P", "style=json"]
    process = processes.start(*words, env={**quick, "PATH": f"{slow.parent}:{os.environ['PATH']}"})
    assert started.read_text() == "started\n"  # the step `list_tracked` runs git now
    processes.kill(process)
    run = Run.objects.get()
    assert run.status == "running"
    ended = processes.manage("run_workflow", str(run.pk), "--json", env=quick)
    while ended.returncode == 75:  # the lease of the killed worker ends by itself
        ended = processes.manage("run_workflow", str(run.pk), "--json", env=quick)
    assert (ended.returncode, ended.stderr) == (0, "")
    document = json.loads(ended.stdout)
    assert document["output"]["totals"]["files"] == 4
    assert attempts_of(document, "list_tracked") == [2]
