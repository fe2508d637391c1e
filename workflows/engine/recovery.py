"""Recovery: what becomes of an attempt whose owner is gone, and of what a person says about it (ADM 5, 6)."""

from __future__ import annotations

import json
from typing import Any

from workflows.definitions.plan import StepPlan
from workflows.engine import closing, entering, fanning, limits, settling
from workflows.engine.contract import Result
from workflows.engine.draft import Draft
from workflows.engine.failures import failure_text
from workflows.engine.retries import next_attempt
from workflows.errors import Failure
from workflows.facts import AttemptRow, ScopeRow, VisitRow
from workflows.jsonvalue import store
from workflows.ledger.records import compact
from workflows.statuses import Access, AttemptStatus, InterruptStatus, ScopePhase, WaitsFor


def recover(draft: Draft) -> None:
    """Interrupt every running attempt of a former owner; what may be repeated becomes ready again."""
    for scope in draft.live_scopes():
        if scope.phase != ScopePhase.EFFECT or scope.visit is None:
            continue
        visit = draft.visit(scope.visit)
        attempt = draft.attempts(visit.number)[-1]
        if attempt.status != AttemptStatus.RUNNING or attempt.epoch == draft.facts.epoch:
            continue
        if fanning.is_cancelled(draft, scope):
            settling.cancel_attempt(draft, scope, visit, attempt, None)
        else:
            interrupt(draft, scope, visit, attempt, reason="forked" if attempt.inherited else "owner_lost")


def interrupt(
    draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow, *, reason: str, log: str = ""
) -> None:
    """End an attempt of which nobody knows whether its effect happened.

    A read or idempotent step is repeated with the same dispatch id, and so is a write whose ``retry`` names
    ``crashed``; any other write parks its scope until a person says what happened. In a fork an inherited try is not
    repeated with its id, so there idempotence protects no write.
    """
    step = draft.plan.steps[visit.step]
    draft.begin_revision()
    limits.give_back(draft, scope, step)
    end_unknown(draft, visit, attempt, reason=reason, log=log)
    if may_repeat(draft, step, visit, attempt):
        draft.change_scope(scope, phase=ScopePhase.READY.value)
        return
    retry = next_attempt(
        step.retry,
        code="crashed",
        access=visit.access,
        counts=visit.retries,
        seed=f"{draft.facts.identity.id}:{visit.number}:{attempt.number}",
    )
    if retry is not None:
        draft.change_visit(visit, retries=retry.counts)
        settling.wait_for_retry(draft, scope, retry.wait_ms)
        return
    draft.change_scope(scope, phase=ScopePhase.WAITING.value, waits_for=WaitsFor.RECONCILE.value, wake_at_ms=None)


def end_unknown(draft: Draft, visit: VisitRow, attempt: AttemptRow, *, reason: str, log: str = "") -> None:
    """Mark an attempt as interrupted, in the present revision. What it brought late stays on it."""
    step = draft.plan.steps[visit.step]
    what = "The run was forked" if attempt.inherited else "The worker ended"
    failure = Failure(code="crashed", message=f"{what} while this attempt was running.")
    marks = set(json.loads(attempt.marks))
    if not may_repeat(draft, step, visit, attempt):
        marks.add("uncertain")
    draft.close_attempt(
        attempt,
        versioned=True,
        status=AttemptStatus.INTERRUPTED.value,
        error=failure_text(failure),
        log_digest=draft.keep_log(log),
        marks=compact(sorted(marks)),
    )
    draft.event("step_interrupted", visit=visit.number, attempt=attempt.number, step=step.id, reason=reason)


def may_repeat(draft: Draft, step: StepPlan, visit: VisitRow, attempt: AttemptRow) -> bool:
    """Whether a try of which nobody knows the end may simply be made again."""
    if visit.access != Access.WRITE:
        return True
    return is_idempotent(step, draft.facts.identity.frozen) and not attempt.inherited


def is_idempotent(step: StepPlan, frozen: Any) -> bool:
    """Whether the receiver of the effect deduplicates by the dispatch id, by the file or the function's declaration."""
    if step.idempotent is not None:
        return step.idempotent
    declared = frozen.get("functions", {}).get(step.options.get("call"), {})
    return bool(declared.get("idempotent", False))


def carry_out(draft: Draft, scope: ScopeRow) -> None:
    """Carry out what a person has decided about the attempt a scope is parked for, if somebody has."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    attempt = draft.attempts(visit.number)[-1]
    if not attempt.authorization:
        return
    decision = json.loads(attempt.authorization)
    if decision["decision"] == "did_not":
        entering.enter_again(draft, scope)
        return
    draft.begin_revision()
    result = told_result(draft, decision)
    attempt = settling.close(draft, attempt, result, marks=("entered",))
    if decision["decision"] == "stop":
        finish_stopped(draft, scope, visit, attempt, result)
    else:
        settling.conclude(draft, scope, visit, attempt, result)


def finish_stopped(draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow, result: Result) -> None:
    """*Stop* fails the visit for good: no policy repeats it."""
    settling.finish(
        draft,
        scope,
        draft.plan.steps[visit.step],
        visit,
        outcome="failed",
        failure=result.failure,
        attempts=visit.attempts + 1,
        attempt=attempt.number,
    )


def told_result(draft: Draft, decision: dict[str, Any]) -> Result:
    """The result of an attempt as a person entered it."""
    if decision["decision"] == "stop":
        message = f"{decision['actor']} stopped it after the worker ended: {decision['reason']}"
        return Result(outcome="failed", failure=Failure(code="crashed", message=message))
    failure = decision.get("failure")
    digest = decision.get("output")
    return Result(
        outcome=decision["outcome"],
        output=store(draft.payload(digest)) if digest is not None else None,
        failure=Failure(code=failure["code"], message=failure["message"]) if failure else None,
        exit_code=decision.get("exit_code"),
    )


def poison(draft: Draft, crashes: int) -> None:
    """End a run whose driver keeps dying at one visit; nothing of it is executed any more, closing steps included."""
    draft.begin_revision()
    message = f"The worker that drove this run died {crashes} times in a row without getting any further."
    root = draft.scopes[""]
    error = closing.ListFailure(code="run.poisoned", step=root.step or None, message=message, visit=root.visit)
    for scope in draft.live_scopes():
        if scope.step:
            limits.give_back(draft, scope, draft.plan.steps[scope.step])
        if scope.visit is not None:
            give_up(draft, draft.visit(scope.visit), Failure(code="run.poisoned", message=message))
        if scope.path:
            draft.change_scope(
                scope,
                phase=ScopePhase.ENDED.value,
                step="",
                visit=None,
                waits_for="",
                wake_at_ms=None,
                outcome="failed",
            )
    closing.set_closing(draft, {"status": "failed", "error": error.as_json()})
    closing.finish_run(draft, draft.scopes[""])


def give_up(draft: Draft, visit: VisitRow, failure: Failure) -> None:
    """Settle an open visit as failed, in the present revision; its running attempt ends as interrupted."""
    attempts = draft.attempts(visit.number)
    if attempts and attempts[-1].status == AttemptStatus.RUNNING:
        end_unknown(draft, visit, attempts[-1], reason="owner_lost")
    paused = settling.close_question(draft, visit, InterruptStatus.CLOSED)
    draft.settle_visit(visit, outcome="failed", error=failure_text(failure))
    draft.event("step_failed", visit=visit.number, attempt=paused, step=visit.step, outcome="failed", code=failure.code)
