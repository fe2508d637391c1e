"""Workflow files that are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.commands.support import workflow_file
from workflows.operations.library import SHIPPED, library_file, library_files, name_in

STEPS = "steps: [{ id: a, kind: shell, run: echo A }]\n"


def test_the_first_directory_that_has_a_name_wins(tmp_path: Path, settings: Settings) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    settings.WAYPOST_LIBRARY_DIRS = [str(first), str(tmp_path / "missing"), str(second)]
    for folder in (first, second):
        workflow_file(folder, STEPS)
    workflow_file(second, STEPS, "other")
    demo, other = library_file("demo"), library_file("other")
    assert demo is not None
    assert demo.path == first / "demo.yaml"
    assert other is not None
    assert other.path == second / "other.yaml"
    assert {"demo", "other"} <= set(library_files())
    assert library_file("nobody") is None


def test_the_name_in_a_file_counts_and_not_the_name_of_the_file(tmp_path: Path, settings: Settings) -> None:
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    Path(workflow_file(tmp_path, STEPS, "inner")).rename(tmp_path / "outer.yml")
    assert library_file("outer") is None
    inner = library_file("inner")
    assert inner is not None
    assert inner.path.name == "outer.yml"


def test_every_shipped_file_is_called_after_its_workflow() -> None:
    files = sorted(SHIPPED.glob("*.yaml"))
    for path in files:
        assert name_in(path.read_bytes()) == path.stem


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"format: 1\nname: demo\n", "demo"),
        (b"name: 'demo'  # what it is\r\n", "demo"),
        (b'name: "demo_2"\n', "demo_2"),
        (b"name: Demo\n", None),
        (b"steps:\n  - name: inner\n", None),
        (b"", None),
    ],
)
def test_the_name_that_a_file_gives_itself(text: bytes, name: str | None) -> None:
    assert name_in(text) == name
