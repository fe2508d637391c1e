"""What holds for every shipped workflow."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.commands.support import manage
from tests.library.support import LIBRARY
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.operations.library import library_files
from workflows.steps import KINDS, unsupported

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_library_is_found_by_name() -> None:
    assert list(library_files()) == [path.stem for path in LIBRARY]
    assert len(LIBRARY) >= 9


def test_every_file_validates_without_a_warning() -> None:
    answer = manage("workflows", "validate", *(str(path) for path in LIBRARY), "--json")
    assert answer.code == 0
    assert [found["problems"] for found in answer.json] == [[] for _ in LIBRARY]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.stem)
def test_every_file_says_what_it_is_for_and_runs_in_this_version(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document["title"]
    assert len(document["description"].split()) >= 20
    assert document["name"] == path.stem
    assert unsupported(compile_plan(freeze(read_source(path.read_bytes()).document).document)) is None


def test_together_they_show_every_kind_that_runs_without_a_model() -> None:
    used = {
        step.kind
        for path in LIBRARY
        for step in compile_plan(freeze(read_source(path.read_bytes()).document).document).steps.values()
    }
    assert used & set(KINDS) >= {
        "shell", "task", "http", "assign", "condition", "approval", "question", "wait", "map", "parallel", "block",
        "workflow", "end",
    }  # fmt: skip
