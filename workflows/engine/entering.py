"""Entering a step: gates first, then what the kind asks for (promises ADM)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from workflows.definitions.plan import StepPlan
from workflows.engine import children, closing, fanning, limits, offering, people, settling, signals, workspace
from workflows.engine.contract import (
    Ask,
    AwaitSignal,
    Call,
    Child,
    Effect,
    EndBody,
    Entered,
    Entry,
    FanOut,
    Missing,
    Settled,
    Sleep,
    Work,
)
from workflows.engine.draft import Admission, Draft
from workflows.engine.environment import around, evaluate
from workflows.engine.failures import failure_text
from workflows.engine.reserving import pause, reserve
from workflows.errors import FAILURES, Failure
from workflows.expressions import BadExpression
from workflows.facts import AttemptRow, ScopeRow, VisitRow
from workflows.jsonvalue import NotStorable
from workflows.ledger.records import compact
from workflows.statuses import AttemptStatus, ScopePhase, Section, VisitStatus, WaitsFor


def go_on(draft: Draft, scope: ScopeRow) -> None:
    """Take one step in a ready scope."""
    if scope.visit is not None:
        enter_again(draft, scope)
    elif scope.step:
        enter(draft, scope)
    else:
        closing.end_list(draft, scope)


def enter(draft: Draft, scope: ScopeRow) -> None:
    """A new visit: refused by a gate, skipped, settled at once, waiting, or admitted with its first attempt."""
    step = draft.plan.steps[scope.step]
    latest = draft.settled(scope.path, step.id)
    round = (latest.round or 0) + 1 if latest else 1
    gate = closed_gate(draft, scope, step, round)
    if gate is not None:
        refuse(draft, scope, step, *gate)
        return
    entered = ask(draft, scope, step, round)
    match entered:
        case Missing():
            park_for_code(draft, scope, entered)
        case Effect() | Work() if not limits.has_place(draft, scope, step):
            limits.stand_in_line(draft, scope, step)
        case Effect() if not workspace.is_free(draft, entered.workspace):
            draft.gated[scope.path] = None
        case _:
            access = entered.access if isinstance(entered, Effect | Work) else ""
            visit = open_visit(draft, scope, step, round, access=access)
            proceed(draft, scope, step, visit, entered)


def proceed(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, entered: Entered) -> None:
    """Do what an open visit needs, in the present revision."""
    match entered:
        case Effect():
            admit(draft, scope, step, visit, entered)
        case Sleep() if entered.until_ms > draft.now_ms:
            sleep(draft, scope, visit, entered.until_ms)
        case FanOut():
            fanning.fan_out(draft, scope, step, visit, entered)
            draft.pending_joins.append(visit.number)
        case Call():
            call_block(draft, scope, step, visit, entered)
        case Ask():
            people.ask(draft, scope, step, visit, entered)
        case AwaitSignal():
            signals.await_signal(draft, scope, visit, entered)
        case Child():
            children.start(draft, scope, step, visit, entered)
        case Work():
            offer(draft, scope, visit, entered)
        case _:
            conclude(draft, scope, step, visit, entered)


def call_block(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, call: Call) -> None:
    """Begin a block; a parameter or a variable that cannot be computed fails the visit."""
    try:
        params = fanning.checked_parameters(step.bodies["do"], dict(call.params))
        fanning.call_block(draft, scope, step, visit, replace(call, params=params))
    except BadExpression as error:
        failure = Failure(code="bad_expression", message=str(error))
        settling.finish(draft, scope, step, visit, outcome="failed", failure=failure)


def closed_gate(draft: Draft, scope: ScopeRow, step: StepPlan, round: int) -> tuple[str, Failure] | None:
    """The outcome and failure of an entry that is refused, or None. Closing steps are not held up by budgets."""
    if step.max_visits is not None and round > step.max_visits:
        message = f'"{step.id}" was visited {step.max_visits} times, which is its max_visits.'
        return "exhausted", Failure(code="loop_limit", message=message)
    if scope.section != Section.MAIN:
        return None
    budget = draft.plan.budget
    message = ""
    if draft.visit_count >= budget.visits:
        message = f"The run has made {draft.visit_count} visits; its budget is {budget.visits}."
    elif budget.time_ms is not None and draft.facts.active_ms >= budget.time_ms:
        message = f"Workers drove the run for {draft.facts.active_ms} ms; its budget is {budget.time_ms} ms."
    if not message:
        return None
    outcome = "over_budget" if "over_budget" in step.routes else "failed"
    return outcome, Failure(code="budget_exceeded", message=message)


def refuse(draft: Draft, scope: ScopeRow, step: StepPlan, outcome: str, failure: Failure) -> None:
    """An entry that the plan can route: a visit of status refused, without round and attempt."""
    draft.begin_revision()
    visit = draft.add_visit(
        VisitRow(
            number=draft.visit_count + 1,
            scope=scope.path,
            step=step.id,
            round=None,
            kind=step.kind,
            access="",
            status=VisitStatus.REFUSED.value,
            outcome=outcome,
            error=failure_text(failure),
            revision_created=draft.revision,
            revision_settled=draft.revision,
            started_at=draft.now,
            ended_at=draft.now,
        )
    )
    draft.event("step_refused", visit=visit.number, step=step.id, outcome=outcome, code=failure.code)
    # A budget that is used up ends the list: routing on would only collect further refusals, without end.
    routed = failure.code != "budget_exceeded" or outcome == "over_budget"
    settling.leave(draft, scope, step, visit, outcome, failure, ran=False, routed=routed)


def ask(draft: Draft, scope: ScopeRow, step: StepPlan, round: int) -> Entered:
    """What the step needs, by its kind. A failing expression settles the visit with ``bad_expression``."""
    kind = draft.kinds.get(step.kind)
    if kind is None:
        return Missing(what="step kind", name=step.kind, step=step.id)
    try:
        if step.only_if is not None and not condition(draft, scope, step):
            return Settled(outcome="skipped")
        return kind.enter(
            Entry(
                step=step,
                evaluate=lambda value: evaluate(draft, scope, value),
                evaluate_with=lambda value, extra: evaluate(draft, scope, value, extra),
                evaluate_escaped=lambda value, escape: evaluate(draft, scope, value, escape=escape),
                variables=draft.variables(scope.path),
                now_ms=draft.now_ms,
                round=round,
                frozen=draft.facts.identity.frozen,
            )
        )
    except (BadExpression, NotStorable) as error:
        return Settled(outcome="failed", failure=Failure(code="bad_expression", message=str(error)))


def condition(draft: Draft, scope: ScopeRow, step: StepPlan) -> bool:
    assert step.only_if is not None
    value = evaluate(draft, scope, step.only_if)
    if not isinstance(value, bool):
        raise BadExpression(f'"only_if" of "{step.id}" must be true or false, but it is {compact(value)[:100]}.')
    return value


def open_visit(draft: Draft, scope: ScopeRow, step: StepPlan, round: int, *, access: str = "") -> VisitRow:
    """Add a visit in a revision of its own; what becomes of it is said in the same revision."""
    draft.begin_revision()
    visit = draft.add_visit(
        VisitRow(
            number=draft.visit_count + 1,
            scope=scope.path,
            step=step.id,
            round=round,
            kind=step.kind,
            access=access,
            status=VisitStatus.OPEN.value,
            revision_created=draft.revision,
            started_at=draft.now,
        )
    )
    return visit


def conclude(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, entered: Entered) -> None:
    """Settle a visit that needs no effect, in the present revision."""
    match entered:
        case Settled():
            settle_pure(draft, scope, step, visit, entered)
        case Sleep():
            settling.finish(draft, scope, step, visit, outcome=entered.outcome)
        case EndBody():
            closing.settle_end(draft, scope, step, visit, entered)
        case _:
            raise TypeError(f"{type(entered).__name__} does not settle a visit")


def settle_pure(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, entered: Settled) -> None:
    outcome, failure, digest = entered.outcome, entered.failure, None
    try:
        digest = draft.keep(entered.output, limit=settling.OUTPUT_LIMIT)
        if entered.variables:
            set_variables(draft, scope, entered.variables)
    except NotStorable as error:
        outcome, failure = "failed", Failure(code=error.code, message=error.message)
    settling.finish(draft, scope, step, visit, outcome=outcome, output_digest=digest, failure=failure)


def set_variables(draft: Draft, scope: ScopeRow, values: Mapping[str, Any]) -> None:
    """Set variables where they were declared: in this scope, or in the nearest one around it that has them."""
    left = dict(values)
    for one in around(draft, scope):
        own = draft.variables(one.path)
        new = {name: left.pop(name) for name in tuple(left) if name in own}
        if new:
            draft.set_variables(one.path, {**own, **new})


def sleep(draft: Draft, scope: ScopeRow, visit: VisitRow, until_ms: int) -> None:
    draft.event("step_waiting", visit=visit.number, step=visit.step, until_ms=until_ms)
    draft.change_scope(
        scope, phase=ScopePhase.WAITING.value, visit=visit.number, waits_for=WaitsFor.TIMER.value, wake_at_ms=until_ms
    )


def admit(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, effect: Effect) -> None:
    """Reserve the next attempt of a visit, in the present revision; it starts once this is committed."""
    attempts = draft.attempts(visit.number)
    inputs = input_hash(effect)
    attempt = reserve(draft, visit, dispatch_id=dispatch_id(draft, attempts, inputs), inputs=inputs)
    draft.event("step_started", visit=visit.number, attempt=attempt.number, step=step.id)
    scope = draft.change_scope(scope, phase=ScopePhase.EFFECT.value, visit=visit.number, waits_for="", wake_at_ms=None)
    draft.admissions.append(Admission(attempt=attempt, visit=visit, step=step, effect=effect, scope=scope))


def offer(draft: Draft, scope: ScopeRow, visit: VisitRow, work: Work) -> None:
    """Offer the next attempt of a visit to other programs, in the present revision."""
    inputs = input_hash(work)
    repeated = dispatch_id(draft, draft.attempts(visit.number), inputs)
    attempt = pause(draft, visit, dispatch_id=repeated, inputs=inputs)
    offering.offer(draft, scope, visit, attempt, work)


def enter_again(draft: Draft, scope: ScopeRow) -> None:
    """The next attempt of an open visit: a retry, a recovery, an operator's word, or a reopened step."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    step = draft.plan.steps[scope.step]
    entered = ask(draft, scope, step, visit.round or 1)
    attempts = draft.attempts(visit.number)
    match entered:
        case Missing():
            park_for_code(draft, scope, entered)
        case Effect() | Work() if repeats_other_inputs(attempts, entered):
            park_for_changed_inputs(draft, scope, visit, attempts[-1])
        case Effect() | Work() if not limits.has_place(draft, scope, step):
            limits.stand_in_line(draft, scope, step)
        case Effect() if not workspace.is_free(draft, entered.workspace):
            if scope.phase == ScopePhase.WAITING:
                draft.begin_revision()
                draft.event("step_resumed", visit=visit.number, step=step.id)
                draft.change_scope(scope, phase=ScopePhase.READY.value, waits_for="", wake_at_ms=None)
            draft.gated[scope.path] = None
        case _:
            draft.begin_revision()
            if isinstance(entered, Effect | Work):
                visit = draft.change_visit(visit, access=entered.access)
            proceed(draft, scope, step, visit, entered)


