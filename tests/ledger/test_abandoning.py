"""Abandon: from every live status, at once, and undone by reopening (promises ABR 1, 2; CHD.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.errors import Refusal
from workflows.ledger.abandoning import Abandoned, abandon
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.late_results import keep_late_result
from workflows.ledger.publishing import Concurrency
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, AuditEntry, ControlMessage, Event, Interrupt, Lease, Plan, Run, Scope, Slot, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

WORK = workflow("  - { id: work, kind: shell, run: make }", after="finally: [{ id: tidy, kind: shell, run: y }]")
READS = workflow("  - { id: look, kind: shell, run: make, access: read }")
TIMER = workflow("  - { id: nap, kind: wait, for: 1h }")
ASKS = workflow("  - { id: check, kind: approval, ask: Go? }")
LIMITED = workflow("  - { id: work, kind: shell, run: make, limit: { group: db, max: 1 } }")
ITEMS = workflow(
    """
  - id: each
    kind: map
    over: [a, b, c]
    as: one
    do: [{ id: fetch, kind: shell, run: make, access: read }]
"""
)


def give_up(run_id: int, reason: str = "nobody needs it") -> Abandoned:
    return abandon(run_id=run_id, actor="shell:root as alice", reason=reason, now=START)


def open_again(run_id: int) -> int | None:
    return reopen(run_id=run_id, actor="alice", reason="it was needed", now=START)


def refused(run_id: int, reason: str = "r") -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        give_up(run_id, reason)
    assert all_rows() == before
    return caught.value


def parked(text: str) -> int:
    run_id = publish_run(text)
    assert Hand(run_id).step().parks
    return run_id


def queued() -> int:
    return publish_run(WORK)


def running() -> int:
    run_id = publish_run(WORK)
    Hand(run_id).step()
    return run_id


def waiting() -> int:
    return parked(TIMER)


def paused() -> int:
    return parked(ASKS)


def held() -> int:
    run_id = publish_run(TIMER)
    send(run_id=run_id, kind=ControlKind.PAUSE, payload={}, request_id="p", sender="bob", now=START)
    assert Hand(run_id).step().parks
    return run_id


def blocked() -> int:
    run_id = running()
    expire(run_id)
    assert Hand(run_id).step().parks
    return run_id


def closing() -> int:
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    assert Run.objects.get(pk=run_id).closing
    return run_id


@pytest.mark.parametrize(
    ("made", "was"),
    [
        (queued, "queued"),
        (running, "running"),
        (waiting, "waiting"),
        (paused, "paused"),
        (held, "paused"),
        (blocked, "blocked"),
        (closing, "running"),
    ],
)
def test_a_live_run_is_abandoned_at_once_whatever_it_is_doing(made: Any, was: str) -> None:
    """ABR.1: from queued, running, waiting, paused, blocked, and a hanging ``finally``; one event, one audit entry."""
    run_id = made()
    before = Run.objects.get(pk=run_id)
    assert before.status == was
    abandoned = give_up(run_id)
    run = Run.objects.get(pk=run_id)
    assert (abandoned.was, run.status, run.ended_at, run.wake_at_ms) == (was, "abandoned", START, None)
    assert run.revision == before.revision + 1
    event = Event.objects.get(run_id=run_id, type="run_abandoned")
    assert (event.sequence, event.actor, json.loads(event.payload)) == (
        run.next_event - 1,
        "shell:root as alice",
        {"reason": "nobody needs it"},
    )
    entry = AuditEntry.objects.get(run=run_id)
    assert (entry.action, entry.actor, entry.reason) == ("run.abandon", "shell:root as alice", "nobody needs it")
    assert Lease.objects.get(run_id=run_id).expires_ms == 0
    assert_sound()


def test_abandoning_needs_a_reason() -> None:
    """ABR.1"""
    refusal = refused(queued(), " \n")
    assert (refusal.code, refusal.message) == ("input.invalid", "Abandoning a run needs a reason (`--reason`).")


def test_a_run_that_is_over_is_not_abandoned() -> None:
    """ABR.1"""
    run_id = publish_run(READS)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    assert refused(run_id).message == f"Run {run_id} is already succeeded."
    again = queued()
    give_up(again)
    assert refused(again).message == f"Run {again} is already abandoned."


def test_a_run_that_is_not_there() -> None:
    assert refused(7).code == "run.not_found"


def test_the_driver_of_an_abandoned_run_writes_nothing_any_more() -> None:
    """ABR.1, LEASE.4"""
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    decision = hand.decide({"v1.1": ok()})
    give_up(run_id)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        hand.write(hand.batch(decision))
    assert caught.value.message == f"Run {run_id} is already abandoned."
    assert all_rows() == before


def test_a_result_in_flight_is_kept_as_a_late_one_on_its_attempt() -> None:
    """ABR.1, SET.4"""
    run_id = running()
    give_up(run_id)
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, json.loads(attempt.marks)) == ("interrupted", ["uncertain"])
    assert keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=None)
    attempt.refresh_from_db()
    assert (attempt.status, attempt.late_outcome, json.loads(attempt.marks)) == (
        "interrupted",
        "ok",
        ["late", "uncertain"],
    )
    assert Run.objects.get(pk=run_id).status == "abandoned"
    assert_sound()


def test_open_questions_are_closed_in_the_same_transaction_and_a_later_answer_is_refused() -> None:
    """ABR.1, INT.7"""
    run_id = paused()
    assert give_up(run_id).questions == 1
    question = Interrupt.objects.get(run_id=run_id)
    assert (question.status, question.revision_settled) == ("closed", Run.objects.get(pk=run_id).revision)
    reply = Reply(voter="bob", recorded_by="bob", decision="approved", shown_digest=question.shown_digest)
    with pytest.raises(Refusal) as caught:
        answer(run_id=run_id, visit=1, reply=reply, now=START)
    assert (caught.value.code, caught.value.http_status) == ("interrupt.closed", 409)
    assert_sound()


def test_places_of_an_abandoned_run_are_free() -> None:
    """ABR.1, PUB.5, MON.10"""
    place = Concurrency(key="host", max=1)
    run_id = publish_run(LIMITED, concurrency=place)
    hand = Hand(run_id)
    hand.step()
    assert Slot.objects.filter(run_id=run_id).count() == 2
    assert give_up(run_id).freed == (("concurrency", "host"), ("limit", "db"))
    assert not Slot.objects.filter(run_id=run_id).exists()
    assert_sound()


@ledger_transaction
def corrupt_plans() -> None:
    Plan.objects.update(document="{}")


@pytest.mark.unsound
def test_a_run_with_a_corrupt_plan_can_be_abandoned() -> None:
    """PLAN.2, ABR.1"""
    run_id = running()
    corrupt_plans()
    assert give_up(run_id).interrupted == 1
    assert Run.objects.get(pk=run_id).status == "abandoned"


def test_messages_that_nobody_carried_out_mean_nothing_any_more() -> None:
    """ABR.1, CTL.5: signals and steering stay."""
    run_id = running()
    for number, kind in enumerate((ControlKind.CANCEL, ControlKind.PAUSE, ControlKind.SIGNAL, ControlKind.STEER)):
        send(run_id=run_id, kind=kind, payload={"name": "x"}, request_id=str(number), sender="bob", now=START)
    give_up(run_id)
    pending = ControlMessage.objects.filter(run_id=run_id, consumed_at=None)
    assert sorted(pending.values_list("kind", flat=True)) == ["signal", "steer"]
    assert_sound()


def test_a_failure_at_any_statement_of_an_abandonment_leaves_nothing() -> None:
    """ABR.1, REV.1"""
    run_id = running()
    before = all_rows()
    for number in range(1, 60):
        try:
            with failing_at(number) as seen:
                give_up(run_id)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 10
    assert_sound()


# ---- opened again (ABR.2) --------------------------------------------------------------------------------------------


def test_a_waiting_run_goes_on_where_it_stood() -> None:
    """ABR.2: a wrong abandonment is undone by reopening; nothing is done twice."""
    run_id = parked(workflow("  - { id: nap, kind: wait, for: 1h }\n  - { id: work, kind: shell, run: make }"))
    scope = Scope.objects.filter(run_id=run_id).values().get()
    give_up(run_id)
    assert open_again(run_id) is None
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.ended_at, run.visits) == ("queued", None, 1)
    assert Scope.objects.filter(run_id=run_id).values().get() == scope
    hand = Hand(run_id)
    hand.pass_time(3_600_000)
    hand.step()
    hand.step({"v2.1": ok()})
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert AuditEntry.objects.filter(run=run_id).values_list("action", flat=True).first() == "run.resume"
    assert_sound()


def test_a_read_that_was_interrupted_is_dispatched_again_with_its_key() -> None:
    """ABR.2, ADM.5"""
    run_id = publish_run(READS)
    Hand(run_id).step()
    give_up(run_id)
    open_again(run_id)
    hand = Hand(run_id)
    hand.step()
    first, second = Attempt.objects.filter(run_id=run_id).order_by("number")
    assert (first.status, second.status, second.dispatch_id) == ("interrupted", "running", first.dispatch_id)
    hand.step({"v1.2": ok()})
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


def test_a_write_that_was_interrupted_waits_to_be_reconciled() -> None:
    """ABR.2, ADM.5"""
    run_id = running()
    give_up(run_id)
    open_again(run_id)
    assert Hand(run_id).step().parks
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.reasons)[0]["cause"]) == ("blocked", "reconcile")
    assert Attempt.objects.filter(run_id=run_id).count() == 1
    assert_sound()


def test_a_question_is_asked_anew() -> None:
    """ABR.2, INT.7"""
    run_id = paused()
    give_up(run_id)
    open_again(run_id)
    assert Hand(run_id).step().parks
    assert list(Interrupt.objects.filter(run_id=run_id).values_list("visit", "attempt", "status")) == [
        (1, 1, "closed"),
        (1, 2, "open"),
    ]
    assert Run.objects.get(pk=run_id).status == "paused"
    assert_sound()


def test_items_of_a_map_go_on_and_those_that_are_ok_stay() -> None:
    """ABR.2"""
    run_id = publish_run(ITEMS)
    hand = Hand(run_id)
    hand.step()
    hand.step({hand.running[0]: ok()})
    give_up(run_id)
    open_again(run_id)
    hand = Hand(run_id)
    hand.step()
    assert len(hand.running) == 2
    hand.step({name: ok() for name in hand.running})
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert Attempt.objects.filter(run_id=run_id, status="succeeded").count() == 3
    assert Visit.objects.filter(run_id=run_id, step="fetch").count() == 3
    assert_sound()


def test_who_waited_in_line_stands_in_line_again() -> None:
    """ABR.2, MON.10"""
    first = publish_run(LIMITED)
    Hand(first).step()
    second = publish_run(LIMITED)
    assert Hand(second).step().parks
    give_up(second)
    assert not Slot.objects.filter(run_id=second).exists()
    open_again(second)
    assert Hand(second).step().parks
    assert Slot.objects.filter(run_id=second, number=None).count() == 1
    assert Run.objects.get(pk=second).status == "waiting"
    assert_sound()


def test_a_hold_ends_with_the_run_it_held() -> None:
    """ABR.2"""
    run_id = held()
    give_up(run_id)
    open_again(run_id)
    Hand(run_id).step()
    assert (Run.objects.get(pk=run_id).status, Run.objects.get(pk=run_id).held) == ("waiting", "")
    assert_sound()


def test_a_finally_that_hung_goes_on_and_the_run_ends_as_it_would_have() -> None:
    """ABR.1, ABR.2"""
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad()})
    give_up(run_id)
    open_again(run_id)
    assert Hand(run_id).step().parks
    assert json.loads(Run.objects.get(pk=run_id).closing)["status"] == "failed"
    assert events_of(run_id)[-1] == "run_blocked"
    assert_sound()


def test_a_run_whose_slot_is_taken_is_not_opened_again() -> None:
    """PUB.5, ABR.2"""
    place = Concurrency(key="host", max=1)
    run_id = publish_run(TIMER, concurrency=place)
    give_up(run_id)
    other = publish_run(TIMER, concurrency=place)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        open_again(run_id)
    assert (caught.value.code, caught.value.http_status) == ("run.concurrency_full", 409)
    assert caught.value.message == f"No slot of host is free (run {other}); the limit is 1."
    assert {**all_rows(), "LimitGroup": []} == {**before, "LimitGroup": []}
    give_up(other)
    open_again(run_id)
    assert Run.objects.get(pk=run_id).status == "queued"
    assert_sound()
