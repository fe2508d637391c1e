from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workflows.definitions.validation import Known, validate
from workflows.errors import PROBLEMS

DATA = Path(__file__).parent.parent / "data"
SAMPLES: list[dict[str, Any]] = json.loads((DATA / "errors" / "cases.json").read_text(encoding="utf-8"))
FILES = sorted([*(DATA / "examples").glob("*.yaml"), *(DATA / "cases").glob("*/workflow.yaml")])
KNOWN = Known(workflows={"rollback": {"params": ["service"], "calls": []}})


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["code"] for sample in SAMPLES])
def test_each_broken_sample_gives_exactly_its_problem(sample: dict[str, Any]) -> None:
    found = validate(sample["definition"], Known(workflows=sample["known_workflows"]))

    assert [{key: error.as_json()[key] for key in sample["expect"]} for error in found.errors] == [sample["expect"]]


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_each_example_has_no_errors(path: Path) -> None:
    assert validate(path.read_bytes(), KNOWN).errors == ()


def test_there_are_all_the_samples() -> None:
    assert (len(SAMPLES), len(FILES)) == (41, 28)


def test_every_code_of_a_sample_is_in_the_closed_list() -> None:
    assert {sample["code"] for sample in SAMPLES} <= set(PROBLEMS)
