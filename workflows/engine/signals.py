"""Signals: a wait takes the first pending signal of its name for which its ``match`` holds."""

from __future__ import annotations

from workflows.engine import settling
from workflows.engine.contract import AwaitSignal
from workflows.engine.draft import Draft
from workflows.engine.environment import evaluate
from workflows.expressions import BadExpression
from workflows.facts import ControlRow, ScopeRow, VisitRow
from workflows.jsonvalue import decode
from workflows.statuses import ScopePhase, WaitsFor


def await_signal(draft: Draft, scope: ScopeRow, visit: VisitRow, entered: AwaitSignal) -> None:
    """Wait, in the present revision. The name is kept as the scope's key of what it waits for."""
    draft.event("step_waiting", visit=visit.number, step=visit.step, signal=entered.name)
    scope = draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        visit=visit.number,
        waits_for=WaitsFor.SIGNAL.value,
        wake_at_ms=None if entered.timeout_ms is None else draft.now_ms + entered.timeout_ms,
    )
    take(draft, scope)


def take(draft: Draft, scope: ScopeRow) -> bool:
    """Consume the first pending signal that fits and settle the visit with its payload; whether there was one."""
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    step = draft.plan.steps[visit.step]
    for message in draft.signals:
        content = decode(message.payload)
        if message.sequence in draft.controls or not fits(draft, scope, content):
            continue
        draft.controls.append(message.sequence)
        draft.begin_revision()
        draft.event("signal_consumed", visit=visit.number, sequence=message.sequence)
        settling.finish(draft, scope, step, visit, outcome="received", output_digest=draft.keep(content.get("payload")))
        return True
    return False


def fits(draft: Draft, scope: ScopeRow, content: dict[str, object]) -> bool:
    """Whether a signal is the one a scope waits for. One for which ``match`` cannot be evaluated does not fit:
    what a stranger sends must not fail a run."""
    options = draft.plan.steps[scope.step].options
    try:
        if evaluate(draft, scope, options["signal"]) != content.get("name"):
            return False
        match = options["match"]
        return match is None or evaluate(draft, scope, match, {"signal": content.get("payload")}) is True
    except BadExpression:
        return False


def expire(draft: Draft, scope: ScopeRow) -> None:
    assert scope.visit is not None
    visit = draft.visit(scope.visit)
    draft.begin_revision()
    settling.finish(draft, scope, draft.plan.steps[visit.step], visit, outcome="expired")


def pending(messages: list[ControlRow], consumed: list[int]) -> list[ControlRow]:
    """The signals that nobody has consumed: a later wait may."""
    return [message for message in messages if message.kind == "signal" and message.sequence not in consumed]
