"""Every window in which something may die or come between: one wins, the others are told, nothing is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.external.programs import LABELLING, Program, offered, open_offer
from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.clock import unix_ms
from workflows.engine import recovery
from workflows.engine.draft import Draft
from workflows.errors import Refusal
from workflows.ledger.abandoning import abandon
from workflows.ledger.controlling import send
from workflows.ledger.external import lapse
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import database_thread
from workflows.models import Attempt, ExternalOffer, LimitStart, Run, Slot, Visit
from workflows.statuses import ControlKind, OfferStatus

pytestmark = pytest.mark.django_db(transaction=True)

MANY = workflow(
    """
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6, 7, 8] }
    concurrency: 20
    do: [{ id: work, kind: external, queue: q, input: "${ item }" }]
""",
    after='output: "${ steps.each.counts.ok }"',
)


def fail_everywhere(call: Callable[[], Any]) -> int:
    """Let each statement of a call fail, the last time none; how many there were. A failed one leaves nothing."""
    before = all_rows()
    for number in range(1, 200):
        try:
            with failing_at(number):
                call()
        except Injected:
            assert all_rows() == before
        else:
            return number - 1
    raise AssertionError("it never came to its end")


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What calls that begin at the same moment answer, refusals included, in the order they were given."""
    answers: list[Any] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def run(position: int) -> None:
        with database_thread():
            start.wait(10)
            try:
                answers[position] = calls[position]()
            except Refusal as refusal:
                answers[position] = refusal

    threads = [threading.Thread(target=run, args=(position,)) for position in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def cancel(run_id: int) -> None:
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=datetime.now(UTC))


# ---- crashes --------------------------------------------------------------------------------------------------------


def test_an_offer_appears_whole_or_not_at_all() -> None:
    """EXT.1"""
    player = Player(publish_run(LABELLING))
    batch = player.hand.batch(player.hand.decide())
    assert fail_everywhere(lambda: player.hand.write(batch)) > 5
    assert open_offer(player).number == 1
    assert_sound()


def test_each_verb_of_a_program_is_whole_or_nothing() -> None:
    """EXT.2, EXT.4, EXT.5"""
    player, first, second = offered(), Program("a"), Program("b")
    offer = open_offer(player)
    assert fail_everywhere(lambda: first.reserve(offer)) > 5
    offer.refresh_from_db()
    late = {"offer_id": offer.pk, "now": datetime.now(UTC), "now_ms": offer.lease_until_ms}
    assert fail_everywhere(lambda: lapse(**late)) > 3
    second.reserve(open_offer(player))
    assert fail_everywhere(lambda: first.finish("late")) > 3
    assert fail_everywhere(lambda: second.finish("in time")) > 5
    player.again()
    assert output_of(player.run_id)[1] == "in time"


def test_a_worker_that_dies_after_the_offer_leaves_it_to_programs_and_the_next_one() -> None:
    """EXT.1, KILL"""
    text = workflow(
        """
  - id: both
    kind: parallel
    branches:
      one: [ { id: out, kind: external, queue: q } ]
      two: [ { id: here, kind: shell, run: x, access: read } ]
"""
    )
    player = Player(publish_run(text))
    player.step()
    key = Attempt.objects.get(status="paused").dispatch_id
    program = Program()
    told = program.reserve(open_offer(player))
    player.die()
    player.step()
    assert told is not None
    assert told.dispatch_id == key
    assert program.finish("done").lost == ""
    player.settle()
    assert player.run.status == "succeeded"
    assert Attempt.objects.filter(visit=told.visit).count() == 1


def test_a_result_that_came_while_a_driver_decided_is_used_by_its_next_decision() -> None:
    """EXT.5"""
    text = workflow(
        """
  - id: both
    kind: parallel
    branches:
      one: [ { id: out, kind: external, queue: q } ]
      two: [ { id: here, kind: shell, run: x } ]
"""
    )
    player = Player(publish_run(text))
    player.step()
    program = Program()
    program.reserve(open_offer(player))
    player.hand.reload()
    decision = player.hand.decide({name: player.result(name) for name in player.running()})
    program.finish("done")
    with pytest.raises(Refusal) as caught:
        player.hand.write(player.hand.batch(decision))
    assert caught.value.code == "run.conflict"
    player.settle()
    assert player.run.status == "succeeded"
    assert Visit.objects.get(run=player.run, step="out").outcome == "ok"


