"""Abandoning a run that others drive, and its child runs (promises ABR.1, CHD.3; SET.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.engine.test_driver import Held, driving
from tests.races.observing import TIMEOUT_S
from tests.support.kinds import Scripted, kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from tests.support.rows import assert_sound, events_of
from tests.support.worlds import publish_in_line, publish_parent, sweep
from workflows.engine.consequences import abandon_child
from workflows.errors import Refusal
from workflows.ledger.abandoning import abandon
from workflows.ledger.controlling import send
from workflows.models import Attempt, AuditEntry, Event, Lease, Run, Slot
from workflows.operations import runs
from workflows.operations.people import Actor
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Actor(name="alice", recorded="alice")
WORK = workflow("  - { id: work, kind: shell, run: x }", after="finally: [{ id: tidy, kind: shell, run: y }]")
KID = workflow("  - { id: nap, kind: wait, signal: go }", name="kid")
MIDDLE = workflow("  - { id: call, kind: workflow, ref: kid }", name="middle")
TOP = workflow("  - { id: each, kind: map, over: '${ [1, 2] }', do: [{ id: call, kind: workflow, ref: middle }] }")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=2) as made:
        yield made


def statuses() -> list[str]:
    return list(Run.objects.order_by("pk").values_list("status", flat=True))


def give_up(run_id: int) -> None:
    """The first transaction only: whoever did it died before the others."""
    abandon(run_id=run_id, actor="alice", reason="r", now=datetime.now(UTC))


def play_all() -> None:
    """Play whatever can go on, until all runs have ended or wait."""
    while runnable := list(Run.objects.runnable().order_by("pk").values_list("pk", flat=True)):
        for run_id in runnable:
            Player(run_id).play()


def tree() -> list[int]:
    """A run with two child runs, each with one that waits; all are parked."""
    publish_parent(TOP, KID, MIDDLE)
    play_all()
    assert statuses() == ["waiting"] * 5
    return list(Run.objects.order_by("pk").values_list("pk", flat=True))


# ---- driven by somebody else -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", ["main", "finally"])
def test_the_driver_of_an_abandoned_run_notices_and_stops_what_runs(
    tmp_path: Path, pool: ThreadPoolExecutor, section: str
) -> None:
    """ABR.1: also a ``finally`` that hangs."""
    held = Held()
    kinds = kinds_with(Scripted(work=held) if section == "main" else Scripted(work=ok(), tidy=held))
    run_id = publish_run(WORK)
    future = driving(pool, run_id, tmp_path, kinds=kinds)
    assert held.began.wait(TIMEOUT_S)
    runs.abandon(run_id, actor=ALICE, reason="it hangs")
    left = future.result(TIMEOUT_S)
    assert isinstance(left, Refusal)
    assert left.message == f"Run {run_id} is already abandoned."
    assert held.returned.wait(TIMEOUT_S)
    run = Run.objects.get(pk=run_id)
    attempt = Attempt.objects.filter(run=run).latest("pk")
    assert (run.status, attempt.status, attempt.late_outcome) == ("abandoned", "interrupted", "")
    assert events_of(run_id)[-1] == "run_abandoned"
    assert Lease.objects.get(run=run).expires_ms == 0
    assert_sound()


def test_a_result_that_comes_after_all_is_late_on_its_attempt(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """ABR.1, SET.4"""
    held = Held(ok("build 7"), obeys=False)
    run_id = publish_run(WORK)
    future = driving(pool, run_id, tmp_path, kinds=kinds_with(Scripted(work=held)))
    assert held.began.wait(TIMEOUT_S)
    give_up(run_id)
    held.released.set()
    assert isinstance(future.result(TIMEOUT_S), Refusal)
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, attempt.late_outcome, json.loads(attempt.marks)) == (
        "interrupted",
        "ok",
        ["late", "uncertain"],
    )
    assert events_of(run_id)[-2:] == ["run_abandoned", "late_result"]
    assert_sound()


# ---- child runs ------------------------------------------------------------------------------------------------------


def test_every_descendant_is_abandoned_with_one_entry_of_the_audit() -> None:
    """CHD.3"""
    top, *below = tree()
    runs.abandon(top, actor=ALICE, reason="r")
    assert statuses() == ["abandoned"] * 5
    actors = Event.objects.filter(type="run_abandoned").order_by("run_id").values_list("run_id", "actor")
    assert list(actors) == [(top, "alice"), *((run, "parent run") for run in below)]
    assert AuditEntry.objects.count() == 1
    assert sweep() == 0
    assert_sound()


def test_an_abandonment_that_a_crash_kept_from_the_children_is_repeated_by_the_sweep() -> None:
    """CHD.3"""
    top, *_ = tree()
    give_up(top)
    assert statuses() == ["abandoned", *["waiting"] * 4]
    assert sweep() > 0
    assert statuses() == ["abandoned"] * 5
    assert sweep() == 0
    assert_sound()


def test_a_detached_child_is_left_alone() -> None:
    """CHD.3"""
    text = workflow("  - { id: call, kind: workflow, ref: kid, detach: true }\n  - { id: nap, kind: wait, signal: go }")
    run_id = publish_parent(text, KID)
    play_all()
    runs.abandon(run_id, actor=ALICE, reason="r")
    assert sweep() == 0
    assert statuses() == ["abandoned", "waiting"]


def test_a_parent_is_woken_by_the_sweep_when_its_child_was_abandoned() -> None:
    """CHD.3"""
    parent = publish_parent(MIDDLE, KID)
    play_all()
    child = Run.objects.get(parent_run=parent).pk
    give_up(child)
    assert Run.objects.get(pk=parent).wake_at_ms is None
    assert sweep() == 1
    play_all()
    run = Run.objects.get(pk=parent)
    assert (run.status, json.loads(run.error)["code"]) == ("failed", "child_failed")
    assert_sound()


def test_a_child_that_ended_meanwhile_is_left_alone() -> None:
    """CHD.3"""
    publish_parent(MIDDLE, KID)
    play_all()
    child = Run.objects.latest("pk").pk
    give_up(child)
    assert abandon_child(child) is False
    assert abandon_child(4_711) is False


def test_a_tree_that_was_abandoned_is_opened_again_whole() -> None:
    """ABR.2, CHD.3: child runs that were abandoned for themselves stay so."""
    top, first, *_ = tree()
    alone = Run.objects.get(parent_run=first).pk
    runs.abandon(alone, actor=ALICE, reason="this one")
    runs.abandon(top, actor=ALICE, reason="all")
    runs.resume(top, actor=ALICE, reason="sorry")
    again = dict(Run.objects.values_list("pk", "status"))
    assert again.pop(alone) == "abandoned"
    assert set(again.values()) == {"queued"}
    assert sweep() >= 0
    play_all()
    assert Run.objects.get(pk=first).status == "failed"
    assert_sound()


def test_a_place_of_an_abandoned_run_goes_to_who_is_next() -> None:
    """ABR.1, PUB.4"""
    first = publish_in_line(KID, "door").run_id
    second = publish_in_line(KID, "door").run_id
    play_all()
    assert Slot.objects.get(number=1).run_id == first
    runs.abandon(first, actor=ALICE, reason="r")
    assert Slot.objects.get(number=1).run_id == second
    assert_sound()


def test_a_cancelled_run_that_was_abandoned_still_ends_as_cancelled_when_it_is_opened() -> None:
    """ABR.2, ABR.3"""
    run_id = publish_run(WORK)
    player = Player(run_id)
    player.step()
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=datetime.now(UTC))
    player.hand.reload()
    player.step()
    player.settle("work")
    assert player.running() == ["v2.1"]
    runs.abandon(run_id, actor=ALICE, reason="finally hangs")
    runs.resume(run_id, actor=ALICE)
    run = Player(run_id).play()
    assert (run.status, json.loads(run.closing)["status"]) == ("blocked", "cancelled")
    assert_sound()
