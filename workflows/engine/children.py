"""Child runs: a visit of kind ``workflow`` publishes one with its admission and settles with its end (CHD).

The attempt is ``paused`` while the child runs: it occupies no thread and no lease of its parent. What the child may
be was frozen beside the parent's plan: ``frozen["children"]`` maps a workflow's name to its plan and what it needs.
"""

from __future__ import annotations

import json
from typing import Any

from workflows.definitions.parameters import check_parameters
from workflows.definitions.plan import Plan, StepPlan
from workflows.engine import settling
from workflows.engine.contract import Child, Result
from workflows.engine.draft import Draft
from workflows.engine.failures import failure_text
from workflows.engine.reserving import pause
from workflows.errors import Failure, Refusal
from workflows.facts import AttemptRow, ChildRow, ScopeRow, VisitRow
from workflows.jsonvalue import NotStorable, store
from workflows.ledger.children import DEEPEST, MOST_CHILDREN, ChildPublication
from workflows.ledger.publishing import Publication
from workflows.statuses import AttemptStatus, RunStatus, ScopePhase, WaitsFor


def start(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, child: Child) -> None:
    """Publish the child run together with the attempt that waits for it, in the present revision."""
    frozen = draft.facts.identity.frozen["children"][child.ref]
    plan = draft.facts.plan(frozen["plan"])
    checked = check_parameters(plan.params, child.params)
    failure = beyond_bounds(draft)
    if checked.problems:
        message = "; ".join(problem.message for problem in checked.problems[:3])
        failure = Failure(code="bad_expression", message=f'The parameters of "{child.ref}" do not fit: {message}')
    if failure is not None:
        settling.finish(draft, scope, step, visit, outcome="failed", failure=failure)
        return
    attempt = pause(draft, visit)
    draft.children.append(
        ChildPublication(
            visit=visit.number,
            invocation_key=attempt.dispatch_id,
            detached=child.detach,
            publication=_publication(draft, frozen, plan, checked.values),
        )
    )
    draft.event("step_started", visit=visit.number, attempt=attempt.number, step=step.id)
    draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        visit=visit.number,
        waits_for=WaitsFor.CHILD.value,
        wake_at_ms=_wake_at_ms(draft, child),
    )


def beyond_bounds(draft: Draft) -> Failure | None:
    """Why a run may have no further child: a run may not start itself without bound (PUB.9)."""
    identity = draft.facts.identity
    if identity.depth + 1 > DEEPEST:
        refusal = Refusal("run.too_deep", run=identity.id, limit=DEEPEST)
    elif draft.visit_count > MOST_CHILDREN and draft.facts.count_children() + len(draft.children) >= MOST_CHILDREN:
        refusal = Refusal("run.too_many_children", run=identity.id, limit=MOST_CHILDREN)
    else:
        return None
    return Failure(code=refusal.code, message=refusal.message)


def _wake_at_ms(draft: Draft, child: Child) -> int | None:
    """A detached child is only started: its visit ends as soon as it is published."""
    if child.detach:
        return draft.now_ms
    return None if child.timeout_ms is None else draft.now_ms + child.timeout_ms


def _publication(draft: Draft, frozen: dict[str, Any], plan: Plan, params: dict[str, Any]) -> Publication:
    identity = draft.facts.identity
    return Publication(
        plan_id=frozen["plan"],
        params=store(params),
        frozen=identity.frozen,
        first_step=plan.main.first,
        started_by=identity.started_by,
        commit_id=draft.new_id(),
        now=draft.now,
        origin="child",
        engine_version=identity.engine_version,
    )


def child_of(draft: Draft, scope: ScopeRow) -> ChildRow | None:
    """The child run a scope waits for, once it is published."""
    assert scope.visit is not None
    return draft.facts.child(draft.attempts(scope.visit)[-1].dispatch_id)


def take_end(draft: Draft, scope: ScopeRow) -> bool:
    """Settle the visit of a scope whose child has ended; whether it was."""
    child = child_of(draft, scope)
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    step = draft.plan.steps[visit.step]
    if child is None or not (step.options["detach"] or child.status in _FINAL):
        return False
    draft.begin_revision()
    result = child_result(draft, step, child)
    attempt = settle_attempt(draft, draft.attempts(visit.number)[-1], result)
    settling.conclude(draft, scope, visit, attempt, result)
    return True


_FINAL = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.ABANDONED})


def settle_attempt(draft: Draft, attempt: AttemptRow, result: Result) -> AttemptRow:
    status = AttemptStatus.FAILED if result.failure else AttemptStatus.SUCCEEDED
    return draft.close_attempt(attempt, status=status.value, outcome=result.outcome, error=failure_text(result.failure))


def child_result(draft: Draft, step: StepPlan, child: ChildRow) -> Result:
    """What the end of a child means for the visit that started it."""
    if step.options["detach"]:
        return Result(outcome="ok", output=store({"run_id": child.run_id}))
    if child.status == RunStatus.SUCCEEDED:
        try:
            output = store(draft.payload(child.output_digest)) if child.output_digest else None
            return Result(outcome="ok", output=output)
        except NotStorable as problem:
            return Result(outcome="failed", failure=Failure(code=problem.code, message=problem.message))
    error = json.loads(child.error) if child.error else {}
    told = f"{error.get('code')}: {error.get('message')}" if error else f"it was {child.status}"
    message = f"Child run {child.run_id} did not succeed: {told}"[:4000]
    return Result(outcome="failed", failure=Failure(code="child_failed", message=message))


def expire(draft: Draft, scope: ScopeRow) -> None:
    """The timeout of a child: the visit ends, and the child is cancelled after the commit (or by the sweep)."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    stop_child(draft, scope)
    draft.begin_revision()
    result = Result(
        outcome="timed_out", failure=Failure(code="timeout", message="The child run took longer than its timeout.")
    )
    attempt = settle_attempt(draft, draft.attempts(visit.number)[-1], result)
    settling.conclude(draft, scope, visit, attempt, result)


def stop_child(draft: Draft, scope: ScopeRow) -> None:
    """Have the child of a scope cancelled once this is committed."""
    assert scope.visit is not None
    child = child_of(draft, scope)
    if child is None:  # what this very decision would have published is not
        draft.children = [one for one in draft.children if one.visit != scope.visit]
    elif child.is_own and not draft.plan.steps[draft.visit(scope.visit).step].options["detach"]:
        draft.child_cancels.append(child.run_id)
