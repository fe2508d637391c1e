"""Every scenario of the cases through the command line: people answer by ``runs answer``, deadlines pass by
themselves, and each stated expectation holds. ``python -m tests.journeys`` runs them on both databases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model

from tests.commands.support import DATA, Answer, manage
from tests.journeys.crowd import SOMEBODY, Journey, check
from tests.processes import Processes
from tests.support.rows import assert_sound
from workflows.models import Interrupt, Lease, Slot

pytestmark = pytest.mark.django_db(transaction=True)

CASES = sorted(path.parent for path in (DATA / "cases").glob("*/case.yaml"))
#: These run as processes of their own too: a loop, retries, closing steps, a fan-out, people.
AS_PROCESSES = {
    "05_first_one_wins": "second answers",
    "07_retry_until_up": "third attempt",
    "14_exit_handlers": "failure",
    "30_resource_request": "access without permission, default taken",
}


def scenarios() -> list[Any]:
    found = []
    for folder in CASES:
        case = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
        for scenario in case["scenarios"]:
            found.append(pytest.param(folder, scenario, id=f"{folder.name}-{scenario['name'].replace(' ', '_')}"))
    return found


SCENARIOS = scenarios()
CHOSEN = [one for one in SCENARIOS if AS_PROCESSES.get(one.values[0].name) == one.values[1]["name"]]


def people_of(scenario: dict[str, Any]) -> set[str]:
    named = {answer.get("by") for answers in scenario.get("humans", {}).values() for answer in answers}
    return {scenario.get("started_by", "alice"), SOMEBODY, *(name for name in named if name)}


def make_people(scenario: dict[str, Any]) -> None:
    for name in people_of(scenario):
        get_user_model()._default_manager.create_user(username=name)


def check_journey(journey: Journey, document: dict[str, Any]) -> None:
    check(document, journey.scenario["expect"])
    assert journey.code == {"succeeded": 0, "failed": 1}[journey.scenario["expect"]["status"]]
    assert not Interrupt.objects.filter(status="open").exists()
    assert not Slot.objects.exists()
    assert not Lease.objects.filter(expires_ms__gt=0).exists()
    assert_sound()


@pytest.mark.parametrize(("folder", "scenario"), SCENARIOS)
def test_a_scenario_ends_as_its_case_says(folder: Path, scenario: dict[str, Any]) -> None:
    make_people(scenario)
    journey = Journey(folder=folder, scenario=scenario, manage=manage)
    check_journey(journey, journey.play())
    assert journey.given == {step: len(answers) for step, answers in scenario.get("humans", {}).items()}


@pytest.mark.parametrize(("folder", "scenario"), CHOSEN)
def test_a_scenario_ends_alike_in_processes_of_its_own(
    folder: Path, scenario: dict[str, Any], processes: Processes
) -> None:
    def in_process(*words: str) -> Answer:
        ended = processes.manage(*words)
        assert "Traceback" not in ended.stderr
        return Answer(code=ended.returncode, out=ended.stdout, err=ended.stderr)

    make_people(scenario)
    journey = Journey(folder=folder, scenario=scenario, manage=in_process)
    check_journey(journey, journey.play())


def test_the_processes_are_among_the_scenarios() -> None:
    assert len(CHOSEN) == len(AS_PROCESSES)
