"""Reopen, retry now, wake (promise ABR 2, 3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.errors import Refusal
from workflows.ledger.controlling import send
from workflows.ledger.reopening import hurry, reopen
from workflows.models import Attempt, Event, RowVersion, Run, Scope, ScopeVars, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

THREE = workflow(
    """
  - { id: one, kind: shell, run: make }
  - { id: two, kind: shell, run: make, max_visits: 1, next: { failed: fail } }
  - { id: three, kind: shell, run: make }
""",
    after="""
on_failure: [{ id: repair, kind: shell, run: y }]
finally: [{ id: tidy, kind: shell, run: y }]
output: ${ steps.three.output }
""",
)


def again(run_id: int) -> int | None:
    return reopen(run_id=run_id, actor="bob", reason="it works now", now=START)


def refused(verb: Any, *words: Any) -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        verb(*words)
    assert all_rows() == before
    return caught.value


def failed_in_the_middle() -> int:
    """one ok, two failed, repair and tidy done."""
    run_id = publish_run(THREE)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    hand.step({"v2.1": bad(message="no")})
    hand.step({"v3.1": ok()})
    hand.step({"v4.1": ok()})
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.error)["visit"]) == ("failed", 2)
    return run_id


def test_exactly_the_failed_visit_is_opened_again() -> None:
    """ABR.2"""
    run_id = failed_in_the_middle()
    before = all_rows()["Visit"]
    assert again(run_id) == 2
    after = all_rows()["Visit"]
    assert [one for one in after if one["number"] != 2] == [one for one in before if one["number"] != 2]
    visit = Visit.objects.get(run_id=run_id, number=2)
    assert (visit.status, visit.outcome, visit.error, visit.attempts, visit.reopened) == ("open", "", "", 1, 1)
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.error, run.closing, run.ended_at, run.started_at) == ("queued", "", "", None, START)
    event = Event.objects.filter(run_id=run_id).last()
    assert event is not None
    assert (event.type, event.actor, event.visit, json.loads(event.payload)) == (
        "run_reopened",
        "bob",
        2,
        {"reason": "it works now"},
    )
    assert_sound()


def test_the_next_try_is_the_next_attempt_and_closing_steps_run_again_at_the_end() -> None:
    """ABR.2"""
    run_id = failed_in_the_middle()
    again(run_id)
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v2.2"]
    hand.step({"v2.2": ok()})
    hand.step({"v5.1": ok("three")})
    assert hand.running == ["v6.1"]
    hand.step({"v6.1": ok()})
    run = Run.objects.get(pk=run_id)
    assert run.status == "succeeded"
    assert list(Visit.objects.filter(run_id=run_id).values_list("step", "round", "attempts")) == [
        ("one", 1, 1),
        ("two", 1, 2),
        ("repair", 1, 1),
        ("tidy", 1, 1),
        ("three", 1, 1),
        ("tidy", 2, 1),
    ]
    dispatches = Attempt.objects.filter(run_id=run_id, visit=2).values_list("dispatch_id", flat=True)
    assert len(set(dispatches)) == 2
    assert_sound()


def test_the_former_result_of_a_reopened_visit_stays_in_history() -> None:
    """REV.1, REV.2"""
    run_id = failed_in_the_middle()
    settled = Visit.objects.get(run_id=run_id, number=2).revision_settled
    again(run_id)
    versions = RowVersion.objects.filter(run_id=run_id, table="visit", key="2").order_by("revision")
    first, second = (json.loads(version.row) for version in versions)
    assert versions[0].revision == settled
    assert (first["status"], first["outcome"], first["revision_settled"]) == ("settled", "failed", settled)
    assert (second["status"], second["outcome"], second["reopened"]) == ("open", "", 1)


def test_a_run_that_fails_again_and_again_can_be_reopened_each_time() -> None:
    """ABR.2, REV.3"""
    run_id = publish_run(
        workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 2, wait: 1s, jitter: none } }")
    )
    for turn in range(3):
        hand = Hand(run_id)
        hand.step()
        attempt = 1 if turn == 0 else turn + 2
        assert hand.running == [f"v1.{attempt}"]
        hand.step({f"v1.{attempt}": bad()})
        if turn == 0:
            hand = Hand(run_id)
            hand.pass_time(1000)
            hand.step()
            hand.step({"v1.2": bad()})
        assert Run.objects.get(pk=run_id).status == "failed"
        assert_sound()
        assert again(run_id) == 1
        assert_sound()
    assert Visit.objects.get(run_id=run_id).reopened == 3


def test_a_retry_of_a_reopened_visit_is_in_its_history() -> None:
    """REV.1, REV.3"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 3, wait: 1h } }"))
    for turn in (1, 2):
        hand = Hand(run_id)
        hand.step()
        hand.step({f"v1.{turn}": bad("command_not_found")})
        assert Run.objects.get(pk=run_id).status == "failed"
        again(run_id)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.3": bad()})
    assert Visit.objects.get(run_id=run_id).attempts == 3
    assert_sound()