def try_again(draft: Draft, scope: ScopeRow) -> None:
    """A scope parked for missing code goes on if the code is back; otherwise nothing changes."""
    step = draft.plan.steps[scope.step]
    round = draft.visit(scope.visit).round if scope.visit is not None else 1
    if isinstance(ask(draft, scope, step, round or 1), Missing):
        return
    draft.begin_revision()
    draft.event("step_resumed", visit=scope.visit, step=step.id)
    draft.change_scope(scope, phase=ScopePhase.READY.value, waits_for="")


def park_for_code(draft: Draft, scope: ScopeRow, missing: Missing) -> None:
    draft.begin_revision()
    draft.event("step_parked", visit=scope.visit, step=scope.step, missing=f"{missing.what} {missing.name}")
    draft.change_scope(scope, phase=ScopePhase.WAITING.value, waits_for=WaitsFor.CODE.value, wake_at_ms=None)


def park_for_changed_inputs(draft: Draft, scope: ScopeRow, visit: VisitRow, attempt: AttemptRow) -> None:
    draft.begin_revision()
    draft.event("step_parked", visit=visit.number, attempt=attempt.number, code="attempt.input_changed")
    draft.change_scope(scope, phase=ScopePhase.WAITING.value, waits_for=WaitsFor.RECONCILE.value, wake_at_ms=None)


