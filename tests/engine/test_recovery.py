"""What becomes of an attempt whose owner is gone (promise ADM 5, 6, 10; PLAN 4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import Hand, expire
from tests.support.kinds import interrupted, kinds_with, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from workflows.engine.contract import Effect
from workflows.errors import Refusal
from workflows.functions import Registry, TaskFunction
from workflows.jsonvalue import store
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Attempt, Event, Run, Scope, Visit
from workflows.statuses import ControlKind
from workflows.steps.task import TaskKind

pytestmark = pytest.mark.django_db(transaction=True)


def one(options: str, *, after: str = "") -> str:
    return workflow(f"  - {{ id: work, kind: shell, run: make, {options} }}", after=after)


WRITE = one("access: write, next: { failed: done }", after="output: ${ steps.work.output }")


def orphaned(text: str, **options: Any) -> tuple[int, Hand]:
    """A run whose first owner died during its first effect, and the hand of the next owner, who has not decided yet."""
    run_id = publish_run(text)
    Hand(run_id, owner="first", **options).step()
    expire(run_id)
    return run_id, Hand(run_id, owner="second", **options)


def attempts(run_id: int, *columns: str) -> list[tuple[Any, ...]]:
    return list(Attempt.objects.filter(run_id=run_id).order_by("visit", "number").values_list(*columns))


def decide(run_id: int, decision: Any, visit: int = 1, **more: Any) -> int:
    words = Reconciliation(decision=decision, actor="bob", reason="I looked", **more)
    return reconcile(run_id=run_id, visit=visit, reconciliation=words, now=START)


@pytest.mark.parametrize(
    "options", ["access: read", "access: write, idempotent: true"], ids=["read", "idempotent write"]
)
def test_a_read_or_idempotent_step_is_dispatched_again_with_the_same_id(options: str) -> None:
    """ADM.5"""
    run_id, hand = orphaned(one(options))
    hand.step()
    assert hand.running == ["v1.2"]
    first, second = attempts(run_id, "number", "status", "dispatch_id", "epoch", "worker")
    assert first == (1, "interrupted", second[2], 1, "first")
    assert second == (2, "running", first[2], 2, "second")
    assert events_of(run_id) == [
        "run_started",
        "step_started",
        "lease_recovered",
        "step_interrupted",
        "step_started",
    ]
    event = Event.objects.get(run_id=run_id, type="step_interrupted")
    assert (event.visit, event.attempt, json.loads(event.payload)) == (1, 1, {"reason": "owner_lost", "step": "work"})
    hand.step({"v1.2": ok()})
    visit = Visit.objects.get(run_id=run_id)
    assert (visit.status, visit.attempts) == ("settled", 1)
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


def test_a_write_is_not_repeated_its_scope_parks_and_the_run_is_blocked() -> None:
    """ADM.5"""
    run_id, hand = orphaned(WRITE)
    assert hand.step().parks
    assert hand.running == []
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.reasons)) == (
        "blocked",
        [{"cause": "reconcile", "step": "work", "visit": 1}],
    )
    assert attempts(run_id, "number", "status", "marks") == [(1, "interrupted", '["uncertain"]')]
    assert json.loads(Attempt.objects.get(run_id=run_id).error) == {
        "code": "crashed",
        "message": "The worker ended while this attempt was running.",
    }
    assert_sound()


def test_waiting_for_ever_changes_nothing_about_an_uncertain_write() -> None:
    """ADM.5"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        Hand(run_id, at_ms=4_000_000_000_000)
    assert caught.value.code == "run.parked"
    hand.pass_time(1_000_000_000_000)
    decision = hand.decide()
    assert (decision.draft.is_empty, decision.parks, decision.waits_until_ms) == (True, True, None)
    assert all_rows() == before