def test_a_stored_result_survives_the_driver_that_was_about_to_use_it() -> None:
    """EXT.5, KILL"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    program.finish("stored")
    player.hand = player.take()
    batch = player.hand.batch(player.hand.decide())
    before = all_rows()
    with failing_at(3), pytest.raises(Injected):
        player.hand.write(batch)
    assert all_rows() == before
    expire(player.run_id)
    player.again()
    assert output_of(player.run_id)[1] == "stored"


# ---- races ----------------------------------------------------------------------------------------------------------


def test_of_many_programs_each_gets_another_offer() -> None:
    """EXT.2"""
    player = offered(MANY)
    offers = list(ExternalOffer.objects.order_by("pk"))
    programs = [Program(f"t{number}") for number in range(12)]

    def take(program: Program) -> int | None:
        for offer in offers:
            for waits in (False, True):
                told = program.reserve(offer, waits=waits)
                if told is not None:
                    return told.visit
        return None

    got = at_once(*(lambda program=program: take(program) for program in programs))
    visits = [visit for visit in got if visit is not None]
    assert sorted(visits) == sorted(offer.visit for offer in offers)
    assert len(got) - len(visits) == 4
    busy = [program for program, visit in zip(programs, got, strict=True) if visit is not None]
    assert all(answer.new for answer in at_once(*(program.finish for program in busy)))
    player.again()
    assert output_of(player.run_id) == 8
    assert_sound()


def test_of_two_different_results_one_is_stored_and_the_other_is_refused() -> None:
    """EXT.5"""
    for _ in range(5):
        player, program = offered(), Program(f"of run {Run.objects.count()}")
        program.reserve(open_offer(player))
        answers = at_once(lambda p=program: p.finish("a"), lambda p=program: p.finish("b"))
        refusals = [answer.code for answer in answers if isinstance(answer, Refusal)]
        assert refusals == ["attempt.conflict"]
        player.again()
        stored = "ab"[[isinstance(answer, Refusal) for answer in answers].index(False)]
        assert output_of(player.run_id)[1] == stored


def test_the_same_result_twice_at_once_is_stored_once() -> None:
    """EXT.5"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    answers = at_once(*(lambda: program.finish("a") for _ in range(4)))
    assert sorted(answer.new for answer in answers) == [False, False, False, True]
    assert events_of(player.run_id).count("work_finished") == 1


@pytest.mark.parametrize("first", ["result", "timeout", "both"])
def test_of_a_result_and_the_timeout_one_wins_and_the_other_is_told(first: str) -> None:
    """EXT.8"""
    text = workflow("  - { id: it, kind: external, queue: q, timeout: 1m, next: { timed_out: continue } }")
    player, program = offered(text), Program()
    program.reserve(open_offer(player), now_ms=unix_ms(player.hand.now))
    player.pass_time(60_000)
    player.hand = player.take()
    if first == "result":
        finished = program.finish("mine")
        player.hand.reload()
        player.step()
    elif first == "timeout":
        player.step()
        finished = program.finish("mine")
    else:
        finished, _ = at_once(lambda: program.finish("mine"), player.step)
    outcome = Visit.objects.get().outcome
    assert player.run.status == "succeeded"
    assert outcome == ("timed_out" if finished.lost else "ok")
    assert first == "both" or outcome == {"result": "ok", "timeout": "timed_out"}[first]
    assert ExternalOffer.objects.get().status == (OfferStatus.WITHDRAWN if finished.lost else OfferStatus.FINISHED)


@pytest.mark.parametrize("first", ["result", "cancel", "both"])
def test_of_a_result_and_a_cancel_one_wins_and_the_other_is_told(first: str) -> None:
    """EXT.8, SET.3"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))

    def carry_out() -> None:
        cancel(player.run_id)
        player.again()

    if first == "result":
        finished = program.finish("mine")
        player.again()
        with pytest.raises(Refusal):
            cancel(player.run_id)
    elif first == "cancel":
        carry_out()
        finished = program.finish("mine")
    else:
        finished, _ = at_once(lambda: program.finish("mine"), carry_out)
        player.run.refresh_from_db()
    if first != "both":
        assert player.run.status == {"result": "succeeded", "cancel": "cancelled"}[first]
        assert bool(finished.lost) is (first == "cancel")
    assert player.run.status in ("succeeded", "cancelled")
    assert not finished.lost or player.run.status == "cancelled"


def test_of_a_renewal_and_the_end_of_a_lease_one_wins() -> None:
    """EXT.3, EXT.4"""
    player, program = offered(), Program()
    offer = open_offer(player)
    told = program.reserve(offer)
    assert told is not None
    late = {"offer_id": offer.pk, "now": datetime.now(UTC), "now_ms": told.lease_until_ms}
    renewed, lapsed = at_once(lambda: program.renew(now=told.lease_until_ms - 1), lambda: lapse(**late))
    assert isinstance(renewed, Refusal) is lapsed
    offer.refresh_from_db()
    assert offer.status == (OfferStatus.LAPSED if lapsed else OfferStatus.RESERVED)


# ---- ends and beginnings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reserved", [True, False])
def test_abandoned_work_is_withdrawn_and_offered_again_when_the_run_is_opened(reserved: bool) -> None:
    """EXT.8, ABR.1, ABR.2: under the same key if a program may have done it."""
    player, program = offered(), Program("a")
    key = Attempt.objects.get().dispatch_id
    if reserved:
        program.reserve(open_offer(player))
    abandon(run_id=player.run_id, actor="ann", reason="enough", now=datetime.now(UTC))
    assert ExternalOffer.objects.get().status == OfferStatus.WITHDRAWN
    assert_sound()
    if reserved:
        assert program.finish("late").lost == "the run was abandoned"
    reopen(run_id=player.run_id, actor="ann", reason="after all", now=datetime.now(UTC))
    player.again()
    again = Program("b").reserve(open_offer(player))
    assert again is not None
    assert again.attempt == 2
    assert (again.dispatch_id == key) is reserved


def test_a_result_that_was_stored_before_the_run_was_abandoned_is_used_when_it_goes_on() -> None:
    """EXT.5, ABR.2"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    program.finish("stored")
    abandon(run_id=player.run_id, actor="ann", reason="enough", now=datetime.now(UTC))
    reopen(run_id=player.run_id, actor="ann", reason="after all", now=datetime.now(UTC))
    player.again()
    assert output_of(player.run_id) == ["ok", "stored", 1]


