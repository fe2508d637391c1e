"""External work: what another program brought settles the visit, and so does its timeout (promises EXT).

The result was stored with the offer before anybody decided about it, so whoever drives the run uses exactly it.
"""

from __future__ import annotations

import json

from workflows.engine import offering, settling
from workflows.engine.contract import Result
from workflows.engine.draft import Draft
from workflows.engine.failures import failure_text
from workflows.errors import Failure
from workflows.facts import AttemptRow, OfferRow, ScopeRow
from workflows.jsonvalue import store
from workflows.statuses import AttemptStatus, OfferStatus


def take_result(draft: Draft, scope: ScopeRow) -> bool:
    """Settle the visit of a scope whose work is finished; whether it was."""
    assert scope.visit is not None
    row = offering.latest(draft, scope.visit)
    if row is None or row.status != OfferStatus.FINISHED:
        return False
    visit = draft.visit(scope.visit)
    result = result_of(draft, row)
    draft.begin_revision()
    attempt = _close(draft, visit.number, result)
    if result.failure is None or json.loads(row.error)["retryable"]:
        settling.conclude(draft, scope, visit, attempt, result)
    else:
        step = draft.plan.steps[visit.step]
        settling.finish(
            draft,
            scope,
            step,
            visit,
            outcome=result.outcome,
            failure=result.failure,
            attempts=visit.attempts + 1,
            attempt=attempt.number,
        )
    return True


def result_of(draft: Draft, row: OfferRow) -> Result:
    """The result as it was stored with the offer."""
    output = None if row.output_digest is None else store(draft.payload(row.output_digest))
    error = json.loads(row.error) if row.error else None
    failure = None if error is None else Failure(code=error["code"], message=error["message"])
    return Result(outcome=row.outcome, output=output, failure=failure)


def time_out(draft: Draft, scope: ScopeRow) -> None:
    """The timeout that began with the first reservation has passed: the offer is withdrawn, the attempt has failed."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    draft.begin_revision()
    offering.withdraw(draft, visit, "timed_out")
    message = "The program that reserved the work did not finish it within the timeout of the step."
    result = Result(outcome="timed_out", failure=Failure(code="timeout", message=message))
    settling.conclude(draft, scope, visit, _close(draft, visit.number, result), result)


def _close(draft: Draft, visit: int, result: Result) -> AttemptRow:
    status = AttemptStatus.FAILED if result.failure else AttemptStatus.SUCCEEDED
    return draft.close_attempt(
        draft.attempts(visit)[-1],
        status=status.value,
        outcome=result.outcome,
        error=failure_text(result.failure),
        digest=settling.settlement_digest(result),
    )
