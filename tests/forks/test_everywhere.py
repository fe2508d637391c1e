"""A fork at every visit ends like its origin when nothing is edited: the cases, and runs with maps, questions and
children. ``python -m tests.forks --all`` plays every scenario of every case, on both databases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support import manage
from tests.forks.everywhere import fork_everywhere
from tests.forks.worlds import WORLDS
from tests.journeys.crowd import Journey
from tests.journeys.test_cases import SCENARIOS, make_people
from workflows.functions import autodiscover
from workflows.models import Run

# the forks are inspected one by one; all of them once more would take longer than making them
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

ALL = bool(os.environ.get("WAYPOST_ALL_FORKS"))
#: Forks of a run in every run of the tests.
MOST = None if ALL else 8
#: One scenario of these in every run of the tests: a loop, a fan-out, people in a branch, closing steps.
SAMPLE = {"03_switch_color": 0, "07_retry_until_up": 0, "14_exit_handlers": 0, "30_resource_request": 0}


def chosen() -> list[Any]:
    if ALL:
        return SCENARIOS
    by_case: dict[str, list[Any]] = {}
    for one in SCENARIOS:
        by_case.setdefault(one.values[0].name, []).append(one)
    return [by_case[name][number] for name, number in SAMPLE.items()]


@pytest.mark.parametrize(("folder", "scenario"), chosen())
def test_a_fork_at_every_visit_of_a_case_ends_like_its_origin(folder: Path, scenario: dict[str, Any]) -> None:
    """FORK 2–4, 6, 8; REV.2"""
    autodiscover()
    make_people(scenario)
    document = Journey(folder=folder, scenario=scenario, manage=manage).play()
    assert fork_everywhere(document["run"], most=MOST) >= min(MOST or 10_000, len(document["visits"]))


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_fork_at_every_visit_of_maps_questions_and_children_ends_like_its_origin(name: str) -> None:
    """FORK 2–4, 6, 8; INT.7; REV.2"""
    origin = WORLDS[name]()
    assert fork_everywhere(origin, most=MOST) >= min(MOST or 10_000, Run.objects.get(pk=origin).visits) > 3
