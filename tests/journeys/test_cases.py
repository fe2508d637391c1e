"""Every scenario that needs no person, through the command line: each stated expectation holds.

Which cases run is a rule: this version can run the plan, and the scenario has no answers of people.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model

from tests.commands.support import DATA, manage
from tests.processes import Processes
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.models import Visit
from workflows.steps import KINDS, unsupported

pytestmark = pytest.mark.django_db(transaction=True)

CASES = sorted(path.parent for path in (DATA / "cases").glob("*/case.yaml"))
#: These run as processes of their own too: a loop, retries, closing steps.
AS_PROCESSES = ("07_retry_until_up", "14_exit_handlers", "33_branches_in_a_loop")


def scenarios() -> list[Any]:
    found = []
    for folder in CASES:
        plan = compile_plan(freeze(read_source((folder / "workflow.yaml").read_bytes()).document).document)
        if unsupported(plan) is not None:
            continue
        case = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
        for scenario in case["scenarios"]:
            if "humans" not in scenario:
                found.append(pytest.param(folder, scenario, id=f"{folder.name}-{scenario['name'].replace(' ', '_')}"))
    return found


SCENARIOS = scenarios()


def words_of(folder: Path, scenario: dict[str, Any]) -> list[str]:
    words = ["run_workflow", str(folder / "workflow.yaml"), "--json", "--as", scenario.get("started_by", "alice")]
    for name, value in scenario.get("params", {}).items():
        words += ["-P", f"{name}:={json.dumps(value, default=str)}"]
    return words


def check(document: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare a run with everything a scenario states about it."""
    visits = document["visits"]
    main = [visit for visit in visits if visit["scope"] == ""]
    found: dict[str, Any] = {
        "status": document["status"],
        "visits": [visit["step"] for visit in main],
        "output": document["output"],
    }
    if "items" in expected:
        found["items"] = items_of(visits)
    if "outcomes" in expected:
        found["outcomes"] = {step: last_outcome(document["run"], step) for step in expected["outcomes"]}
    if "attempts" in expected:
        last = {visit["step"]: visit for visit in main}
        found["attempts"] = {step: len(last[step]["attempts"]) or 1 for step in expected["attempts"]}
    if "error" in expected:
        error = document["error"] or {}
        found["error"] = {name: error.get(name) for name in expected["error"]}
    assert {name: found[name] for name in expected} == expected


def items_of(visits: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The steps inside each map item, by the path of the item."""
    found: dict[str, list[str]] = {}
    for visit in visits:
        if visit["item"] is not None:
            found.setdefault(visit["scope"], []).append(visit["step"])
    return found


def last_outcome(run: int, step: str) -> str | None:
    """The outcome of the last entry, refused ones included; the JSON list of visits leaves those out."""
    entry = Visit.objects.filter(run_id=run, scope="", step=step).order_by("-number").first()
    return entry.outcome if entry is not None else None


@pytest.mark.parametrize(("folder", "scenario"), SCENARIOS)
def test_a_scenario_ends_as_its_case_says(folder: Path, scenario: dict[str, Any]) -> None:
    get_user_model()._default_manager.create_user(username=scenario.get("started_by", "alice"))
    answer = manage(*words_of(folder, scenario))
    check(answer.json, scenario["expect"])
    assert answer.code == (0 if scenario["expect"]["status"] == "succeeded" else 1)


@pytest.mark.parametrize(("folder", "scenario"), [one for one in SCENARIOS if one.values[0].name in AS_PROCESSES])
def test_a_scenario_ends_alike_in_a_process_of_its_own(
    folder: Path, scenario: dict[str, Any], processes: Processes
) -> None:
    get_user_model()._default_manager.create_user(username="alice")
    ended = processes.manage(*words_of(folder, scenario))
    assert ended.stderr == ""
    check(json.loads(ended.stdout), scenario["expect"])
    assert ended.returncode == (0 if scenario["expect"]["status"] == "succeeded" else 1)


def test_every_sequential_case_is_among_them() -> None:
    run = {one.values[0].name for one in SCENARIOS}
    sequential = {"shell", "task", "assign", "condition", "wait", "end"}
    assert sequential <= set(KINDS)
    for folder in CASES:
        document = yaml.safe_load((folder / "workflow.yaml").read_text(encoding="utf-8"))
        steps = [*document["steps"], *document.get("on_failure", []), *document.get("finally", [])]
        if {step["kind"] for step in steps} <= sequential:
            assert folder.name in run
