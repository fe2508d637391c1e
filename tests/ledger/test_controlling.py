"""What people say to a run without its lease (promise CTL 2, 3; EVT 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.processes import run_in_threads
from tests.support.hand import Hand, expire
from tests.support.kinds import bad, kinds_with, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.errors import Refusal
from workflows.ledger.controlling import Accepted, send
from workflows.ledger.reopening import reopen
from workflows.models import Attempt, ControlMessage, Event, Run, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

TWO_STEPS = workflow("""
  - { id: first, kind: shell, run: make }
  - { id: second, kind: shell, run: make }
""")
WITH_FINALLY = workflow(
    "  - { id: work, kind: shell, run: make }", after="finally: [{ id: tidy, kind: shell, run: y }]"
)
TIMER = workflow("  - { id: nap, kind: wait, for: 1h }", after="finally: [{ id: tidy, kind: shell, run: y }]")


def say(run_id: int, kind: ControlKind = ControlKind.CANCEL, request: str = "r1", **payload: Any) -> Accepted:
    return send(run_id=run_id, kind=kind, payload=payload, request_id=request, sender="bob", now=START)


def refused(run_id: int, *words: Any, **payload: Any) -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        say(run_id, *words, **payload)
    assert all_rows() == before
    return caught.value


def state(run_id: int) -> tuple[str, Mapping[str, Any]]:
    run = Run.objects.get(pk=run_id)
    return run.status, json.loads(run.closing) if run.closing else {}


def test_the_number_of_a_message_is_the_event_of_its_acceptance() -> None:
    """CTL.1, REV.1"""
    run_id = publish_run(TWO_STEPS)
    Hand(run_id).step()
    accepted = say(run_id, ControlKind.PAUSE, reason="lunch")
    event = Event.objects.get(run_id=run_id, sequence=accepted.sequence)
    assert (accepted.new, accepted.driven) == (True, True)
    assert (event.type, event.actor, json.loads(event.payload)) == ("control_accepted", "bob", {"kind": "pause"})
    assert event.revision == Run.objects.get(pk=run_id).revision
    assert_sound()


def test_the_same_request_again_is_the_stored_message_and_writes_nothing() -> None:
    """CTL.2"""
    run_id = publish_run(TWO_STEPS)
    first = say(run_id, ControlKind.PAUSE, reason="lunch")
    before = all_rows()
    again = say(run_id, ControlKind.PAUSE, reason="lunch")
    assert again == Accepted(run_id=run_id, sequence=first.sequence, new=False, driven=False)
    assert all_rows() == before


@pytest.mark.parametrize(("kind", "reason"), [(ControlKind.PAUSE, "dinner"), (ControlKind.RESUME, "lunch")])
def test_the_same_request_with_other_content_is_a_conflict(kind: ControlKind, reason: str) -> None:
    """CTL.2"""
    run_id = publish_run(TWO_STEPS)
    say(run_id, ControlKind.PAUSE, reason="lunch")
    refusal = refused(run_id, kind, reason=reason)
    assert (refusal.code, refusal.message) == (
        "control.conflict",
        "Request id r1 was already used for something else in this run.",
    )


def test_request_ids_belong_to_a_run() -> None:
    """CTL.2"""
    assert say(publish_run(TWO_STEPS), ControlKind.PAUSE).new
    assert say(publish_run(TWO_STEPS), ControlKind.PAUSE).new


def test_idempotency_comes_before_the_terminal_status() -> None:
    """CTL.2"""
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id)
    hand.step()
    accepted = say(run_id, ControlKind.PAUSE)
    say(run_id, ControlKind.RESUME, "r2")
    hand.reload()
    hand.step({"v1.1": ok()})
    hand.step({"v2.1": ok()})
    assert state(run_id)[0] == "succeeded"
    assert say(run_id, ControlKind.PAUSE).sequence == accepted.sequence
    assert refused(run_id, ControlKind.PAUSE, "r3").message == f"Run {run_id} is already succeeded."
    assert refused(run_id, ControlKind.CANCEL, "r4").message == f"Run {run_id} is already succeeded."
    assert_sound()


def test_only_so_many_messages_wait() -> None:
    run_id = publish_run(TWO_STEPS)
    for number in range(128):
        say(run_id, ControlKind.STEER, f"s{number}", text="left")
    refusal = refused(run_id, ControlKind.STEER, "one more", text="left")
    assert (refusal.code, refusal.message) == (
        "control.too_many",
        f"Run {run_id} has 128 control messages pending; no more are taken.",
    )
    assert_sound()


def test_a_cancel_of_a_driven_run_waits_for_its_driver() -> None:
    """CTL.3"""
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id)
    hand.step()
    assert say(run_id).driven
    assert state(run_id) == ("running", {})
    hand.reload()
    decision = hand.step()
    assert decision.draft.cancelled_visits == [1]
    assert state(run_id) == ("running", {"by": "bob", "status": "cancelled"})
    hand.step({"v1.1": bad("cancelled")})
    assert state(run_id)[0] == "cancelled"
    assert events_of(run_id)[-4:] == ["control_accepted", "run_cancelling", "step_cancelled", "run_cancelled"]
    assert Run.objects.get(pk=run_id).ended_at == START
    assert_sound()


@pytest.mark.parametrize("text", [TWO_STEPS, TIMER], ids=["queued", "waiting"])
def test_a_cancel_of_a_run_that_nobody_drives_closes_it_and_wakes_it(text: str) -> None:
    """CTL.3"""
    run_id = publish_run(text)
    if text == TIMER:
        assert Hand(run_id).step().parks
    accepted = say(run_id)
    assert (accepted.new, accepted.driven) == (True, False)
    assert state(run_id)[1] == {"by": "bob", "status": "cancelled"}
    assert_sound()
    hand = Hand(run_id)
    hand.step()
    if text == TIMER:
        assert hand.running == ["v2.1"]
        hand.step({"v2.1": ok()})
    assert state(run_id)[0] == "cancelled"
    assert [visit.outcome for visit in Visit.objects.filter(run_id=run_id)] == (
        ["cancelled", "ok"] if text == TIMER else []
    )
    assert ControlMessage.objects.filter(consumed_at=None).count() == 0
    assert_sound()


def test_a_cancel_of_a_queued_run_still_runs_finally_once() -> None:
    """CTL.3, docs/architecture.md"""
    run_id = publish_run(WITH_FINALLY)
    say(run_id)
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v1.1"]
    hand.step({"v1.1": ok()})
    assert state(run_id)[0] == "cancelled"
    assert list(Visit.objects.filter(run_id=run_id).values_list("step", flat=True)) == ["tidy"]
    assert_sound()


def test_a_cancel_of_a_dead_owners_run_cancels_its_attempt() -> None:
    """CTL.3"""
    run_id = publish_run(WITH_FINALLY)
    Hand(run_id).step()
    expire(run_id)
    assert say(run_id).driven is False
    hand = Hand(run_id)
    hand.step()
    attempt = Attempt.objects.get(run_id=run_id, visit=1)
    assert (attempt.status, attempt.outcome) == ("cancelled", "cancelled")
    assert hand.running == ["v2.1"]
    hand.step({"v2.1": ok()})
    assert state(run_id)[0] == "cancelled"
    assert_sound()


def test_a_repeated_cancel_changes_nothing_whatever_its_request_id() -> None:
    """CTL.3, ABR.3"""
    run_id = publish_run(WITH_FINALLY)
    first = say(run_id)
    before = all_rows()
    assert say(run_id, ControlKind.CANCEL, "r2").sequence == first.sequence
    assert all_rows() == before
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    before = all_rows()
    assert say(run_id, ControlKind.CANCEL, "r3") == Accepted(
        run_id=run_id, sequence=first.sequence, new=False, driven=False
    )
    assert all_rows() == before


def test_a_first_cancel_during_closing_is_refused() -> None:
    """CTL.3"""
    run_id = publish_run(WITH_FINALLY)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    assert state(run_id)[1]["status"] == "succeeded"
    refusal = refused(run_id)
    assert (refusal.code, refusal.message) == ("run.terminal", f"Run {run_id} is already closing.")


def test_a_cancel_before_the_success_wins_and_the_success_is_kept_as_late() -> None:
    """SET.3"""
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id)
    hand.step()
    say(run_id)
    hand.reload()
    hand.step()
    hand.step({"v1.1": ok("done after all")})
    attempt = Attempt.objects.get(run_id=run_id)
    assert state(run_id)[0] == "cancelled"
    assert (attempt.status, attempt.outcome, attempt.late_outcome, attempt.marks) == (
        "cancelled",
        "cancelled",
        "ok",
        '["late"]',
    )
    assert attempt.late_output_digest is not None
    assert Visit.objects.get(run_id=run_id).output_digest is None
    assert [type for type in events_of(run_id) if type.startswith("run_")] == [
        "run_started",
        "run_cancelling",
        "run_cancelled",
    ]
    assert_sound()


def test_a_success_in_hand_is_settled_before_the_cancel_applies() -> None:
    """SET.3"""
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id)
    hand.step()
    say(run_id)
    hand.reload()
    hand.step({"v1.1": ok("in time")})
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, attempt.late_outcome) == ("succeeded", "")
    assert state(run_id)[0] == "cancelled"
    assert Visit.objects.count() == 1
    assert_sound()


def test_a_cancel_that_meets_the_last_success_is_too_late() -> None:
    """SET.3"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make }"))
    hand = Hand(run_id)
    hand.step()
    say(run_id)
    hand.reload()
    hand.step({"v1.1": ok()})
    assert state(run_id)[0] == "succeeded"
    assert ControlMessage.objects.get().consumed_at == START
    assert_sound()


