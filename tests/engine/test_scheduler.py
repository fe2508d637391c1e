"""Admission, visits, refusals and retries (promise ADM 1–4, 7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.clock import unix_ms
from workflows.engine.contract import Result
from workflows.engine.scheduler import decide
from workflows.jsonvalue import store
from workflows.ledger import leases
from workflows.ledger.controlling import send
from workflows.models import Attempt, Payload, Run, Scope, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)


def values(model: Any, run_id: int, *columns: str) -> list[tuple[Any, ...]]:
    return list(model.objects.filter(run_id=run_id).order_by("pk").values_list(*columns))


def run_to_end(text: str, results: dict[str, Result], params: dict[str, Any] | None = None) -> int:
    """Drive a run by hand; each attempt ends with its result, those that are not named succeed with null."""
    run_id = publish_run(text, params)
    hand = Hand(run_id)
    decision = hand.step()
    while not decision.parks:
        decision = hand.step({name: results.get(name, ok()) for name in hand.running})
    assert_sound()
    return run_id


def error_of(run_id: int) -> Any:
    return json.loads(Run.objects.get(pk=run_id).error)


# ---- admission ------------------------------------------------------------------------------------------------------


def test_an_admission_is_committed_before_its_effect_may_begin() -> None:
    """ADM.1"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make }"))
    hand = Hand(run_id)
    decision = hand.decide()
    assert (len(decision.draft.admissions), Attempt.objects.count()) == (1, 0)
    hand.write(hand.batch(decision))
    assert values(Visit, run_id, "number", "step", "round", "status", "access", "revision_created") == [
        (1, "work", 1, "open", "write", 2)
    ]
    ((number, status, dispatch_id, epoch, worker),) = values(
        Attempt, run_id, "number", "status", "dispatch_id", "epoch", "worker"
    )
    assert (number, status, epoch, worker) == (1, "running", 1, "hand")
    assert len(dispatch_id) == 32
    assert events_of(run_id) == ["run_started", "step_started"]
    scope = Scope.objects.get(run_id=run_id)
    assert (scope.phase, scope.step, scope.visit) == ("effect", "work", 1)
    assert Run.objects.get(pk=run_id).started_at == START


def test_a_loop_makes_new_visits_whose_rounds_count_on() -> None:
    """ADM.1, ADM.4"""
    run_id = run_to_end(
        workflow("""
  - { id: work, kind: shell, run: make, max_visits: 3, next: { ok: check } }
  - { id: check, kind: condition, if: "${ steps.work.visits < 3 }", next: { then: work, else: done } }
"""),
        {},
    )
    assert values(Visit, run_id, "number", "step", "round", "attempts") == [
        (1, "work", 1, 1),
        (2, "check", 1, 0),
        (3, "work", 2, 1),
        (4, "check", 2, 0),
        (5, "work", 3, 1),
        (6, "check", 3, 0),
    ]
    assert values(Attempt, run_id, "visit", "number") == [(1, 1), (3, 1), (5, 1)]


def test_a_skipped_step_is_a_counted_visit_without_attempts() -> None:
    """ADM.2"""
    run_id = run_to_end(
        workflow(
            """
  - { id: work, kind: shell, run: make, only_if: "${ false }" }
  - { id: last, kind: shell, run: make }
""",
            after="output: ${ [steps.work.outcome, steps.work.visits, steps.work.attempts, steps.work.output] }",
        ),
        {},
    )
    assert values(Visit, run_id, "number", "step", "round", "status", "outcome", "attempts") == [
        (1, "work", 1, "settled", "skipped", 0),
        (2, "last", 1, "settled", "ok", 1),
    ]
    assert events_of(run_id)[1] == "step_skipped"
    digest = Run.objects.get(pk=run_id).output_digest
    assert Payload.objects.get(digest=digest).text == '["skipped",1,0,null]'


# ---- refusals -------------------------------------------------------------------------------------------------------


EXHAUSTED = workflow(
    """
  - { id: work, kind: shell, run: make, max_visits: 2, next: { ok: work, exhausted: rest } }
  - { id: rest, kind: shell, run: make }
""",
    after="output: ${ [steps.work.outcome, steps.work.error.code, steps.work.visits, steps.work.output] }",
)


def test_an_entry_that_is_refused_is_a_visit_without_round_and_attempt() -> None:
    """ADM.2, ADM.7"""
    run_id = run_to_end(EXHAUSTED, {"v1.1": ok("first"), "v2.1": ok("second")})
    assert values(Visit, run_id, "number", "step", "round", "status", "outcome") == [
        (1, "work", 1, "settled", "ok"),
        (2, "work", 2, "settled", "ok"),
        (3, "work", None, "refused", "exhausted"),
        (4, "rest", 1, "settled", "ok"),
    ]
    assert json.loads(Visit.objects.get(run_id=run_id, number=3).error) == {
        "code": "loop_limit",
        "message": '"work" was visited 2 times, which is its max_visits.',
    }
    assert values(Attempt, run_id, "visit") == [(1,), (2,), (4,)]
    digest = Run.objects.get(pk=run_id).output_digest
    assert Payload.objects.get(digest=digest).text == '["exhausted","loop_limit",2,"second"]'


def test_an_exhausted_loop_that_nobody_routes_fails_the_run() -> None:
    """ADM.7"""
    run_id = run_to_end(workflow("  - { id: work, kind: shell, run: make, max_visits: 1, next: { ok: work } }"), {})
    assert error_of(run_id) == {
        "code": "loop_limit",
        "message": '"work" was visited 1 times, which is its max_visits.',
        "step": "work",
        "visit": 2,
    }


