"""Reconcile: a person says what became of an attempt whose worker died (promise ADM.6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from workflows.definitions.compiler import compiled
from workflows.definitions.plan import StepPlan
from workflows.engine.output_schema import schema_mismatch
from workflows.engine.results import MESSAGE_LIMIT, OUTPUT_LIMIT
from workflows.errors import FAILURES, Refusal
from workflows.jsonvalue import NotStorable, Stored, check_storable, store
from workflows.ledger.reconciling import Decision, Reconciliation
from workflows.ledger.reconciling import reconcile as record
from workflows.models import Run, Scope, Visit
from workflows.operations.access import require
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.statuses import ScopePhase, WaitsFor

#: Outcomes that the engine gives and no effect has.
_NEVER_TOLD = frozenset({"failed", "timed_out", "skipped", "exhausted", "over_budget"})
_SHELL_OUTPUT = {"text": "text", "lines": "a list of texts", "none": "nothing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a person says. *happened* with ``error_code``: it failed, with this code and ``message``; otherwise it
    ended with ``outcome`` (None: the step's main one) and ``output``."""

    decision: Decision
    reason: str
    outcome: str | None = None
    output: Any = None
    error_code: str | None = None
    message: str = ""
    exit_code: int | None = None


def reconcile(run_id: int, told: Told, *, actor: Actor, visit: int | None = None) -> int:
    """Record what happened and wake the run; returns the number of the visit.

    ``visit`` None means the one that waits for it, if it is the only one. Raises ``run.not_found``, ``access.denied``,
    ``run.terminal``, ``attempt.not_interrupted``, ``attempt.invalid_result``, ``input.invalid``.
    """
    require(actor, "reconcile_run", run=run_id)
    number, reconciliation = _checked(run_id, told, actor, visit)
    record(run_id=run_id, visit=number, reconciliation=reconciliation, now=timezone.now())
    return number


def check_reconciliation(run_id: int, told: Told, *, visit: int | None = None) -> int:
    """The visit that ``reconcile`` would decide. Nothing is written; what it would refuse is refused."""
    return _checked(run_id, told, Actor(name="", recorded=""), visit)[0]


def _checked(run_id: int, told: Told, actor: Actor, visit: int | None) -> tuple[int, Reconciliation]:
    if not told.reason.strip():
        raise Refusal("input.invalid", reason="A reason is needed: it is kept with the decision.")
    told = replace(told, reason=checked_reason(told.reason))
    run = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    number = _visit_to_decide(run_id, visit)
    if told.decision == "happened":
        return number, _result(run, number, told, actor)
    return number, Reconciliation(decision=told.decision, actor=actor.recorded, reason=told.reason)


def _visit_to_decide(run_id: int, visit: int | None) -> int:
    waiting = Scope.objects.filter(run_id=run_id, phase=ScopePhase.WAITING, waits_for=WaitsFor.RECONCILE)
    numbers: list[int] = sorted(number for number in waiting.values_list("visit", flat=True) if number is not None)
    if visit is not None:
        if visit not in numbers:
            raise Refusal("attempt.not_interrupted", run=run_id, visit=f"v{visit}")
        return visit
    if not numbers:
        raise Refusal("attempt.not_interrupted", run=run_id, visit=f"Run {run_id}")
    if len(numbers) > 1:
        listed = ", ".join(f"v{number}" for number in numbers)
        raise Refusal("input.invalid", reason=f"Several steps wait to be reconciled ({listed}); say which one.")
    return numbers[0]


def _result(run: Run, number: int, told: Told, actor: Actor) -> Reconciliation:
    visit = Visit.objects.get(run=run, number=number)
    step = compiled(run.plan.hash, run.plan.document).steps[visit.step]
    if told.error_code is not None:
        failure = _failure(number, told)
        outcome, output = FAILURES[told.error_code].outcome, None
    else:
        failure = None
        outcome = _outcome(step, number, told.outcome, json.loads(run.frozen))
        output = checked_output(step, number, outcome, told.output)
    return Reconciliation(
        decision="happened",
        actor=actor.recorded,
        reason=told.reason,
        outcome=outcome,
        output=output,
        failure=failure,
        exit_code=_exit_code(step, told, outcome),
    )


def _failure(number: int, told: Told) -> Mapping[str, str]:
    code = told.error_code or ""
    if code not in FAILURES or not FAILURES[code].retryable:
        known = ", ".join(code for code, rule in FAILURES.items() if rule.retryable)
        raise _invalid(number, f'"{code}" is not an error of a step. Errors: {known}.')
    if told.outcome is not None or told.output is not None:
        raise _invalid(number, "an attempt that failed has neither outcome nor output.")
    message = told.message or f"It failed, says a person: {told.reason}"
    problems = check_storable(message, "message")
    if problems:
        raise _invalid(number, problems[0].message)
    return {"code": code, "message": message[: MESSAGE_LIMIT // 4]}


def _outcome(step: StepPlan, number: int, outcome: str | None, frozen: Mapping[str, Any]) -> str:
    possible = _possible_outcomes(step, frozen)
    if outcome is None:
        return step.main_outcome or "ok"
    if outcome not in possible:
        raise _invalid(number, f'"{outcome}" is not an outcome of "{step.id}". Outcomes: {", ".join(possible)}.')
    return outcome


def _possible_outcomes(step: StepPlan, frozen: Mapping[str, Any]) -> list[str]:
    declared = frozen.get("functions", {}).get(step.options.get("call"), {}).get("outcomes", ())
    return [name for name in dict.fromkeys((*step.routes, *declared)) if name not in _NEVER_TOLD]


def checked_output(step: StepPlan, number: int, outcome: str, value: Any) -> Stored | None:
    """The output of a visit that a person gives, as the step itself could give it. Raises
    ``attempt.invalid_result``."""
    problems = check_storable(value, "output")
    if problems:
        raise _invalid(number, problems[0].message)
    is_left_out = value is None and outcome != step.main_outcome
    if not is_left_out:
        _check_form(step, number, value)
        mismatch = schema_mismatch(step.options.get("schema"), value)
        if mismatch is not None:
            raise _invalid(number, mismatch)
    if value is None:
        return None
    try:
        return store(value, limit=OUTPUT_LIMIT)
    except NotStorable as error:
        raise _invalid(number, error.message) from None


def _check_form(step: StepPlan, number: int, value: Any) -> None:
    """The output of a shell step has the form that ``parse`` gives it."""
    if step.kind != "shell":
        return
    parse = step.options.get("parse") or "text"
    fits = {
        "text": isinstance(value, str),
        "lines": isinstance(value, list) and all(isinstance(line, str) for line in value),
        "none": value is None,
    }
    if not fits.get(parse, True):
        raise _invalid(number, f"the output of `parse: {parse}` is {_SHELL_OUTPUT[parse]}.")


def _exit_code(step: StepPlan, told: Told, outcome: str) -> int | None:
    if step.kind != "shell":
        return None
    if told.exit_code is not None:
        return told.exit_code
    codes = [code for code, name in (step.options.get("exits") or {}).items() if name == outcome]
    return 0 if told.error_code is None and not codes else codes[0] if len(codes) == 1 else None


def _invalid(number: int, reason: str) -> Refusal:
    return Refusal("attempt.invalid_result", visit=f"v{number}", reason=reason)
