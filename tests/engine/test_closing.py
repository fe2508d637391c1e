"""The ways a run ends (docs/architecture.md; docs/format.md, Failure; promise CTL 3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.engine.contract import Result
from workflows.ledger.controlling import send
from workflows.models import Payload, Run, Scope, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

FINALLY = "finally: [{ id: tidy, kind: shell, run: y }, { id: tell, kind: shell, run: y }]\n"
REPAIR = "on_failure: [{ id: repair, kind: shell, run: y }]\n"


def work(*, after: str = "", options: str = "", before: str = "") -> str:
    return workflow(f"  - {{ id: work, kind: shell, run: make{options} }}", after=after, before=before)


def finished(text: str, **results: Result) -> tuple[Run, list[str]]:
    """Run it by hand; a step's effect ends with the result of its name. The run, and the steps in order."""
    run_id = publish_run(text)
    hand = Hand(run_id)
    decision = hand.step()
    while not decision.draft.ended:
        names = {
            name: hand.admissions[int(name[1:].split(".")[0]), int(name.split(".")[1])].step.id for name in hand.running
        }
        decision = hand.step({name: results.get(step, ok(step)) for name, step in names.items()})
    assert_sound()
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.reasons), run.ended_at) == (run.status, [], START)
    assert Scope.objects.get(run_id=run_id, path="").phase == "ended"
    return run, list(Visit.objects.filter(run_id=run_id).values_list("step", flat=True))


def error_of(run: Run) -> Any:
    return json.loads(run.error) if run.error else None


def output_of(run: Run) -> Any:
    return json.loads(Payload.objects.get(digest=run.output_digest).text) if run.output_digest else None


def test_a_run_without_closing_steps_ends_with_its_last_step() -> None:
    run, steps = finished(work(after="output: ${ steps.work.output }"), work=ok({"n": 1}))
    assert (run.status, steps, output_of(run)) == ("succeeded", ["work"], {"n": 1})
    assert events_of(run.pk)[-3:] == ["step_succeeded", "run_closing", "run_succeeded"]


def test_finally_runs_once_after_success() -> None:
    run, steps = finished(work(after=FINALLY + REPAIR))
    assert (run.status, steps) == ("succeeded", ["work", "tidy", "tell"])


def test_on_failure_runs_before_finally_after_a_failure() -> None:
    run, steps = finished(work(after=FINALLY + REPAIR), work=bad(message="no"))
    assert (run.status, steps) == ("failed", ["work", "repair", "tidy", "tell"])
    assert error_of(run) == {"code": "exit_nonzero", "message": "no", "step": "work", "visit": 1}


def test_a_failing_on_failure_changes_nothing_and_finally_follows() -> None:
    run, steps = finished(work(after=FINALLY + REPAIR), work=bad(message="no"), repair=bad(message="neither"))
    assert (run.status, error_of(run)["message"]) == ("failed", "no")
    assert steps == ["work", "repair", "tidy", "tell"]


def test_a_failing_finally_step_turns_success_into_failure_and_the_others_run() -> None:
    run, steps = finished(work(after=FINALLY + "output: x\n"), tidy=bad(message="dirty"))
    assert (run.status, steps) == ("failed", ["work", "tidy", "tell"])
    assert error_of(run) == {"code": "finally_failed", "message": "dirty", "step": "tidy", "visit": 2}
    assert run.output_digest is None


def test_the_first_failing_finally_step_counts_and_never_hides_the_failure_of_the_run() -> None:
    run, _ = finished(work(after=FINALLY), tidy=bad(message="first"), tell=bad(message="second"))
    assert error_of(run)["message"] == "first"
    run, _ = finished(work(after=FINALLY), work=bad(message="main"), tidy=bad(message="first"))
    assert error_of(run)["message"] == "main"


def test_closing_steps_see_the_status_and_the_error() -> None:
    text = work(
        after="""
finally: [{ id: tell, kind: shell, run: y, env: { S: "${ run.status }", E: "${ run.error.code }" } }]
"""
    )
    run_id = publish_run(text)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad()})
    (admission,) = hand.admissions.values()
    assert admission.effect.inputs["env"] == {"S": "failed", "E": "exit_nonzero"}


def test_the_status_is_running_while_closing_steps_run() -> None:
    run_id = publish_run(work(after=FINALLY))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad()})
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.ended_at, json.loads(run.closing)["status"]) == ("running", None, "failed")


def test_a_cancel_skips_on_failure_and_runs_finally_once() -> None:
    """CTL.3"""
    run_id = publish_run(work(after=FINALLY + REPAIR))
    hand = Hand(run_id)
    hand.step()
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=START)
    hand.reload()
    hand.step()
    hand.step({"v1.1": bad("cancelled")})
    hand.step({"v2.1": ok()})
    hand.step({"v3.1": bad()})
    assert Run.objects.get(pk=run_id).status == "cancelled"
    assert list(Visit.objects.filter(run_id=run_id).values_list("step", flat=True)) == ["work", "tidy", "tell"]
    assert_sound()


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("odd", "routed_to_fail"), ("refused", "refused"), ("rejected", "rejected"), ("expired", "expired")],
)
def test_an_outcome_routed_to_fail_without_an_error_gives_its_code(outcome: str, code: str) -> None:
    run, _ = finished(
        work(options=f", exits: {{ {outcome}: [3] }}, next: {{ {outcome}: fail }}"), work=ok(outcome=outcome)
    )
    assert error_of(run) == {
        "code": code,
        "message": f'The outcome "{outcome}" of "work" leads to fail.',
        "step": "work",
        "visit": 1,
    }


def test_an_end_step_ends_the_run_with_its_status_reason_and_output() -> None:
    run, steps = finished(
        workflow(
            "  - { id: stop, kind: end, status: succeeded, output: { a: 1 } }\n  - { id: never, kind: shell, run: x }"
        )
    )
    assert (run.status, output_of(run), steps) == ("succeeded", {"a": 1}, ["stop"])
    run, _ = finished(workflow("  - { id: stop, kind: end, status: failed, reason: too late }", after=FINALLY))
    assert error_of(run) == {"code": "ended_failed", "message": "too late", "step": "stop", "visit": 1}
    run, _ = finished(workflow("  - { id: stop, kind: end, status: failed }"))
    assert error_of(run)["message"] == '"stop" ended the run as failed.'


def test_an_output_that_cannot_be_computed_fails_the_run_and_closing_steps_follow() -> None:
    run, steps = finished(work(after=FINALLY + REPAIR + "output: ${ int(steps.work.output) }\n"), work=ok("x"))
    assert (run.status, error_of(run)["code"], error_of(run)["step"]) == ("failed", "output_error", None)
    assert steps == ["work", "repair", "tidy", "tell"]


def test_an_output_that_does_not_match_returns_fails_the_run() -> None:
    run, _ = finished(work(after="output: ${ steps.work.output }\nreturns: { type: integer }\n"), work=ok("x"))
    assert error_of(run) == {
        "code": "output_error",
        "message": 'The output does not fit the schema of the run: output: "x" is not of type "integer".',
        "step": None,
        "visit": None,
    }


def test_an_initial_value_that_cannot_be_computed_fails_the_run_before_any_step() -> None:
    run, steps = finished(work(before="vars: { n: { type: integer, value: \"${ int('x') }\" } }", after=FINALLY))
    assert (run.status, error_of(run)["code"], steps) == ("failed", "bad_expression", ["tidy", "tell"])
    assert events_of(run.pk)[:3] == ["run_started", "variables_set", "run_closing"]