@pytest.mark.parametrize(
    ("retry", "repeats"),
    [
        ("{ attempts: 3 }", False),
        ("{ attempts: 3, errors: [timeout] }", False),
        ("{ attempts: 3, errors: [crashed] }", True),
    ],
    ids=["default", "another error", "crashed"],
)
def test_only_a_retry_that_names_crashed_repeats_a_write(retry: str, repeats: bool) -> None:
    """ADM.5, ADM.7"""
    run_id, hand = orphaned(one(f"access: write, retry: {retry}"))
    assert hand.step().parks
    scope = Scope.objects.get(run_id=run_id)
    assert scope.waits_for == ("retry" if repeats else "reconcile")
    if repeats:
        hand = Hand(run_id)
        hand.pass_time(300_000)
        hand.step()
        assert hand.running == ["v1.2"]
        assert len({dispatch for (dispatch,) in attempts(run_id, "dispatch_id")}) == 1
    assert_sound()


def test_a_crash_that_a_policy_repeats_counts_for_it_and_not_as_a_try() -> None:
    """ADM.7"""
    run_id, hand = orphaned(one("access: write, retry: { attempts: 2, errors: [crashed], jitter: none }"))
    hand.step()
    hand = Hand(run_id)
    hand.pass_time(60_000)
    hand.step()
    assert (Visit.objects.get(run_id=run_id).attempts, hand.running) == (0, ["v1.2"])
    expire(run_id)
    assert Hand(run_id).step().parks
    assert Scope.objects.get(run_id=run_id).waits_for == "reconcile"
    assert_sound()


def test_it_happened_stores_the_given_result_as_the_settlement() -> None:
    """ADM.6"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    number = decide(run_id, "happened", outcome="ok", output=store({"id": 7}), exit_code=0)
    assert number == 1
    Hand(run_id).step()
    visit = Visit.objects.get(run_id=run_id)
    assert (visit.status, visit.outcome, visit.attempts, visit.exit_code) == ("settled", "ok", 1, 0)
    assert visit.output_digest == store({"id": 7}).digest == Run.objects.get(pk=run_id).output_digest
    assert attempts(run_id, "status", "outcome", "marks") == [("succeeded", "ok", '["uncertain","entered"]')]
    assert events_of(run_id)[-5:] == [
        "run_blocked",
        "attempt_reconciled",
        "step_succeeded",
        "run_closing",
        "run_succeeded",
    ]
    event = Event.objects.get(run_id=run_id, type="attempt_reconciled")
    assert (event.actor, json.loads(event.payload)) == ("bob", {"decision": "happened", "reason": "I looked"})
    assert_sound()


def test_it_did_not_authorizes_exactly_one_further_attempt() -> None:
    """ADM.6"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    decide(run_id, "did_not")
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v1.2"]
    expire(run_id)
    hand = Hand(run_id)
    assert hand.step().parks
    assert attempts(run_id, "number", "status") == [(1, "interrupted"), (2, "interrupted")]
    assert Run.objects.get(pk=run_id).status == "blocked"
    decide(run_id, "did_not")
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.3": ok()})
    assert Visit.objects.get(run_id=run_id).attempts == 1
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


def test_stop_fails_the_visit_and_no_policy_repeats_it() -> None:
    """ADM.6"""
    run_id, hand = orphaned(one("access: write, retry: { attempts: 5 }"))
    hand.step()
    decide(run_id, "stop")
    hand = Hand(run_id)
    hand.step()
    visit = Visit.objects.get(run_id=run_id)
    assert (visit.outcome, json.loads(visit.error)) == (
        "failed",
        {"code": "crashed", "message": "bob stopped it after the worker ended: I looked"},
    )
    assert Run.objects.get(pk=run_id).status == "failed"
    assert_sound()


