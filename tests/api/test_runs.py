"""Runs through the API: the same objects and refusals as everywhere, for programs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.programs import Program, program
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player
from workflows.models import Run
from workflows.queries.runs import run_document

pytestmark = pytest.mark.django_db(transaction=True)

WAITS = workflow("  - { id: ready, kind: wait, signal: go_on }\n  - { id: last, kind: shell, run: x }", name="waits")
GREETS = workflow(
    "  - { id: greet, kind: shell, run: x }", before="params: { who: { type: string, default: you } }", name="greets"
)


@pytest.fixture
def admin() -> Program:
    return program(name="ada", groups=("admin",))


def waiting() -> int:
    player = Player(publish_run(WAITS), {})
    player.play()
    return player.run_id


def test_a_program_starts_a_run_once_for_its_key(admin: Program) -> None:
    """PUB.3"""
    store_plan(GREETS, private=False)
    wish = {"workflow": "greets", "params": {"who": "Ada"}, "key": "order-7"}
    first, again = admin.post("/runs", wish), admin.post("/runs", wish)
    assert (first.status_code, again.status_code) == (201, 200), first.content
    assert first.json()["run"] == again.json()["run"]
    assert (first.json()["created"], again.json()["created"]) == (True, False)
    run = Run.objects.get()
    assert (run.started_by, run.origin) == ("ada", "api")
    other = admin.post("/runs", {**wish, "params": {"who": "Alan"}})
    assert (other.status_code, other.json()["code"]) == (409, "run.key_conflict")


def test_the_document_of_a_run_is_the_one_of_the_command_line(admin: Program) -> None:
    run = waiting()
    shown = admin.get(f"/runs/{run}")
    assert shown.status_code == 200
    found: dict[str, Any] = shown.json()
    assert found.pop("hidden") == []
    assert found == run_document(run)
