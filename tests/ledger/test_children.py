"""The verbs between parent and child: published once, told once, whoever asks (promises CHD)."""

from __future__ import annotations

import threading

import pytest

from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import START, workflow
from tests.support.players import Player, play
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, counted, failing_at
from tests.support.worlds import publish_parent
from workflows.ledger.batch import Batch
from workflows.ledger.children import hear_of_child, orphans, unheard_children
from workflows.ledger.plain_path import write as write_plainly
from workflows.ledger.transactions import database_thread, ledger_transaction
from workflows.models import Event, Lease, Run, Scope

pytestmark = pytest.mark.django_db(transaction=True)

KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")


@ledger_transaction
def plainly(batch: Batch) -> None:
    write_plainly(batch)


def ended_child() -> tuple[Player, int]:
    """A parked parent that nobody has told of its child's end."""
    player = Player(publish_parent(PARENT, KID))
    player.play()
    child = Run.objects.get(parent_run_id=player.run_id).pk
    kid = Player(child)
    kid.step()
    kid.hand.step({"v1.1": ok()})
    return player, child


def test_a_child_appears_whole_with_the_admission_or_not_at_all() -> None:
    """CHD.1, PUB.1: a fault at any statement leaves nothing of either."""
    player = Player(publish_parent(PARENT, KID))
    decision = player.hand.decide()
    batch = player.hand.batch(decision)
    before = all_rows()
    failed = 0
    for number in range(1, 80):
        try:
            with failing_at(number):
                player.hand.write(batch)
        except Injected:
            failed += 1
            assert all_rows() == before
        else:
            break
    assert failed > 10
    child = Run.objects.get(parent_run_id=player.run_id)
    assert Lease.objects.filter(run=child).count() == Scope.objects.filter(run=child).count() == 1
    assert events_of(child.pk) == ["run_started"]
    assert_sound()


def test_both_ways_of_writing_publish_the_same_child() -> None:
    rows = []
    for write in (None, plainly):
        run_id = publish_parent(PARENT, KID)
        hand = Hand(run_id) if write is None else Hand(run_id, write=write)
        hand.step()
        child = Run.objects.values("plan_id", "parent_visit", "depth", "status", "origin", "revision", "frozen")
        rows.append(child.get(parent_run_id=run_id))
    assert rows[0] == rows[1]
    assert_sound()


def test_the_end_of_a_child_is_told_once() -> None:
    player, child = ended_child()
    assert unheard_children() == [child]
    assert hear_of_child(child_id=child, now=START)
    assert not hear_of_child(child_id=child, now=START)
    told = Event.objects.filter(run_id=player.run_id, type="child_ended")
    assert [(event.visit, event.attempt) for event in told] == [(1, 1)]
    assert told.get().payload == f'{{"child":{child},"status":"succeeded"}}'
    assert_sound()


def test_telling_is_all_or_nothing() -> None:
    _, child = ended_child()
    before = all_rows()
    failed = 0
    for number in range(1, 40):
        try:
            with failing_at(number):
                hear_of_child(child_id=child, now=START)
        except Injected:
            failed += 1
            assert all_rows() == before
        else:
            break
    assert failed >= 4


def test_two_processes_tell_at_the_same_moment_and_the_parent_hears_it_once() -> None:
    """CHD.1"""
    for _ in range(5):
        player, child = ended_child()
        barrier = threading.Barrier(2)
        told: list[bool] = []

        def work(child: int = child, barrier: threading.Barrier = barrier, told: list[bool] = told) -> None:
            with database_thread():
                barrier.wait()
                told.append(hear_of_child(child_id=child, now=START))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(told) == [False, True]
        assert events_of(player.run_id).count("child_ended") == 1
        assert player.again().status == "succeeded"
        assert_sound()


def test_a_child_that_lives_has_nothing_to_tell() -> None:
    player = Player(publish_parent(PARENT, KID))
    player.play()
    child = Run.objects.get(parent_run_id=player.run_id).pk
    before = all_rows()
    assert not hear_of_child(child_id=child, now=START)
    assert not hear_of_child(child_id=player.run_id, now=START)
    assert not hear_of_child(child_id=999_999, now=START)
    assert all_rows() == before
    assert (unheard_children(), orphans()) == ([], [])


def test_only_children_of_one_tree_are_looked_at_when_it_is_named() -> None:
    first, one = ended_child()
    second, two = ended_child()
    assert unheard_children(first.run_id) == [one]
    assert unheard_children(second.run_id) == [two]
    assert unheard_children() == [one, two]


def test_a_child_of_a_parent_that_does_not_wait_any_more_is_an_orphan() -> None:
    player = Player(publish_parent(PARENT.replace("ref: kid", "ref: kid, timeout: 1m"), KID))
    player.play()
    child = Run.objects.get(parent_run_id=player.run_id).pk
    assert orphans() == []
    player.pass_time(60_000)
    player.hand = player.take()
    player.hand.step()
    assert (orphans(), orphans(player.run_id), orphans(child)) == ([child], [child], [])


def test_looking_for_unheard_children_costs_the_same_however_many_were_heard() -> None:
    """The sweep of a long-lived parent must not ask once per child that it ever had."""
    text = workflow(
        """
  - { id: each, kind: map, over: "${ [1,2,3,4,5,6,7,8] }", concurrency: 8, do: [{ id: call, kind: workflow, ref: kid }] }
  - { id: ask, kind: question, ask: "Well?" }
""",
        name="parent",
    )
    player = Player(publish_parent(text, KID))
    player.play()
    for child in Run.objects.filter(parent_run_id=player.run_id).values_list("pk", flat=True):
        play(child)
    assert player.again().status == "paused"
    with counted() as seen:
        assert (unheard_children(), orphans()) == ([], [])
    assert len(seen) == 2
