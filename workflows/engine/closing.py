"""Closing: what happens at the end of a list of steps, and the way of a run through its closing sections.

When the main steps end, the run gets ``closing``: the status and error it will have. Then ``on_failure`` runs (once,
when it is about to fail), then ``finally`` (once, whatever happened), and the status becomes final.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workflows.definitions.plan import DONE, Body, StepPlan
from workflows.engine import fanning
from workflows.engine.contract import EndBody
from workflows.engine.draft import Draft
from workflows.engine.environment import evaluate
from workflows.engine.failures import failure_text
from workflows.engine.output_schema import schema_mismatch
from workflows.errors import Failure
from workflows.expressions import BadExpression
from workflows.facts import ScopeRow, VisitRow
from workflows.jsonvalue import NotStorable
from workflows.ledger.records import compact
from workflows.statuses import RunStatus, ScopePhase, Section

#: Bytes of canonical text a run may output.
RUN_OUTPUT_LIMIT = 32 * 1024 * 1024

#: The code of a list that ends by an outcome without an error of its own (docs/format.md, Failure).
CODE_OF_OUTCOME = {
    "rejected": "rejected",
    "expired": "expired",
    "not_passed": "not_passed",
    "refused": "refused",
    "blocked": "blocked",
    "over_budget": "budget_exceeded",
    "exhausted": "loop_limit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFailure:
    """Why a list of steps failed: the error of the run, with the visit that led there (None: none did)."""

    code: str
    step: str | None
    message: str
    visit: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "step": self.step, "message": self.message, "visit": self.visit}


def list_failure(step: StepPlan, visit: VisitRow, outcome: str, failure: Failure | None) -> ListFailure:
    """The failure of a list that a route to ``fail`` has ended."""
    if failure is not None:
        code, message = failure.code, failure.message
    else:
        code = CODE_OF_OUTCOME.get(outcome, "routed_to_fail")
        message = f'The outcome "{outcome}" of "{step.id}" leads to fail.'
    return ListFailure(code=code, step=step.id, message=message, visit=visit.number)


def settle_end(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, end: EndBody) -> None:
    """An ``end`` step: settle its visit and end the list with its status, in the present revision."""
    outcome = "succeeded" if end.succeeded else "failed"
    failure = None
    if not end.succeeded:
        failure = Failure(code="ended_failed", message=end.reason or f'"{step.id}" ended the run as failed.')
    visit = draft.settle_visit(visit, outcome=outcome, error=failure_text(failure))
    draft.event("step_succeeded", visit=visit.number, outcome=outcome, step=step.id)
    scope = draft.change_scope(scope, phase=ScopePhase.READY.value, step="", visit=None)
    if failure is None:
        end_list(draft, scope, end=end)
    else:
        end_list(draft, scope, failure=list_failure(step, visit, outcome, failure), left=step)


def end_list(
    draft: Draft,
    scope: ScopeRow,
    *,
    failure: ListFailure | None = None,
    left: StepPlan | None = None,
    end: EndBody | None = None,
) -> None:
    """A list of steps is at its end. ``left`` is the step whose route ended it, ``end`` an ``end`` step."""
    if draft.revision == draft.facts.revision:
        draft.begin_revision()
    if scope.parent_visit is not None:
        end_body(draft, scope, failure, end)
    elif scope.section == Section.MAIN:
        end_main(draft, scope, failure, end)
    elif scope.section == Section.ON_FAILURE:
        begin_finally(draft, scope)
    elif failure is not None and left is not None:
        note_failure(draft, scope, failure, left)
    else:
        finish_run(draft, scope)


def end_body(draft: Draft, scope: ScopeRow, failure: ListFailure | None, end: EndBody | None) -> None:
    """The end of an item, a branch or a block."""
    error = failure.as_json() if failure else None
    if end is None or not end.replaces or error is not None:
        fanning.end_scope(draft, scope, failure=error)
        return
    try:
        fanning.end_scope_as(draft, scope, "ok", output_digest=draft.keep(end.output, limit=RUN_OUTPUT_LIMIT))
    except NotStorable as problem:
        fanning.end_scope(draft, scope, failure=fanning.scope_failure(problem.code, None, problem.message))


def end_cancelled(draft: Draft, scope: ScopeRow) -> None:
    """A scope that was stopped: a body ends as cancelled, the run goes on with its ``finally`` steps."""
    if scope.parent_visit is not None:
        fanning.end_scope(draft, scope, failure=None, cancelled=True)
    else:
        begin_finally(draft, scope)


def end_main(draft: Draft, scope: ScopeRow, failure: ListFailure | None, end: EndBody | None) -> None:
    """Fix how the run will end; its output is evaluated now, before the closing steps."""
    digest = None
    if failure is None:
        digest, failure = run_output(draft, scope, end)
    closing: dict[str, Any] = {"status": str(RunStatus.FAILED if failure else RunStatus.SUCCEEDED)}
    if failure is not None:
        closing["error"] = failure.as_json()
    if digest is not None:
        closing["output"] = digest
    if end is not None and end.reason:
        closing["reason"] = end.reason
    set_closing(draft, closing)
    if failure is not None and draft.plan.on_failure is not None:
        begin_section(draft, scope, Section.ON_FAILURE, draft.plan.on_failure)
    else:
        begin_finally(draft, scope)


def run_output(draft: Draft, scope: ScopeRow, end: EndBody | None) -> tuple[str | None, ListFailure | None]:
    """Digest of the run's output, or why there is none. The result must match ``returns``."""
    try:
        value = end.output if end and end.replaces else None
        if draft.plan.output is not None and not (end and end.replaces):
            value = evaluate(draft, scope, draft.plan.output)
        problem = schema_mismatch(draft.plan.returns, value, of="run")
        if problem is not None:
            return None, ListFailure(code="output_error", step=None, message=problem)
        return draft.keep(value, limit=RUN_OUTPUT_LIMIT), None
    except (BadExpression, NotStorable) as error:
        return None, ListFailure(code="output_error", step=None, message=f"The output of the run failed: {error}")