def test_a_decision_is_made_once_and_only_about_what_waits_for_it() -> None:
    """ADM.6"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    decide(run_id, "did_not")
    before = all_rows()
    for visit in (1, 2):
        with pytest.raises(Refusal) as caught:
            decide(run_id, "stop", visit)
        assert (caught.value.code, caught.value.message) == (
            "attempt.not_interrupted",
            f"v{visit} is not waiting to be reconciled.",
        )
    assert all_rows() == before
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=START)
    Hand(run_id).step()
    with pytest.raises(Refusal) as caught:
        decide(run_id, "stop")
    assert caught.value.message == f"Run {run_id} is already cancelled."
    assert_sound()


def test_a_cancel_ends_a_run_that_waits_to_be_reconciled_and_says_what_stays_unknown() -> None:
    """CTL.3"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=START)
    Hand(run_id).step()
    assert Run.objects.get(pk=run_id).status == "cancelled"
    assert attempts(run_id, "status") == [("interrupted",)]
    assert events_of(run_id)[-4:] == ["run_cancelling", "step_unreconciled", "step_cancelled", "run_cancelled"]
    assert_sound()


def test_a_repetition_with_other_inputs_under_the_same_key_is_refused() -> None:
    """ADM.10"""
    run_id = publish_run(one("access: read"))
    Hand(run_id, kinds=kinds_with()).step()
    expire(run_id)

    class Changed:
        name = "shell"

        def enter(self, entry: Any) -> Any:
            return Effect(inputs={"run": "something else"}, access="read")

    hand = Hand(run_id, kinds={**kinds_with(), "shell": Changed()})
    assert hand.step().parks
    scope = Scope.objects.get(run_id=run_id)
    assert (scope.phase, scope.waits_for) == ("waiting", "reconcile")
    event = Event.objects.get(run_id=run_id, type="step_parked")
    assert json.loads(event.payload) == {"code": "attempt.input_changed"}
    assert attempts(run_id, "number", "status") == [(1, "interrupted")]
    decide(run_id, "did_not")
    hand = Hand(run_id, kinds={**kinds_with(), "shell": Changed()})
    hand.step()
    dispatches = [dispatch for (dispatch,) in attempts(run_id, "dispatch_id")]
    assert hand.running == ["v1.2"]
    assert len(set(dispatches)) == 2
    assert_sound()


def test_an_effect_that_a_shutdown_killed_is_treated_like_one_of_a_dead_owner() -> None:
    """ADM.5, LEASE.9"""
    for access, waits in (("read", ""), ("write", "reconcile")):
        run_id = publish_run(one(f"access: {access}"))
        hand = Hand(run_id)
        hand.step()
        hand.step({"v1.1": interrupted()}, start_nothing=True)
        scope = Scope.objects.get(run_id=run_id)
        assert (scope.phase, scope.waits_for) == ("waiting" if waits else "ready", waits)
        event = Event.objects.get(run_id=run_id, type="step_interrupted")
        assert json.loads(event.payload)["reason"] == "worker_stopped"
    assert_sound()


def test_several_decisions_after_a_takeover_do_not_interrupt_the_new_owners_attempt() -> None:
    """ADM.5"""
    run_id, hand = orphaned(one("access: read"))
    hand.step()
    hand.step()
    assert attempts(run_id, "number", "status") == [(1, "interrupted"), (2, "running")]


def test_what_a_function_declared_when_the_run_was_published_decides_about_its_repetition() -> None:
    """PLAN.4, ADM.5: not what it declares today."""
    today = Registry()
    today.add(TaskFunction(lambda: None, name="billing.charge", access="write", idempotent=False, outcomes=()))
    text = workflow("  - { id: work, kind: task, call: billing.charge }")
    for frozen, repeats in (({"access": "read", "idempotent": False}, True), ({"access": "write"}, False)):
        run_id = publish_run(text, frozen={"functions": {"billing.charge": frozen}})
        kinds = {"task": TaskKind(today)}
        Hand(run_id, kinds=kinds).step()
        expire(run_id)
        hand = Hand(run_id, kinds=kinds)
        hand.step()
        assert (Visit.objects.get(run_id=run_id).access, hand.running) == (
            frozen["access"],
            ["v1.2"] if repeats else [],
        )
    assert_sound()
