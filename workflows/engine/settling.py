"""Settling: what the end of an attempt means for its visit, and where its scope goes from there (promises SET)."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

from workflows.definitions.plan import DONE, FAIL, StepPlan
from workflows.engine import closing, limits, offering
from workflows.engine.contract import INTERRUPTED, Result
from workflows.engine.draft import Draft
from workflows.engine.failures import failure_text
from workflows.engine.retries import next_attempt
from workflows.errors import Failure
from workflows.facts import AttemptRow, ScopeRow, VisitRow
from workflows.ledger.records import compact
from workflows.statuses import AttemptStatus, InterruptStatus, ScopePhase, WaitsFor

#: Bytes of canonical text that one step may output.
OUTPUT_LIMIT = 1024 * 1024
#: How long a retry waits for a function that has not returned, in milliseconds.
POSTPONED_MS = 1_000
#: Outcomes after which the step counts as failed in the event log.
FAILURES_SHOWN = frozenset({"failed", "timed_out"})


def close(draft: Draft, attempt: AttemptRow, result: Result, *, marks: tuple[str, ...] = ()) -> AttemptRow:
    """Write the end of an attempt. The visit carries the output; the attempt only what is its own."""
    if result.repaired:
        marks = (*marks, "repaired")
    return draft.close_attempt(
        attempt,
        versioned=attempt.status != AttemptStatus.RUNNING,
        status=(AttemptStatus.FAILED if result.failure else AttemptStatus.SUCCEEDED).value,
        outcome=result.outcome,
        error=failure_text(result.failure, trace=True),
        log_digest=draft.keep_log(result.log) or attempt.log_digest,
        digest=settlement_digest(result),
        marks=compact([*json.loads(attempt.marks), *marks]) if marks else attempt.marks,
    )


def settlement_digest(result: Result) -> str:
    """What makes two settlements the same: outcome, output, error, exit code."""
    output = result.output.digest if result.output else ""
    text = f"{result.outcome}\n{output}\n{failure_text(result.failure)}\n{result.exit_code}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def conclude(draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow, result: Result) -> None:
    """After a settled attempt: another one by the retry policy, or the end of the visit. In the present revision."""
    step = draft.plan.steps[visit.step]
    limits.give_back(draft, scope, step)
    tries = visit.attempts + 1
    retry = None
    if result.failure is not None:
        retry = next_attempt(
            step.retry,
            code=result.failure.code,
            access=visit.access,
            counts=visit.retries,
            seed=f"{draft.facts.identity.id}:{visit.number}:{attempt.number}",
            at_least_ms=result.retry_after_ms or 0,
        )
    if retry is None:
        finish(
            draft,
            scope,
            step,
            visit,
            outcome=result.outcome,
            output_digest=draft.keep_stored(result.output),
            failure=result.failure,
            exit_code=result.exit_code,
            attempts=tries,
            attempt=attempt.number,
        )
        return
    assert result.failure is not None
    draft.change_visit(visit, attempts=tries, retries=retry.counts)
    draft.event(
        "step_retrying",
        visit=visit.number,
        attempt=attempt.number,
        step=step.id,
        code=result.failure.code,
        wait_ms=retry.wait_ms,
    )
    wait_for_retry(draft, scope, retry.wait_ms)


def wait_for_retry(draft: Draft, scope: ScopeRow, wait_ms: int) -> None:
    draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        waits_for=WaitsFor.RETRY.value,
        wake_at_ms=draft.now_ms + wait_ms,
    )


def postpone_retry(draft: Draft, scope: ScopeRow) -> None:
    """The function of the former attempt has not returned: no further attempt starts beside it in this process."""
    draft.begin_revision()
    draft.event("retry_postponed", visit=scope.visit, step=scope.step)
    wait_for_retry(draft, scope, POSTPONED_MS)


def finish(
    draft: Draft,
    scope: ScopeRow,
    step: StepPlan,
    visit: VisitRow,
    *,
    outcome: str,
    output_digest: str | None = None,
    detail_digest: str | None = None,
    failure: Failure | None = None,
    exit_code: int | None = None,
    attempts: int | None = None,
    attempt: int | None = None,
) -> None:
    """Settle a visit in the present revision and follow its route."""
    visit = draft.settle_visit(
        visit,
        outcome=outcome,
        output_digest=output_digest,
        detail_digest=detail_digest,
        error=failure_text(failure),
        exit_code=exit_code,
        attempts=visit.attempts if attempts is None else attempts,
    )
    details = {"outcome": outcome, "step": step.id}
    if failure is not None:
        details["code"] = failure.code
    draft.event(event_type(outcome), visit=visit.number, attempt=attempt, **details)
    leave(draft, scope, step, visit, outcome, failure, ran=outcome != "skipped")


def event_type(outcome: str) -> str:
    if outcome == "skipped":
        return "step_skipped"
    return "step_failed" if outcome in FAILURES_SHOWN else "step_succeeded"


def leave(
    draft: Draft,
    scope: ScopeRow,
    step: StepPlan,
    visit: VisitRow,
    outcome: str,
    failure: Failure | None,
    *,
    ran: bool,
    routed: bool = True,
) -> None:
    """Follow the route of an outcome. ``routed`` False: the list ends here whatever ``next`` says."""
    limits.give_back(draft, scope, step)
    target = step.route(outcome) if routed else FAIL
    scope = draft.change_scope(
        scope,
        phase=ScopePhase.READY.value,
        step="" if target in (DONE, FAIL) else target,
        visit=None,
        last_step=step.id if ran else scope.last_step,
        waits_for="",
        wake_at_ms=None,
        stopping="",
    )
    if target == DONE:
        closing.end_list(draft, scope)
    elif target == FAIL:
        closing.end_list(draft, scope, failure=closing.list_failure(step, visit, outcome, failure), left=step)


def cancel_attempt(draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow, result: Result | None) -> None:
    """An attempt that ends after the run was cancelled: what it brought is kept on it as late and moves nothing."""
    draft.begin_revision()
    late: dict[str, Any] = {}
    if result is not None and result.outcome not in ("cancelled", INTERRUPTED):
        late = {
            "late_outcome": result.outcome,
            "late_output_digest": draft.keep_stored(result.output),
            "error": failure_text(result.failure, trace=True),
            "marks": '["late"]',
        }
    draft.close_attempt(
        attempt,
        status=AttemptStatus.CANCELLED.value,
        outcome="cancelled",
        log_digest=draft.keep_log(result.log) if result else None,
        digest=settlement_digest(result) if result else "",
        **late,
    )
    cancel_visit(draft, scope, visit, attempt=attempt.number, attempts=visit.attempts + 1)


def cancel_visit(
    draft: Draft, scope: ScopeRow, visit: VisitRow, *, attempt: int | None = None, attempts: int | None = None
) -> None:
    """Settle the open visit of a scope that is being stopped, in the present revision, and end the scope."""
    failure = Failure(code="cancelled", message="It was stopped before its end.")
    paused = close_question(draft, visit, InterruptStatus.CLOSED)
    limits.give_back(draft, scope, draft.plan.steps[visit.step])
    draft.settle_visit(
        visit,
        outcome="cancelled",
        error=failure_text(failure),
        attempts=visit.attempts if attempts is None else attempts,
    )
    draft.event("step_cancelled", visit=visit.number, attempt=attempt or paused, step=visit.step)
    scope = draft.change_scope(scope, visit=None, waits_for="", wake_at_ms=None, stopping="")
    closing.end_cancelled(draft, scope)


def close_question(draft: Draft, visit: VisitRow, status: InterruptStatus) -> int | None:
    """Close the open question of a visit, or its offer, and its paused attempt (a child's too); the number of that
    attempt."""
    offering.withdraw(draft, visit, "stopped")
    question = draft.interrupt(visit.number)
    attempts = draft.attempts(visit.number)
    if question is not None and question.status == InterruptStatus.OPEN:
        draft.interrupts[visit.number] = replace(question, status=status.value, revision_settled=draft.revision)
    if attempts and attempts[-1].status == AttemptStatus.PAUSED:
        # also that of a question which was answered too late to be used
        outcome = "expired" if status == InterruptStatus.EXPIRED else "cancelled"
        draft.close_attempt(attempts[-1], status=AttemptStatus.CANCELLED.value, outcome=outcome)
        return attempts[-1].number
    return None


def decode_error(text: str) -> dict[str, Any]:
    """The stored form of a failure as a mapping; empty for none."""
    return json.loads(text) if text else {}
