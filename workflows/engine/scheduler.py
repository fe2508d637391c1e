"""The scheduler: (plan, facts, results, now) → what happens next. Pure.

The order is fixed: results in hand are settled, then controls apply, then scopes whose moment has come wake up, then
every scope that can go on is advanced until it waits for an effect, a moment or a person, or has ended.
Pure steps cost nothing: their visits ride in the transaction of the settlement before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from workflows.definitions.plan import Plan
from workflows.engine import (
    beginning,
    children,
    controls,
    entering,
    external,
    fanning,
    joining,
    limits,
    people,
    recovery,
    settling,
    signals,
    status,
)
from workflows.engine.contract import INTERRUPTED, Kinds, Result
from workflows.engine.draft import Draft
from workflows.facts import ControlRow, Facts, ScopeRow
from workflows.statuses import ScopePhase, WaitsFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``draft`` holds the rows; ``waits_until_ms`` the next moment of its own the run waits for; ``parks``: nothing
    runs and nothing can go on."""

    draft: Draft
    parks: bool
    waits_until_ms: int | None


def decide(
    plan: Plan,
    facts: Facts,
    kinds: Kinds,
    *,
    results: Mapping[tuple[int, int], Result],
    messages: Iterable[ControlRow],
    now: datetime,
    new_id: Callable[[], str],
    out_of_time: Callable[[], bool] = lambda: False,
    first: bool = False,
    start_nothing: bool = False,
) -> Decision:
    """One decision. ``results`` are the ends of running attempts by (visit, attempt); ``messages`` pending controls.

    ``first``: this driver has just taken the run over, so attempts of former owners are looked for.
    ``start_nothing``: the worker is about to leave, so results are settled and nothing else is begun.
    """
    draft = Draft(plan, facts, kinds, now=now, new_id=new_id, out_of_time=out_of_time)
    for (visit, attempt), result in results.items():
        settle(draft, visit, attempt, result)
    for message in messages:
        controls.apply(draft, message)
    if not draft.ended:
        beginning.begin(draft)
    if not (draft.ended or start_nothing):
        if first:
            recovery.recover(draft)
            joining.look_again(draft)
        wake(draft)
        advance(draft)
    else:
        joining.join_what_ended(draft)
    return conclude(draft)


def conclude(draft: Draft) -> Decision:
    """Derive the run's status from its scopes and say whether the run parks."""
    wake_at_ms = status.derive(draft)
    running = any(scope.phase == ScopePhase.EFFECT for scope in draft.scopes.values())
    ready = not draft.state.held and any(scope.phase == ScopePhase.READY for scope in draft.scopes.values())
    return Decision(draft=draft, parks=draft.ended or not (running or ready), waits_until_ms=wake_at_ms)


def settle(draft: Draft, visit_number: int, attempt_number: int, result: Result) -> None:
    """Settle a running attempt with what its effect returned."""
    visit = draft.visit(visit_number)
    scope = draft.scopes[visit.scope]
    attempt = next(row for row in draft.attempts(visit_number) if row.number == attempt_number)
    if fanning.is_cancelled(draft, scope):
        settling.cancel_attempt(draft, scope, visit, attempt, result)
    elif result.outcome == INTERRUPTED:
        recovery.interrupt(draft, scope, visit, attempt, reason="worker_stopped", log=result.log)
    else:
        draft.begin_revision()
        attempt = settling.close(draft, attempt, result)
        settling.conclude(draft, scope, visit, attempt, result)


def wake(draft: Draft) -> None:
    """Wake the scopes whose moment has come: timers, retries, and what an operator has decided or repaired."""
    for scope in draft.live_scopes():
        if draft.scopes.get(scope.path) is not scope or scope.phase != ScopePhase.WAITING or draft.ended:
            continue
        if scope.waits_for in (WaitsFor.RECONCILE, WaitsFor.CODE) and draft.state.held:
            continue  # a hold starts nothing; what an operator said is carried out when it is lifted
        if scope.waits_for == WaitsFor.RECONCILE:
            recovery.carry_out(draft, scope)
        elif scope.waits_for == WaitsFor.CODE:
            entering.try_again(draft, scope)
        elif scope.waits_for == WaitsFor.PEOPLE and people.is_answered(draft, scope):
            people.take_answer(draft, scope)
        elif _has_come(draft, scope):
            continue
        elif scope.wake_at_ms is not None and scope.wake_at_ms <= draft.now_ms and status.has_moments(draft, scope):
            wake_up(draft, scope)


def _has_come(draft: Draft, scope: ScopeRow) -> bool:
    """Whether what a scope waits for from outside is there, and taken."""
    match scope.waits_for:
        case WaitsFor.SIGNAL:
            return signals.take(draft, scope)
        case WaitsFor.CHILD:
            return children.take_end(draft, scope)
        case WaitsFor.SLOT:
            return limits.got_place(draft, scope)
        case WaitsFor.EXTERNAL:
            return external.take_result(draft, scope)
    return False


def wake_up(draft: Draft, scope: ScopeRow) -> None:
    """The moment a scope waited for has come: a timer settles its visit, a retry starts the next attempt, a deadline
    or a timeout passes."""
    if scope.waits_for == WaitsFor.RETRY and scope.visit is not None:
        if draft.facts.is_occupied(scope.visit):
            settling.postpone_retry(draft, scope)
        else:
            entering.enter_again(draft, scope)
    elif scope.waits_for == WaitsFor.JOIN:
        joining.time_out(draft, scope)
    elif scope.waits_for == WaitsFor.PEOPLE:
        people.pass_moment(draft, scope)
    elif scope.waits_for == WaitsFor.SIGNAL:
        signals.expire(draft, scope)
    elif scope.waits_for == WaitsFor.CHILD:
        children.expire(draft, scope)
    elif scope.waits_for == WaitsFor.EXTERNAL:
        external.time_out(draft, scope)
    elif scope.waits_for == WaitsFor.TIMER and scope.visit is not None:
        step = draft.plan.steps[scope.step]
        draft.begin_revision()
        settling.finish(draft, scope, step, draft.visit(scope.visit), outcome=step.main_outcome or "elapsed")


def advance(draft: Draft) -> None:
    """Advance every ready scope as far as it goes; those that wait for the workspace longest come first."""
    while True:
        joining.join_what_ended(draft)
        if draft.is_over or draft.state.held:
            return
        ready = [scope for scope in draft.scopes.values() if scope.phase == ScopePhase.READY]
        ready = [scope for scope in ready if scope.path not in draft.gated]
        if not ready:
            return
        ready.sort(key=lambda scope: draft.facts.gate_order(scope.path))
        for scope in ready:
            if draft.scopes.get(scope.path) is scope and not draft.is_over:
                entering.go_on(draft, scope)
