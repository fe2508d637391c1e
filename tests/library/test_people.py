"""Shipped workflows that ask people: release, incident, data_cleanup, onboarding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.support import manage
from tests.library.support import attempts_of, begin, decide, go_on, library_path, reply, steps_of
from workflows.errors import Refusal
from workflows.models import ControlMessage, Run
from workflows.operations.people import Actor
from workflows.operations.signals import signal

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_release_needs_two_people_and_not_the_one_who_asked(workspaces: Path) -> None:
    run = begin("release", person="rita", version="1.4.0")["run"]
    with pytest.raises(Refusal) as refused:
        reply(run, "sign_off", "approved", person="rita")
    assert refused.value.code == "interrupt.not_allowed"
    assert decide(run, "sign_off", "approved", person="alice")["status"] == "paused"
    document = decide(run, "sign_off", "approved", person="bob", remark="fine")
    assert (document["status"], document["error"]) == ("succeeded", None)
    assert document["output"]["version"] == "1.4.0"
    assert document["output"]["regions"] == ["eu", "us"]
    assert document["output"]["approved_by"] == ["alice", "bob"]
    for region in ("eu", "us"):
        assert (workspaces / f"run-{run}" / "regions" / region / "current").read_text() == "application 1.4.0\n"
    assert (workspaces / f"run-{run}" / "releases.log").read_text() == "1.4.0 succeeded\n"


def test_an_unhealthy_region_stops_the_release_and_rolls_back_what_was_touched(workspaces: Path) -> None:
    run = begin("release", version="1.4.0", regions=["eu", "us", "asia"], unhealthy="us")["run"]
    reply(run, "sign_off", "approved", person="alice")
    document = decide(run, "sign_off", "approved", person="bob")
    assert (document["status"], document["error"]) == (
        "failed",
        {
            "code": "ended_failed",
            "step": "rolled_back",
            "message": "Region us stayed unhealthy; 2 of 2 regions were rolled back.",
        },
    )
    assert attempts_of(document, "healthy") == [1, 3]
    assert not (workspaces / f"run-{run}" / "regions" / "asia").exists()
    assert not (workspaces / f"run-{run}" / "regions" / "us" / "current").exists()
    assert (workspaces / f"run-{run}" / "releases.log").read_text() == "1.4.0 failed\n"


def test_one_rejection_ends_the_release() -> None:
    run = begin("release", version="1.4.0")["run"]
    document = decide(run, "sign_off", "rejected")
    assert document["error"] == {
        "code": "ended_failed",
        "step": "not_released",
        "message": "There was no release: rejected.",
    }


def test_the_incident_runbook_asks_until_the_service_is_calm() -> None:
    run = begin("incident", watch_for="10ms")["run"]
    assert decide(run, "ask", "wait_longer")["status"] == "paused"
    document = decide(run, "ask", "roll_back", remark="the last deployment looks bad")
    assert document["status"] == "succeeded"
    assert document["output"] == {
        "roll_backs": 1,
        "looks": 2,
        "taken_over": None,
        "report": "# Incident of checkout\n\nRolled back 1 times, looked 2 times.\nrolled back in round 1",
    }


def test_an_incident_that_nobody_answers_is_handed_over_and_then_escalated() -> None:
    document = begin("incident", answer_within="1ms")
    while document["status"] in ("paused", "waiting"):
        document = go_on(document["run"])
    assert document["status"] == "succeeded"
    assert [step for step in steps_of(document) if step in ("ask", "hand_over", "escalate")] == [
        "ask",
        "hand_over",
        "escalate",
    ]
    assert document["output"]["taken_over"] == "expired"
    assert "nobody took over checkout" in document["output"]["report"]


def test_an_incident_that_is_taken_over_is_not_escalated() -> None:
    run = begin("incident")["run"]
    decide(run, "ask", "hand_over")
    document = decide(run, "hand_over", "approved")
    assert (document["status"], document["output"]["taken_over"]) == ("succeeded", "approved")
    assert "escalate" not in steps_of(document)


@pytest.fixture
def batch_is_published() -> None:
    """PostgreSQL takes no workflow from the library by itself."""
    assert manage("workflows", "publish", library_path("data_cleanup_batch")).code == 0


@pytest.mark.usefixtures("batch_is_published")
def test_the_clean_up_deletes_in_child_runs_and_keeps_what_is_on_hold(workspaces: Path) -> None:
    run = begin("data_cleanup", customers=60)["run"]
    document = decide(run, "sign_off", "approved")
    assert (document["status"], document["error"]) == ("succeeded", None)
    inactive = [number for number in range(1, 61) if number * 37 % 730 >= 365]
    held = [number for number in inactive if number % 9 == 0]
    batches = -(-len(inactive) // 10)
    assert document["output"] == {
        "deleted": len(inactive) - len(held),
        "kept": len(held),
        "batches": batches,
        "failed": 0,
    }
    children = Run.objects.filter(parent_run=run)
    assert [(child.workflow.name, child.status) for child in children] == [
        ("data_cleanup_batch", "succeeded")
    ] * batches
    left = {int(path.stem) for path in (workspaces / f"run-{run}" / "customers").iterdir()}
    assert left == set(range(1, 61)) - (set(inactive) - set(held))
    archived = workspaces / f"run-{run}" / "archive" / f"{min(set(inactive) - set(held))}.json"
    assert json.loads(archived.read_text())["hold"] is False


@pytest.mark.usefixtures("batch_is_published")
def test_the_clean_up_of_few_customers_asks_nobody_and_a_dry_run_deletes_nothing(workspaces: Path) -> None:
    document = begin("data_cleanup", customers=20, ask_from=100)
    assert document["status"] == "succeeded"
    assert document["output"]["deleted"] > 0
    dry = begin("data_cleanup", customers=60, dry_run=True)
    assert (dry["status"], dry["output"]["deleted"]) == ("succeeded", 0)
    assert len(list((workspaces / f"run-{dry['run']}" / "customers").iterdir())) == 60


@pytest.mark.usefixtures("batch_is_published")
def test_the_clean_up_of_nothing_starts_no_batch() -> None:
    document = begin("data_cleanup", customers=5)
    assert steps_of(document) == ["load_customers", "find", "nothing_to_do"]
    assert document["output"] == {"deleted": 0, "kept": 0, "batches": 0, "failed": 0}


@pytest.mark.usefixtures("batch_is_published")
def test_a_rejected_clean_up_deletes_nothing() -> None:
    run = begin("data_cleanup")["run"]
    document = decide(run, "sign_off", "rejected")
    assert document["output"] == {"deleted": 0, "decision": "rejected"}
    assert not Run.objects.filter(parent_run=run).exists()


def test_onboarding_waits_for_people_a_parcel_and_a_day() -> None:
    run = begin("onboarding", name="Ada", starts_on="2026-01-31")["run"]
    actor = Actor(name="alice", recorded="test as alice")
    signal(run, "hardware_arrived", {"for": "somebody else"}, actor=actor)
    signal(run, "hardware_arrived", {"for": "Ada"}, actor=actor)  # both before the wait: they stay until consumed
    decide(run, "mentor", mentor="Grace", first_topic="compilers")
    assert decide(run, "which", "laptop")["status"] == "paused"
    left = ControlMessage.objects.filter(run_id=run, consumed_at=None)
    assert [json.loads(message.payload)["payload"] for message in left] == [{"for": "somebody else"}]
    decide(run, "settled_in", "rejected")
    document = decide(run, "missing", answer="a chair")
    assert (document["status"], document["error"]) == ("succeeded", None)
    assert document["output"] == {
        "mentor": "Grace",
        "accounts": ["Ada: mail", "Ada: chat", "Ada: code"],
        "missing": "a chair",
    }


def test_onboarding_without_hardware_waits_for_no_parcel() -> None:
    run = begin("onboarding", name="Ada", starts_on="2026-01-31", team="sales")["run"]
    decide(run, "which", "none")
    decide(run, "mentor", mentor="Grace")
    document = decide(run, "settled_in", "approved")
    assert document["output"] == {"mentor": "Grace", "accounts": ["Ada: mail", "Ada: chat"], "missing": ""}