def test_a_step_that_is_skipped_withdraws_its_work() -> None:
    """EXT.8"""
    player, program = offered(), Program()
    program.reserve(open_offer(player))
    message = {"visit": 1, "reason": "no need"}
    now = datetime.now(UTC)
    send(run_id=player.run_id, kind=ControlKind.SKIP, payload=message, request_id="s", sender="ann", now=now)
    player.again()
    assert (player.run.status, Visit.objects.get().outcome) == ("succeeded", "skipped")
    assert program.finish("late").lost == "the step was stopped"


def test_an_item_that_is_not_needed_any_more_withdraws_its_work() -> None:
    """EXT.8"""
    text = workflow(
        """
  - id: race
    kind: parallel
    join: any
    branches:
      one: [ { id: first, kind: external, queue: q } ]
      two: [ { id: second, kind: external, queue: q } ]
"""
    )
    player, program = offered(text), Program()
    one, two = ExternalOffer.objects.order_by("visit")
    program.reserve(one)
    program.finish("won")
    player.again()
    two.refresh_from_db()
    assert (player.run.status, two.status) == ("succeeded", "withdrawn")


def test_work_of_a_closing_section_is_offered_after_a_cancel() -> None:
    """EXT.2"""
    text = workflow(
        "  - { id: main, kind: external, queue: q }",
        after="finally:\n  - { id: tidy, kind: external, queue: q }",
    )
    player, program = offered(text), Program()
    cancel(player.run_id)
    player.again()
    assert program.reserve(open_offer(player)) is not None
    program.finish()
    player.again()
    assert player.run.status == "cancelled"


def test_work_under_a_limit_is_offered_when_it_has_a_place_and_keeps_it_until_it_is_settled() -> None:
    """EXT.1, MON.10"""
    text = workflow("  - { id: it, kind: external, queue: q, limit: { group: gpu, max: 1 } }")
    first = offered(text)
    first.again()
    second = offered(text)
    assert ExternalOffer.objects.filter(status="open").count() == 1
    assert json.loads(second.run.reasons)[0]["cause"] == "slot"
    program = Program()
    program.reserve(open_offer(first))
    program.finish("done")
    first.again()
    assert first.run.status == "succeeded"
    assert Slot.objects.get(number__isnull=False).run_id == second.run_id
    second.again()
    assert Program("b").reserve(open_offer(second)) is not None


def test_a_hand_that_reads_the_run_again_knows_the_offers() -> None:
    hand = Hand(publish_run(LABELLING))
    hand.step()
    known = hand.memory.offer(1)
    hand.reload()
    assert known == hand.memory.offer(1)


def test_each_offer_is_a_start_under_a_rate() -> None:
    """MON.11"""
    text = workflow("  - { id: it, kind: external, queue: q, limit: { group: slow, rate: 1/1h } }")
    first = offered(text)
    first.again()
    second = offered(text)
    assert ExternalOffer.objects.filter(status="open").count() == 1
    assert LimitStart.objects.count() == 1
    assert {json.loads(one.run.reasons)[0]["cause"] for one in (first, second)} == {"external", "slot"}


def test_a_run_at_which_drivers_die_takes_its_work_back() -> None:
    """EXT.8, ADM.8"""
    text = workflow(
        """
  - id: both
    kind: parallel
    branches:
      one: [ { id: out, kind: external, queue: q } ]
      two: [ { id: here, kind: shell, run: x, access: read } ]
"""
    )
    player, program = Player(publish_run(text)), Program()
    player.step()
    program.reserve(open_offer(player))
    player.hand.reload()
    draft = Draft(player.hand.plan, player.hand.memory, player.kinds, now=player.hand.now, new_id=player.hand.new_id)
    recovery.poison(draft, 5)
    player.hand.write(draft.batch(commit_id="c", parks=True, release=True, wake_at_ms=None))
    assert player.run.status == "failed"
    assert ExternalOffer.objects.get().status == OfferStatus.WITHDRAWN
    assert program.finish("late").kept is True
