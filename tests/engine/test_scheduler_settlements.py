"""Settlements, and code that is gone (promise SET 1, 5; PLAN 2, 5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.test_scheduler import error_of, run_to_end, values
from tests.support.hand import Hand
from tests.support.kinds import kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows, assert_sound
from workflows.engine.contract import Missing, Result
from workflows.errors import Failure, Refusal
from workflows.jsonvalue import store
from workflows.ledger.reopening import wake
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Event, Payload, Plan, Run, Visit

pytestmark = pytest.mark.django_db(transaction=True)


# ---- settlements ----------------------------------------------------------------------------------------------------


def test_results_that_arrive_together_settle_in_one_transaction() -> None:
    """SET.1"""
    run_id = publish_run(
        workflow(
            """
  - id: both
    kind: parallel
    branches:
      left: [{ id: l, kind: shell, run: x }]
      right: [{ id: r, kind: shell, run: x }]
""",
            after="output: ${ steps.both.output }",
        )
    )
    hand = Hand(run_id)
    hand.step()
    before = Run.objects.get(pk=run_id).revision
    decision = hand.step({name: ok(name) for name in hand.running})
    assert decision.draft.ended
    events = Event.objects.filter(run_id=run_id, revision__gt=before).order_by("sequence")
    assert [event.type for event in events if event.attempt] == ["step_succeeded", "step_succeeded"]
    assert len({event.revision for event in events if event.attempt}) == 2
    digest = Run.objects.get(pk=run_id).output_digest
    assert Payload.objects.get(digest=digest).text == '{"left":"v2.1","right":"v3.1"}'
    assert_sound()


def test_an_exception_is_stored_as_text_with_its_trace_on_the_attempt_only() -> None:
    """SET.5"""
    failure = Failure(code="task_error", message="ValueError: no", trace="Traceback: line 1")
    run_id = run_to_end(
        workflow("  - { id: work, kind: shell, run: x }"), {"v1.1": Result(outcome="failed", failure=failure)}
    )
    assert json.loads(Attempt.objects.get(run_id=run_id).error) == {
        "code": "task_error",
        "message": "ValueError: no",
        "trace": "Traceback: line 1",
    }
    assert json.loads(Visit.objects.get(run_id=run_id).error) == {"code": "task_error", "message": "ValueError: no"}


def test_a_repaired_output_marks_its_attempt() -> None:
    """SET.5"""
    run_id = run_to_end(workflow("  - { id: work, kind: shell, run: x }"), {"v1.1": ok("a\0b")})
    assert values(Attempt, run_id, "marks") == [('["repaired"]',)]
    assert Visit.objects.get(run_id=run_id).output_digest == store("a�b").digest


def test_a_log_is_a_payload_of_its_attempt() -> None:
    run_id = run_to_end(workflow("  - { id: work, kind: shell, run: x }"), {"v1.1": ok(1, log="line\n")})
    assert values(Attempt, run_id, "log_digest") == [(store("line\n").digest,)]


def test_a_bad_expression_fails_its_visit_without_an_attempt() -> None:
    """ADM.1"""
    run_id = run_to_end(
        workflow(
            "  - { id: work, kind: shell, run: x, env: { N: '${ 1 / params.zero }' } }",
            before="params: { zero: { type: integer } }",
        ),
        {},
        {"zero": 0},
    )
    assert values(Visit, run_id, "outcome", "attempts") == [("failed", 0)]
    assert error_of(run_id)["code"] == "bad_expression"
    assert values(Attempt, run_id, "number") == []


# ---- code that is gone ----------------------------------------------------------------------------------------------


class Gone:
    """A kind whose code is not there."""

    name = "shell"

    def enter(self, entry: Any) -> Missing:
        return Missing(what="task function", name="billing.charge", step=entry.step.id)


def test_a_run_whose_code_is_gone_is_blocked_and_goes_on_when_it_is_back() -> None:
    """PLAN.5"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    hand = Hand(run_id, kinds={"shell": Gone()})
    assert hand.step().parks
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.reasons)) == ("blocked", [{"cause": "code", "step": "work"}])
    event = Event.objects.get(run_id=run_id, type="step_parked")
    assert json.loads(event.payload) == {"missing": "task function billing.charge", "step": "work"}
    wake(run_id=run_id)
    before = all_rows()["Visit"]
    hand = Hand(run_id, kinds={"shell": Gone()})
    assert hand.step().parks
    assert all_rows()["Visit"] == before
    wake(run_id=run_id)
    hand = Hand(run_id, kinds=kinds_with())
    hand.step()
    assert hand.running == ["v1.1"]
    assert_sound()


def test_a_kind_that_is_gone_is_named() -> None:
    """PLAN.5"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    Hand(run_id, kinds={"task": Gone()}).step()
    event = Event.objects.get(run_id=run_id, type="step_parked")
    assert json.loads(event.payload) == {"missing": "step kind shell", "step": "work"}
    assert_sound()


@pytest.mark.unsound
def test_a_corrupt_plan_is_refused_before_anything_is_dispatched() -> None:
    """PLAN.2"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }"))

    @ledger_transaction
    def corrupt(document: str, plan_id: int) -> None:
        Plan.objects.filter(pk=plan_id).update(document=document)

    plan = Plan.objects.get()
    for document in (plan.document.replace("work", "wrok"), plan.document + " ", "[]", "{"):
        corrupt(document, plan.pk)
        before = all_rows()
        with pytest.raises(Refusal) as caught:
            Hand(run_id)
        assert caught.value.code == "plan.corrupt"
        assert all_rows() == before
