"""Late results of displaced owners, and runs whose drivers keep dying (promise ADM 8; SET 1, 2, 4)."""

from __future__ import annotations

import json

import pytest

from tests.engine.test_recovery import WRITE, attempts, decide, one, orphaned
from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.engine import recovery
from workflows.jsonvalue import store
from workflows.ledger.late_results import keep_late_result
from workflows.ledger.reopening import reopen
from workflows.models import Attempt, Run, Visit

pytestmark = pytest.mark.django_db(transaction=True)


# ---- late results ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_displaced_owners_result_is_kept_on_its_own_attempt_and_moves_nothing(when: str) -> None:
    """SET.2, SET.4: whether it comes before or after the new owner has found the attempt."""
    run_id, hand = orphaned(WRITE)
    if when == "after":
        hand.step()
    status, revision = Run.objects.values_list("status", "revision").get(pk=run_id)
    output = store({"id": 7})
    assert keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=output) is True
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.revision) == (status, revision + 1)
    if when == "before":
        hand.reload()
        hand.step()
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, attempt.outcome, attempt.late_outcome, attempt.late_output_digest) == (
        "interrupted",
        "",
        "ok",
        output.digest,
    )
    assert json.loads(attempt.marks) == ["late", "uncertain"]
    assert Visit.objects.get(run_id=run_id).status == "open"
    assert_sound()


def test_a_second_late_result_and_one_of_a_success_are_dropped() -> None:
    """SET.2"""
    run_id, hand = orphaned(one("access: read"))
    hand.step()
    assert keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=None)
    hand.reload()
    hand.step({"v1.2": ok("mine")})
    before = all_rows()
    assert keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=store(8)) is False
    assert keep_late_result(run_id=run_id, visit=1, number=2, outcome="ok", output=store(8)) is False
    assert keep_late_result(run_id=run_id, visit=9, number=1, outcome="ok", output=store(8)) is False
    assert all_rows() == before
    assert_sound()


def test_a_late_result_of_a_finished_run_is_still_kept() -> None:
    """SET.3, SET.4"""
    run_id = publish_run(one("access: read"))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad("timeout")})
    assert keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=store("late")) is True
    assert Run.objects.get(pk=run_id).status == "failed"
    assert events_of(run_id)[-1] == "late_result"
    assert_sound()


def test_a_failure_at_any_statement_of_a_late_result_or_a_reconciliation_leaves_nothing() -> None:
    """SET.1"""
    run_id, hand = orphaned(WRITE)
    hand.step()
    verbs = (
        lambda: keep_late_result(run_id=run_id, visit=1, number=1, outcome="ok", output=store("late")),
        lambda: decide(run_id, "happened", outcome="ok", output=store("x")),
    )
    for verb in verbs:
        before = all_rows()
        for number in range(1, 40):
            try:
                with failing_at(number) as seen:
                    verb()
            except Injected:
                assert all_rows() == before, seen[-1]
            else:
                break
        assert number > 6
    assert_sound()


# ---- poison ---------------------------------------------------------------------------------------------------------


def poisoned(text: str) -> tuple[int, Hand]:
    run_id, hand = orphaned(text)
    draft = hand.decide(start_nothing=True).draft
    recovery.poison(draft, 5)
    hand.write(draft.batch(commit_id="f" * 32, parks=True, release=True, wake_at_ms=None))
    return run_id, hand


def test_a_poisoned_run_fails_with_its_attempt_interrupted_and_no_closing_step() -> None:
    """ADM.8, EVT.2"""
    run_id, _ = poisoned(one("access: write", after="finally: [{ id: tidy, kind: shell, run: y }]"))
    run = Run.objects.get(pk=run_id)
    message = "The worker that drove this run died 5 times in a row without getting any further."
    assert run.status == "failed"
    assert json.loads(run.error) == {"code": "run.poisoned", "message": message, "step": "work", "visit": 1}
    visit = Visit.objects.get(run_id=run_id)
    assert (visit.status, visit.outcome, json.loads(visit.error)["code"]) == ("settled", "failed", "run.poisoned")
    assert attempts(run_id, "status", "marks") == [("interrupted", '["uncertain"]')]
    assert events_of(run_id)[-4:] == ["step_interrupted", "step_failed", "run_closing", "run_failed"]
    assert_sound()


def test_a_poisoned_run_that_is_reopened_does_not_repeat_an_uncertain_write() -> None:
    """ADM.5, ABR.2"""
    run_id, _ = poisoned(one("access: write"))
    assert reopen(run_id=run_id, actor="bob", reason="again", now=START) == 1
    hand = Hand(run_id)
    assert hand.step().parks
    assert (hand.running, Run.objects.get(pk=run_id).status) == ([], "blocked")
    decide(run_id, "did_not")
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v1.2"]
    hand.step({"v1.2": ok()})
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


@pytest.mark.parametrize("options", ["access: read", "access: write, idempotent: true"])
def test_a_poisoned_run_that_is_reopened_repeats_what_may_be_repeated(options: str) -> None:
    """ADM.5, ABR.2"""
    run_id, _ = poisoned(one(options))
    reopen(run_id=run_id, actor="bob", reason="again", now=START)
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v1.2"]
    assert len({dispatch for (dispatch,) in attempts(run_id, "dispatch_id")}) == 1
    assert_sound()
