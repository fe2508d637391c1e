"""Concurrency keys of runs: reject, queue, cancel the oldest; who holds a slot and when it is given back (PUB 4, 5)."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection

from tests.support.hand import expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publication, publish_run, workflow
from tests.support.players import Player, play
from tests.support.rows import all_rows, assert_sound
from tests.support.tap import Injected, counted, failing_at
from tests.support.worlds import Gauge, drive_all, frozen_children, publish_in_line, sweep
from workflows.errors import Refusal
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.publishing import Concurrency, Publication, Published, publish
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.ledger.reopening import reopen, wake
from workflows.ledger.transactions import database_thread
from workflows.models import Interrupt, Run, Slot
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

ONE = workflow("  - { id: work, kind: shell, run: x }")
ASKS = workflow('  - { id: ask, kind: question, ask: "Well?", timeout: 1h, next: { expired: continue } }')


def holder(key: str = "k") -> list[int]:
    held = Slot.objects.filter(name=key, number__isnull=False).order_by("number")
    return list(held.values_list("run_id", flat=True))


def line(key: str = "k") -> list[int]:
    return list(Slot.objects.filter(name=key, number=None).order_by("id").values_list("run_id", flat=True))


def runnable() -> list[int]:
    return list(Run.objects.runnable().order_by("pk").values_list("pk", flat=True))


def cancel(run_id: int) -> None:
    now = datetime.now(UTC)
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=now)


def blocked(text: str = ONE) -> Player:
    """A run with a slot of its key whose write was interrupted."""
    player = Player(publish_in_line(text, "k").run_id)
    player.step()
    player.die()
    player.step()
    assert player.run.status == "blocked"
    return player


# ---- starting -------------------------------------------------------------------------------------------------------


def test_runs_of_one_key_are_driven_one_after_the_other_in_the_order_of_their_start() -> None:
    """PUB.4: queue"""
    started = [publish_in_line(ONE, "k") for _ in range(4)]
    runs = [one.run_id for one in started]
    assert [one.queued for one in started] == [False, True, True, True]
    assert [one.oldest for one in started] == [None, runs[0], runs[0], runs[0]]
    for position, run in enumerate(runs):
        assert (holder(), line(), runnable()) == ([run], runs[position + 1 :], [run])
        play(run)
    assert Slot.objects.count() == 0
    assert_sound()


def test_who_waits_in_line_is_refused_to_a_driver() -> None:
    publish_in_line(ONE, "k")
    second = publish_in_line(ONE, "k").run_id
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        Player(second)
    assert (caught.value.code, caught.value.message) == ("run.queued", f"Run {second} waits in line for a slot of k.")
    assert all_rows() == before


def test_a_key_may_have_several_slots() -> None:
    runs = [publish_in_line(ONE, "k", max=2).run_id for _ in range(3)]
    assert (holder(), line()) == (runs[:2], runs[2:])
    play(runs[1])
    assert (holder(), line()) == ([runs[0], runs[2]], [])


def test_a_full_key_that_rejects_starts_nothing_and_names_the_holder() -> None:
    """PUB.4"""
    first = publish_in_line(ONE, "k", when_full="reject").run_id
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        publish_in_line(ONE, "k", when_full="reject")
    assert caught.value.code == "run.concurrency_full"
    assert caught.value.message == f"No slot of k is free (run {first}); the limit is 1."
    assert caught.value.data["holders"] == [first]
    assert all_rows() == before
    play(first)
    assert not publish_in_line(ONE, "k", when_full="reject").queued


def start_together(publications: list[Publication]) -> list[Published | str]:
    """What becomes of starts at the same instant: what was published, or the code of the refusal."""
    barrier = threading.Barrier(len(publications))
    outcomes: list[Published | str] = []

    def work(wanted: Publication) -> None:
        with database_thread():
            barrier.wait()
            try:
                outcomes.append(publish(wanted))
            except Refusal as refusal:
                outcomes.append(refusal.code)

    threads = [threading.Thread(target=work, args=(wanted,)) for wanted in publications]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_two_starts_at_the_same_instant_exactly_one_is_accepted() -> None:
    """PUB.4: a slot is a row with a unique constraint."""
    for number in range(8):
        wanted = Concurrency(key=f"key {number}", max=1, when_full="reject")
        outcomes = start_together([publication(ONE, concurrency=wanted) for _ in range(2)])
        assert [one for one in outcomes if isinstance(one, str)] == ["run.concurrency_full"]
        assert len(holder(wanted.key)) == 1
    assert Run.objects.count() == 8


def test_of_many_starts_at_once_none_is_lost_and_never_two_run() -> None:
    """PUB.4: queue"""
    outcomes = start_together([publication(ONE, concurrency=Concurrency(key="k", max=1)) for _ in range(8)])
    queued = [one.queued for one in outcomes if isinstance(one, Published)]
    assert sorted(queued) == [False] + [True] * 7
    assert (len(holder()), len(line())) == (1, 7)


def test_queued_runs_of_one_key_never_run_side_by_side(tmp_path: Path) -> None:
    runs = [publish_in_line(ONE, "k", max=2).run_id for _ in range(6)]
    gauge = Gauge(ok())
    drive_all(tmp_path, drivers=3, work=gauge, limit_s=60)
    assert gauge.most["work"] <= 2
    assert set(Run.objects.filter(pk__in=runs).values_list("status", flat=True)) == {"succeeded"}
    assert Slot.objects.count() == 0


def test_a_start_in_line_is_all_or_nothing() -> None:
    """PUB.1"""
    publish_in_line(ONE, "k")
    with counted() as seen:
        publish_in_line(ONE, "k")
    before = all_rows()
    wanted = publication(ONE, concurrency=Concurrency(key="k", max=1))
    failed = 0
    for number in range(1, 60):
        try:
            with failing_at(number):
                publish(wanted)
        except Injected:
            failed += 1
            assert all_rows() == before
        else:
            break
    assert 5 < failed <= len(seen)


def test_child_runs_never_occupy_the_key_of_their_parent() -> None:
    """PUB.9"""
    kid = workflow("  - { id: work, kind: shell, run: x }", name="kid", before="concurrency: { key: k }")
    text = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")
    parent = publish(publication(text, frozen=frozen_children(kid), concurrency=Concurrency(key="k", max=1))).run_id
    player = Player(parent)
    player.play()
    child = Run.objects.get(parent_run_id=parent)
    assert child.concurrency_max == 0
    play(child.pk)
    assert player.again().status == "succeeded"
    assert_sound()


# ---- holding --------------------------------------------------------------------------------------------------------


def test_a_run_holds_its_slot_while_it_runs_waits_or_is_paused() -> None:
    """PUB.5"""
    player = Player(publish_in_line(ASKS, "k").run_id)
    player.play()
    assert (player.run.status, holder()) == ("paused", [player.run_id])
    sweep()
    assert holder() == [player.run_id]


def test_a_dead_holder_keeps_its_slot_until_it_is_driven_on() -> None:
    """PUB.4"""
    player = Player(publish_in_line(ONE, "k").run_id)
    second = publish_in_line(ONE, "k").run_id
    player.step()
    expire(player.run_id)
    sweep()
    assert (holder(), line()) == ([player.run_id], [second])
    player.hand = player.take()
    player.step()
    assert (player.run.status, holder()) == ("blocked", [second])


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
def test_an_ended_run_gives_its_slot_to_the_next(end: str) -> None:
    """PUB.5"""
    player = Player(publish_in_line(ONE, "k").run_id)
    second = publish_in_line(ONE, "k").run_id
    player.step()
    if end == "cancelled":
        cancel(player.run_id)
        player.hand.reload()
        player.step()
    player.step({"v1.1": ok() if end == "succeeded" else bad()})
    assert (player.run.status, holder(), runnable()) == (end, [second], [second])


def test_a_blocked_run_gives_its_slot_back_and_stands_in_line_when_it_may_go_on() -> None:
    """PUB.5"""
    second = []
    player = Player(publish_in_line(ONE, "k").run_id)
    second.append(publish_in_line(ONE, "k").run_id)
    player.step()
    player.die()
    player.step()
    assert (player.run.status, holder()) == ("blocked", second)
    told = Reconciliation(decision="happened", actor="ann", reason="r", outcome="ok")
    reconcile(run_id=player.run_id, visit=1, reconciliation=told, now=START)
    assert (holder(), line(), runnable()) == (second, [player.run_id], second)
    play(second[0])
    assert (holder(), runnable()) == ([player.run_id], [player.run_id])
    assert player.again().status == "succeeded"
    assert Slot.objects.count() == 0
    assert_sound()


def test_a_blocked_run_takes_its_slot_again_at_once_when_it_is_free() -> None:
    player = blocked()
    assert holder() == []
    told = Reconciliation(decision="did_not", actor="ann", reason="r")
    reconcile(run_id=player.run_id, visit=1, reconciliation=told, now=START)
    assert holder() == [player.run_id]
    assert player.again().status == "succeeded"


def test_a_blocked_run_whose_question_is_answered_stands_in_line_too() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    branches:
      asks: [{ id: ask, kind: question, ask: "Well?" }]
      writes: [{ id: put, kind: shell, run: x }]
"""
    )
    player = blocked(text)
    second = publish_in_line(ONE, "k").run_id
    assert holder() == [second]
    question = Interrupt.objects.get(run_id=player.run_id)
    reply = Reply(voter="bob", recorded_by="bob", decision="answered")
    answer(run_id=player.run_id, visit=question.visit, reply=reply, now=START, now_ms=0)
    assert (holder(), line()) == ([second], [player.run_id])
    play(second)
    player.again()
    assert player.run.status == "blocked"
    assert holder() == []
    assert_sound()