def test_a_refused_entry_is_entered_anew() -> None:
    """ABR.2: max_visits is untouched, so it is refused again."""
    run_id = publish_run(
        workflow("""
  - { id: work, kind: shell, run: x, max_visits: 1 }
  - { id: back, kind: condition, cases: [{ when: "${ true }", outcome: loop }], next: { loop: work, else: done } }
""")
    )
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    assert Run.objects.get(pk=run_id).status == "failed"
    assert again(run_id) is None
    assert (Scope.objects.get(run_id=run_id).step, Scope.objects.get(run_id=run_id).visit) == ("work", None)
    Hand(run_id).step()
    assert Run.objects.get(pk=run_id).status == "failed"
    assert list(Visit.objects.filter(run_id=run_id).values_list("status", flat=True)) == [
        "settled",
        "settled",
        "refused",
        "refused",
    ]
    assert_sound()


def test_a_run_that_failed_before_its_first_step_begins_anew() -> None:
    """ABR.2"""
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: x }",
            before='vars: { n: { type: integer, value: "${ int(params.text) }" } }\nparams: { text: { type: text } }',
            after="output: ${ vars.n }",
        ),
        {"text": "x"},
    )
    Hand(run_id).step()
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.error)["code"], run.visits) == ("failed", "bad_expression", 0)
    assert again(run_id) is None
    Hand(run_id).step()
    run = Run.objects.get(pk=run_id)
    assert (run.status, json.loads(run.error)["code"], run.visits) == ("failed", "bad_expression", 0)
    assert ScopeVars.objects.get(run_id=run_id).values == "{}"
    assert_sound()


def test_a_run_whose_output_failed_redoes_its_end_only() -> None:
    """ABR.2"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }", after="output: ${ int(steps.work.output) }"))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok("x")})
    assert json.loads(Run.objects.get(pk=run_id).error)["code"] == "output_error"
    assert again(run_id) is None
    Hand(run_id).step()
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.visits, json.loads(run.error)["code"]) == ("failed", 1, "output_error")
    assert_sound()


def test_succeeded_cancelled_and_live_runs_are_not_reopened() -> None:
    """ABR.2, ABR.3"""
    text = workflow("  - { id: work, kind: shell, run: x }")
    queued, succeeded, cancelled = publish_run(text), publish_run(text), publish_run(text)
    hand = Hand(succeeded)
    hand.step()
    hand.step({"v1.1": ok()})
    send(run_id=cancelled, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=START)
    Hand(cancelled).step()
    for run_id, status in ((queued, "queued"), (succeeded, "succeeded"), (cancelled, "cancelled")):
        refusal = refused(again, run_id)
        assert (refusal.code, refusal.message) == (
            "run.not_reopenable",
            f"Run {run_id} is {status}; only failed, blocked and abandoned runs go on again.",
        )


def test_reopening_right_after_the_end_works_since_the_lease_is_released() -> None:
    """LEASE.10"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad()})
    assert again(run_id) == 1
    assert Hand(run_id).grant.recovered is False


def test_a_failure_at_any_statement_of_reopening_leaves_nothing() -> None:
    """ABR.2, SET.1"""
    run_id = failed_in_the_middle()
    before = all_rows()
    for number in range(1, 40):
        try:
            with failing_at(number) as seen:
                again(run_id)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 8
    assert_sound()


def waiting_for_a_retry() -> int:
    run_id = publish_run(
        workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 3, wait: 1h, jitter: none } }")
    )
    hand = Hand(run_id)
    hand.step()
    assert hand.step({"v1.1": bad()}).parks
    return run_id


def test_retry_now_ends_the_back_off_and_keeps_the_counts() -> None:
    run_id = waiting_for_a_retry()
    assert hurry(run_id=run_id, actor="bob", now=START) == 1
    assert events_of(run_id)[-1] == "retry_hurried"
    hand = Hand(run_id)
    scope = Scope.objects.get(run_id=run_id)
    assert scope.wake_at_ms is not None
    hand.pass_time(scope.wake_at_ms - int(START.timestamp() * 1000))
    hand.step()
    assert hand.running == ["v1.2"]
    assert Visit.objects.get(run_id=run_id).retries == "[1]"
    assert_sound()


def test_retry_now_is_refused_where_nothing_waits_for_a_retry_or_somebody_drives() -> None:
    run_id = waiting_for_a_retry()
    hurry(run_id=run_id, actor="bob", now=START)
    Hand(run_id, owner="host:1")
    refusal = refused(lambda: hurry(run_id=run_id, actor="bob", now=START))
    assert refusal.code == "lease.held"
    assert refusal.message.startswith(f"Run {run_id} is driven by host:1 until ")
    other = publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    refusal = refused(lambda: hurry(run_id=other, actor="bob", now=START))
    assert refusal.message == f"Nothing in run {other} waits to be tried again."
