"""Runs through the API: the same objects and refusals as everywhere, for programs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


def test_a_run_that_starts_later_is_one_run_for_its_key_also_when_its_moment_has_passed(admin: Program) -> None:
    """PUB.3, PUB.11"""
    store_plan(GREETS, private=False)
    now = datetime.now(UTC)
    wish = {"workflow": "greets", "key": "order-8", "start_at": (now + timedelta(hours=1)).isoformat()}
    first = admin.post("/runs", wish)
    again = admin.post("/runs", {**wish, "start_at": (now - timedelta(hours=1)).isoformat()})
    assert (first.status_code, again.status_code) == (201, 200), again.content
    assert first.json()["run"] == again.json()["run"]
    assert Run.objects.get().start_at_ms == int((now + timedelta(hours=1)).timestamp() * 1000)


@pytest.mark.parametrize("moment", ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2026-12-24T10:00:00", "soon"])
def test_a_moment_at_which_no_run_can_start_is_refused(admin: Program, moment: str) -> None:
    """PUB.11"""
    store_plan(GREETS, private=False)
    refused = admin.post("/runs", {"workflow": "greets", "start_at": moment})
    assert (refused.status_code, refused.json()["code"]) == (422, "input.invalid"), refused.content
    assert Run.objects.count() == 0


def test_the_document_of_a_run_is_the_one_of_the_command_line(admin: Program) -> None:
    run = waiting()
    shown = admin.get(f"/runs/{run}")
    assert shown.status_code == 200
    found: dict[str, Any] = shown.json()
    assert found.pop("hidden") == []
    assert found == run_document(run)