def test_a_deadline_of_a_blocked_run_brings_it_into_the_line_by_the_sweep() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    branches:
      asks: [{ id: ask, kind: question, ask: "Well?", timeout: 1s, next: { expired: done } }]
      writes: [{ id: put, kind: shell, run: x }]
"""
    )
    player = Player(publish_in_line(text, "k").run_id, now=START)
    player.step()
    player.die()
    player.step()
    assert (player.run.status, holder(), runnable()) == ("blocked", [], [])
    assert sweep() >= 1
    assert (holder(), runnable()) == ([player.run_id], [player.run_id])
    player.pass_time(1_000)
    player.hand = player.take()
    player.step()
    assert Interrupt.objects.get(run_id=player.run_id).status == "expired"
    assert (player.run.status, holder(), sweep()) == ("blocked", [], 0)


def test_a_blocked_run_that_is_cancelled_needs_no_slot_to_end() -> None:
    player = blocked()
    second = publish_in_line(ONE, "k").run_id
    cancel(player.run_id)
    assert runnable() == [player.run_id, second]
    assert player.again().status == "cancelled"
    assert holder() == [second]
    assert_sound()


def test_a_run_that_is_cancelled_in_line_ends_at_once_and_leaves_the_line() -> None:
    first = publish_in_line(ONE, "k").run_id
    second, third = publish_in_line(ONE, "k").run_id, publish_in_line(ONE, "k").run_id
    cancel(second)
    assert runnable() == [first, second]
    assert play(second).status == "cancelled"
    assert (holder(), line()) == ([first], [third])
    assert_sound()


# ---- reopening ------------------------------------------------------------------------------------------------------


def test_reopening_takes_a_free_slot_again_and_is_refused_when_it_is_taken() -> None:
    """PUB.5, ABR.2"""
    player = Player(publish_in_line(ONE, "k").run_id)
    player.step()
    player.step({"v1.1": bad()})
    second = Player(publish_in_line(ONE, "k").run_id)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        reopen(run_id=player.run_id, actor="ann", reason="r", now=START)
    assert caught.value.code == "run.concurrency_full"
    assert caught.value.data["holders"] == [second.run_id]
    assert all_rows() == before
    second.play()
    reopen(run_id=player.run_id, actor="ann", reason="r", now=START)
    assert holder() == [player.run_id]
    assert player.again().status == "succeeded"
    assert_sound()


def test_a_blocked_run_that_is_woken_takes_its_slot_again_or_is_refused() -> None:
    """PUB.5, PLAN.5"""
    player = blocked()
    second = Player(publish_in_line(ONE, "k").run_id)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        wake(run_id=player.run_id)
    assert caught.value.code == "run.concurrency_full"
    assert all_rows() == before
    second.play()
    assert wake(run_id=player.run_id)
    assert holder() == [player.run_id]


# ---- repeated by the sweep ------------------------------------------------------------------------------------------


def test_a_slot_that_a_crash_kept_from_the_next_is_given_by_the_sweep() -> None:
    player = Player(publish_in_line(ONE, "k").run_id)
    second = publish_in_line(ONE, "k").run_id
    player.step()
    player.hand.step({"v1.1": ok()})  # committed; its consequences die with the driver
    assert (holder(), line(), runnable()) == ([], [second], [])
    sweep()
    assert (holder(), runnable()) == ([second], [second])


def test_the_database_itself_refuses_a_second_holder() -> None:
    first = publish_in_line(ONE, "k").run_id
    assert holder() == [first]
    with connection.cursor() as cursor:
        table = connection.ops.quote_name(Slot._meta.db_table)
        other = publish_run(ONE)
        columns = "kind, name, number, max, run_id, scope, entered_ms"
        sql = f"INSERT INTO {table} ({columns}) VALUES ('concurrency', 'k', 1, 1, %s, '', 0)"
        with pytest.raises(Exception, match=r"(?i)unique"):
            cursor.execute(sql, [other])