def repeats_other_inputs(attempts: tuple[AttemptRow, ...], effect: Effect | Work) -> bool:
    """Whether the key of an uncertain try would be used again for something else (ADM.10)."""
    if not attempts or attempts[-1].authorization or not keeps_id(attempts[-1]):
        return False
    return attempts[-1].input_hash != input_hash(effect)


def dispatch_id(draft: Draft, attempts: tuple[AttemptRow, ...], inputs: str) -> str:
    """The former id while it is unknown whether the former try happened, otherwise a new one."""
    if attempts and keeps_id(attempts[-1]) and attempts[-1].input_hash == inputs:
        return attempts[-1].dispatch_id
    return draft.new_id()


def keeps_id(attempt: AttemptRow) -> bool:
    """Whether the next try is a repetition under the same id. A try that a fork inherited has the id of its origin,
    which may go on using it (FORK.2)."""
    return is_uncertain(attempt) and not attempt.inherited


def is_uncertain(attempt: AttemptRow) -> bool:
    if attempt.status == AttemptStatus.INTERRUPTED:
        return True
    code = error_code(attempt.error)
    return bool(code) and code in FAILURES and FAILURES[code].uncertain


def error_code(text: str) -> str:
    return str(settling.decode_error(text).get("code", ""))


def input_hash(effect: Effect | Work) -> str:
    """SHA-256 over everything the effect depends on."""
    value: dict[str, Any] = {"inputs": effect.inputs, "workspace": effect.workspace}
    return sha256(compact(value).encode("utf-8", "surrogatepass")).hexdigest()
