"""Joining: when the bodies of a container have ended, its visit is settled and its scope goes on."""

from __future__ import annotations

import json

from workflows.engine import fanning, settling, stopping
from workflows.engine.draft import Draft
from workflows.errors import Failure
from workflows.facts import ScopeRow, VisitRow
from workflows.jsonvalue import NotStorable
from workflows.statuses import ScopeKind, Stopping, WaitsFor


def join_what_ended(draft: Draft) -> None:
    """Look at every container of which a body has ended; the end of one may end another around it."""
    while draft.pending_joins and not draft.ended:
        visit = draft.visit(draft.pending_joins.pop(0))
        scope = draft.scopes.get(visit.scope)
        if scope is None or scope.visit != visit.number or scope.waits_for != WaitsFor.JOIN:
            continue
        if visit.kind == "block":
            join_block(draft, scope, visit)
        else:
            join_items(draft, scope, visit)


def look_again(draft: Draft) -> None:
    """Look at the open containers that were reopened, or forked: one may have items to start, or none left."""
    for scope in draft.live_scopes():
        if scope.waits_for != WaitsFor.JOIN or scope.visit is None:
            continue
        visit = draft.visit(scope.visit)
        if needs_a_look(draft, scope, visit):
            draft.begin_revision()
            draft.event("step_resumed", visit=visit.number, step=visit.step)
            draft.pending_joins.append(visit.number)


def needs_a_look(draft: Draft, scope: ScopeRow, visit: VisitRow) -> bool:
    """Whether a container has something to do that no end of a body will bring about.

    The cut of a fork may lie between the end of a body and the join, which are committed together otherwise.
    """
    if visit.kind == "block":
        return visit.inherited and ended_block(draft, visit) is not None
    if scope.stopping:
        return visit.inherited and not draft.counts(visit.number).live
    if visit.inherited and fanning.stop_after(draft, draft.plan.steps[visit.step], visit) is not None:
        return True
    return bool(visit.reopened or visit.inherited) and fanning.has_room(draft, visit)


def time_out(draft: Draft, scope: ScopeRow) -> None:
    """The timeout of a container: what runs in it is cancelled."""
    assert scope.visit is not None
    draft.begin_revision()
    draft.event("step_timing_out", visit=scope.visit, step=scope.step)
    draft.change_scope(scope, stopping=Stopping.TIMED_OUT.value, wake_at_ms=None)
    stopping.stop(draft, fanning.scopes_below(draft, scope.visit))
    draft.pending_joins.append(scope.visit)


def join_items(draft: Draft, scope: ScopeRow, visit: VisitRow) -> None:
    step = draft.plan.steps[visit.step]
    reason = fanning.stop_after(draft, step, visit)
    if reason is not None and overrides(reason, scope.stopping):
        scope = draft.change_scope(scope, stopping=reason.value)
        if reason in fanning.CANCELLING:
            # it is decided, so its timeout has nothing to say any more
            scope = draft.change_scope(scope, wake_at_ms=None)
            stopping.stop(draft, fanning.scopes_below(draft, visit.number))
    fanning.start_items(draft, visit)
    scope = draft.scopes[visit.scope]
    counts, total = draft.counts(visit.number), draft.fanout(visit.number).total
    if counts.live or (counts.started < total and not scope.stopping):
        return
    draft.begin_revision()
    outcome = fanning.joined_outcome(step, counts, total, scope.stopping)
    if fanning.is_cancelled(draft, scope):
        settling.cancel_visit(draft, scope, visit)
        return
    try:
        output, detail, ended = fanning.assemble(draft, step, visit)
        failure = fanning.joined_failure(outcome, counts, total, ended)
    except NotStorable as error:
        output = detail = None
        outcome, failure = "failed", Failure(code=error.code, message=f"The joined output cannot be kept: {error}")
    settling.finish(
        draft, scope, step, visit, outcome=outcome, output_digest=output, detail_digest=detail, failure=failure
    )


def overrides(reason: Stopping, stopping: str) -> bool:
    """Whether a decided join changes why items end: nothing was said before, or only that no new ones start."""
    return not stopping or (reason is Stopping.SUCCEEDED and stopping == Stopping.OVER_BUDGET)


def join_block(draft: Draft, scope: ScopeRow, visit: VisitRow) -> None:
    body = ended_block(draft, visit)
    if body is None:
        return
    step = draft.plan.steps[visit.step]
    draft.begin_revision()
    if fanning.is_cancelled(draft, scope):
        settling.cancel_visit(draft, scope, visit)
    elif scope.stopping == Stopping.TIMED_OUT:
        failure = Failure(code="timeout", message="The block took longer than its timeout.")
        settling.finish(draft, scope, step, visit, outcome="timed_out", failure=failure)
    elif body.outcome == "ok":
        settling.finish(draft, scope, step, visit, outcome="ok", output_digest=body.output_digest)
    else:
        error = json.loads(body.error)
        failure = Failure(code=error["code"], message=error["message"])
        settling.finish(draft, scope, step, visit, outcome="failed", failure=failure)


def ended_block(draft: Draft, visit: VisitRow) -> ScopeRow | None:
    """The body of an open block call, once it has ended: by this decision, or before the cut of a fork."""
    ended = (row for row in draft.ended_scopes.values() if row.parent_visit == visit.number)
    found = next((row for row in ended if row.kind == ScopeKind.BLOCK), None)
    if found is None and visit.inherited:
        return next(iter(draft.facts.ended_items(visit.number).values()), None)
    return found
