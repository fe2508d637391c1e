"""Messy parameters through the command line: kept exactly, or refused with the path of the value (PUB.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.support import DATA, manage
from workflows.models import Plan, Run, Workflow

pytestmark = pytest.mark.django_db(transaction=True)

PARAMETERS = DATA / "parameters"


PROBE = str(PARAMETERS / "probe.yaml")


@pytest.mark.parametrize(
    ("file", "facts", "items"),
    [
        (
            "01_unicode.json",
            {"values": 72, "depth": 2, "texts": 51, "characters": 384, "bytes": 559, "keys": 8},
            [3, 3, 0],
        ),
        ("03_long_strings.json", {"values": 12, "texts": 10, "characters": 207_905, "bytes": 259_905}, [2, 2, 0]),
    ],
)
def test_text_passes_through_byte_for_byte(file: str, facts: dict[str, int], items: list[int]) -> None:
    answer = manage("run_workflow", PROBE, "--input", str(PARAMETERS / file), "--json")
    assert answer.code == 0
    found = answer.json
    assert {name: found["output"]["facts"][name] for name in facts} == facts
    assert found["output"]["items"] == items
    assert found["params"] == json.loads((PARAMETERS / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("file", "code", "paths"),
    [
        (
            "05_nul_and_controls.json",
            "E607",
            ["lone_high", "lone_low", "list[0]", "nul", "nul_in_key", "swapped"],
        ),
        (
            "06_big_integers.json",
            "E606",
            ["first_unsafe", "snowflake", "int64_max", "int64_over", "forty_digits", "negative", "list[1]"],
        ),
        ("07_floats.json", "E605", ["too_large", "too_small", "nan", "infinity", "minus_infinity"]),
    ],
)
def test_what_cannot_be_stored_is_refused_with_every_path_and_nothing_is_written(
    file: str, code: str, paths: list[str]
) -> None:
    answer = manage("run_workflow", PROBE, "--input", str(PARAMETERS / file), "--json")
    assert answer.code == 2
    error = answer.json["error"]
    assert error["code"] == "params.invalid"
    assert error["message"] == f"The parameters have {len(paths)} problem{'s' if len(paths) > 1 else ''}."
    assert {problem["code"] for problem in error["problems"]} == {code}
    assert sorted(problem["path"] for problem in error["problems"]) == sorted(f"payload.{path}" for path in paths)
    assert not Run.objects.exists()
    assert not Plan.objects.exists()
    assert not Workflow.objects.exists()


def test_a_thousand_items_of_which_ten_fail() -> None:
    answer = manage("run_workflow", PROBE, "--input", str(PARAMETERS / "10_thousand_items.json"), "--json")
    assert answer.code == 0
    found = answer.json
    assert found["output"]["items"] == [1000, 990, 10]
    failed = [visit["item"]["index"] for visit in found["visits"] if visit["step"] == "through_env" and visit["error"]]
    assert sorted(failed) == list(range(96, 1000, 97))
    assert sorted(visit["item"]["index"] for visit in found["visits"] if visit["item"]) == list(range(1000))


def test_floats_are_stored_in_their_canonical_form(tmp_path: Path) -> None:
    payload = '{"payload": {"one": 1.0, "minus": -0.0, "exponent": 1E5, "under": 1e-400, "list": [0.1, 2.50]}}'
    (tmp_path / "given.json").write_text(payload)
    answer = manage("run_workflow", PROBE, "--input", str(tmp_path / "given.json"), "--json")
    stored = {"exponent": 100000, "list": [0.1, 2.5], "minus": 0, "one": 1, "under": 0}
    assert json.dumps(answer.json["params"]["payload"], sort_keys=True) == json.dumps(stored, sort_keys=True)