def begin_section(draft: Draft, scope: ScopeRow, section: Section, body: Body) -> None:
    draft.change_scope(
        scope,
        section=section.value,
        phase=ScopePhase.READY.value,
        step=body.first,
        visit=None,
        waits_for="",
        wake_at_ms=None,
    )


def begin_finally(draft: Draft, scope: ScopeRow) -> None:
    """Go on with the ``finally`` steps, or end the run at once when there are none."""
    if draft.plan.closing is not None:
        begin_section(draft, scope, Section.FINALLY, draft.plan.closing)
    else:
        finish_run(draft, scope)


def note_failure(draft: Draft, scope: ScopeRow, failure: ListFailure, left: StepPlan) -> None:
    """A failing ``finally`` step is noted, the first one counts, and the next step runs."""
    closing = draft.closing
    closing.setdefault("finally_error", failure.as_json())
    set_closing(draft, closing)
    following = left.body.following(left)
    if following == DONE:
        finish_run(draft, scope)
    else:
        draft.change_scope(scope, phase=ScopePhase.READY.value, step=following, visit=None)


def set_closing(draft: Draft, closing: dict[str, Any]) -> None:
    if not draft.state.closing:
        draft.event("run_closing", status=closing["status"])
    draft.set_state(closing=compact(closing))


def finish_run(draft: Draft, scope: ScopeRow) -> None:
    """The last closing step is over: the status becomes final. A failing ``finally`` turns success into failure."""
    closing = draft.closing
    status, error = closing["status"], closing.get("error")
    noted = closing.get("finally_error")
    if status == RunStatus.SUCCEEDED and noted:
        status = str(RunStatus.FAILED)
        error = {**noted, "code": "finally_failed"}
    draft.change_scope(scope, phase=ScopePhase.ENDED.value, step="", visit=None, waits_for="", wake_at_ms=None)
    draft.event(f"run_{status}", **({"code": error["code"]} if error else {}))
    draft.set_state(
        status=status,
        reasons="[]",
        error=compact(error) if error else "",
        output_digest=closing.get("output") if status == RunStatus.SUCCEEDED else None,
        started_at=draft.state.started_at or draft.now,
        ended_at=draft.now,
    )
    draft.ended = True