def test_a_run_that_failed_beside_a_cancel_can_be_cancelled_after_it_was_reopened() -> None:
    """ADM.8, ABR.2"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make }"))
    hand = Hand(run_id)
    hand.step()
    say(run_id)
    hand.reload()
    hand.step({"v1.1": bad()})
    assert state(run_id)[0] == "failed"
    reopen(run_id=run_id, actor="bob", reason="again", now=START)
    assert say(run_id, ControlKind.CANCEL, "r2").new is True
    Hand(run_id).step()
    assert state(run_id)[0] == "cancelled"
    assert_sound()


def test_a_message_committed_since_the_decision_makes_the_driver_decide_again() -> None:
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id)
    hand.step()
    decision = hand.decide({"v1.1": ok()})
    say(run_id)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        hand.write(hand.batch(decision))
    revision = Run.objects.get(pk=run_id).revision
    assert caught.value.message == f"Run {run_id} changed in between (revision {revision}); nothing was written."
    assert all_rows() == before


def test_a_failure_at_any_statement_of_an_acceptance_leaves_nothing() -> None:
    """EVT.1, REV.1"""
    run_id = publish_run(TWO_STEPS)
    before = all_rows()
    for number in range(1, 40):
        try:
            with failing_at(number) as seen:
                say(run_id)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 6
    assert_sound()


def test_fifty_writers_at_once_leave_no_hole_in_the_numbers() -> None:
    """EVT.1: every third one is refused and rolled back."""
    run_id = publish_run(TWO_STEPS, {})
    say(run_id, ControlKind.STEER, "used", text="x")

    def write(number: int) -> Accepted:
        if number % 3 == 0:
            return say(run_id, ControlKind.STEER, "used", text="something else")
        return say(run_id, ControlKind.STEER, f"w{number}", text="x")

    answers = run_in_threads(*(lambda number=number: write(number) for number in range(50)))
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    accepted = [answer.sequence for answer in answers if isinstance(answer, Accepted)]
    assert {refusal.code for refusal in refusals} == {"control.conflict"}
    assert (len(refusals), len(accepted)) == (17, 33)
    assert sorted(accepted) == list(range(3, 36))
    assert list(Event.objects.filter(run_id=run_id).values_list("sequence", flat=True)) == list(range(1, 36))
    assert_sound()


def test_a_pause_lets_effects_settle_and_starts_nothing() -> None:
    """CTL.4"""
    run_id = publish_run(TWO_STEPS)
    hand = Hand(run_id, kinds=kinds_with())
    hand.step()
    say(run_id, ControlKind.PAUSE, reason="lunch")
    hand.reload()
    assert not hand.step().parks
    assert hand.step({"v1.1": ok()}).parks
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.visits) == ("paused", 1)
    assert json.loads(run.reasons) == [{"cause": "held"}]
    assert json.loads(run.held) == {"by": "bob", "reason": "lunch", "since": START.isoformat()}
    say(run_id, ControlKind.RESUME, "r2")
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v2.1"]
    hand.step({"v2.1": ok()})
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()