def test_a_used_up_budget_of_visits_ends_the_run() -> None:
    """ADM.2: a refused entry counts for budget.visits, and leads nowhere."""
    run_id = run_to_end(
        workflow(
            "  - { id: work, kind: shell, run: make, max_visits: 9, next: { ok: work, failed: work } }",
            before="budget: { visits: 3 }",
        ),
        {},
    )
    assert Run.objects.get(pk=run_id).visits == 4
    assert error_of(run_id) == {
        "code": "budget_exceeded",
        "message": "The run has made 3 visits; its budget is 3.",
        "step": "work",
        "visit": 4,
    }


def test_a_hold_and_a_cancel_add_nothing_and_the_settlement_stands() -> None:
    """ADM.2"""
    for kind, status in ((ControlKind.PAUSE, "paused"), (ControlKind.CANCEL, "cancelled")):
        run_id = publish_run(workflow("  - { id: a, kind: shell, run: x }\n  - { id: b, kind: shell, run: x }"))
        hand = Hand(run_id)
        hand.step()
        send(run_id=run_id, kind=kind, payload={}, request_id="r", sender="bob", now=START)
        hand.reload()
        hand.step({"v1.1": ok("kept")})
        run = Run.objects.get(pk=run_id)
        assert (run.status, run.visits) == (status, 1)
        assert values(Attempt, run_id, "visit", "number", "status") == [(1, 1, "succeeded")]
        assert Visit.objects.get(run_id=run_id).output_digest == store("kept").digest
    assert_sound()


# ---- retries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "same"), [("timeout", True), ("network", True), ("exit_nonzero", False)])
def test_a_retry_keeps_the_dispatch_id_after_an_uncertain_error_only(code: str, same: bool) -> None:
    """ADM.4"""
    run_id = run_to_end(
        workflow("  - { id: work, kind: shell, run: x, access: read, retry: { attempts: 2, wait: 0s } }"),
        {"v1.1": bad(code)},
    )
    dispatch_ids = [dispatch_id for (dispatch_id,) in values(Attempt, run_id, "dispatch_id")]
    assert (len(dispatch_ids), len(set(dispatch_ids))) == (2, 1 if same else 2)
    assert events_of(run_id)[1:5] == ["step_started", "step_retrying", "step_started", "step_succeeded"]
    assert values(Attempt, run_id, "visit", "number", "status") == [(1, 1, "failed"), (1, 2, "succeeded")]
    assert values(Visit, run_id, "attempts", "retries") == [(2, "[1]")]


def test_a_retry_that_waits_parks_the_run_and_starts_no_earlier() -> None:
    """ADM.4"""
    run_id = publish_run(
        workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 2, wait: 5m, jitter: none } }")
    )
    hand = Hand(run_id)
    hand.step()
    decision = hand.step({"v1.1": bad()})
    due = unix_ms(START) + 300_000
    assert (decision.parks, decision.waits_until_ms) == (True, due)
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.wake_at_ms) == ("waiting", due)
    assert json.loads(run.reasons) == [{"cause": "retry", "step": "work", "until_ms": due, "visit": 1}]
    hand = Hand(run_id)
    hand.pass_time(299_999)
    assert hand.decide().draft.is_empty
    hand.pass_time(1)
    hand.step()
    assert hand.running == ["v1.2"]
    assert_sound()


def test_a_retry_that_is_used_up_gives_the_last_error() -> None:
    """ADM.7"""
    run_id = run_to_end(
        workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 2, wait: 0s } }"),
        {"v1.1": bad(message="first"), "v1.2": bad(message="last")},
    )
    assert error_of(run_id) == {"code": "exit_nonzero", "message": "last", "step": "work", "visit": 1}


def test_a_failed_outcome_is_a_stored_result_and_not_a_reason_to_run_again() -> None:
    """ADM.3"""
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: x, next: { failed: after } }\n  - { id: after, kind: shell, run: x }"
        )
    )
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad(message="no")})
    leases.release(run_id=run_id, epoch=1)
    hand = Hand(run_id)
    hand.step()
    assert values(Visit, run_id, "step", "outcome", "attempts") == [("work", "failed", 1), ("after", "", 0)]
    assert hand.memory.settled("", "work") is not None
    assert_sound()


# ---- purity ---------------------------------------------------------------------------------------------------------


def test_a_decision_is_a_function_of_its_facts_and_changes_none_of_them() -> None:
    run_id = publish_run(EXHAUSTED)
    hand = Hand(run_id)
    hand.step()

    def batch() -> Any:
        decision = decide(
            hand.plan,
            hand.memory,
            hand.kinds,
            results={(1, 1): ok("same")},
            messages=(),
            now=hand.now,
            new_id=lambda: "f" * 32,
        )
        return decision.draft.batch(commit_id="c", parks=decision.parks, release=False, wake_at_ms=None)

    assert batch() == batch() == batch()


def test_a_chain_of_pure_steps_is_cut_after_200_visits() -> None:
    run_id = publish_run(
        workflow(
            """
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" }, max_visits: 900 }
  - { id: more, kind: condition, if: "${ vars.n < 150 }", next: { then: count, else: done } }
""",
            before="vars: { n: { type: integer, value: 0 } }",
        )
    )
    hand = Hand(run_id)
    assert [len(hand.step().draft.visits_new) for _ in range(2)] == [200, 100]
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


def test_a_chain_of_pure_steps_is_cut_when_its_time_is_over() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: a, kind: assign, set: { n: 1 } }\n  - { id: b, kind: assign, set: { n: 2 } }",
            before="vars: { n: { type: integer } }",
        )
    )
    hand, looks = Hand(run_id), iter([False, False, False, True, True, True, True])
    assert len(hand.step(out_of_time=lambda: next(looks)).draft.visits_new) == 1
    assert len(hand.step().draft.visits_new) == 1
    assert Run.objects.get(pk=run_id).status == "succeeded"
