"""Signals and steering: what people and programs say to a run while it goes on (promises CTL).

A signal is kept until a wait of the run takes it, a text that steers until a step that takes one begins its next try.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from workflows.definitions.compiler import compiled
from workflows.definitions.plan import Plan
from workflows.definitions.suggestions import did_you_mean
from workflows.errors import Refusal
from workflows.expressions import Value
from workflows.jsonvalue import check_storable
from workflows.ledger.controlling import Accepted, send
from workflows.models import Run
from workflows.operations.access import require
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.statuses import ControlKind

#: Characters of one text that steers.
MOST_STEERING = 20_000
MOST_REQUEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalNames:
    """The names that the waits of a plan can take. ``is_complete`` False: an expression forms further ones."""

    fixed: tuple[str, ...]
    is_complete: bool


def signal(run_id: int, name: str, payload: Any, *, actor: Actor, request_id: str | None = None) -> bool:
    """Send a signal to a run; it stays pending until a wait for it consumes it. True when that is new.

    A name that no wait of the run's plan can take is refused: it is misspelled, and the run would wait for ever. Raises
    ``run.not_found``, ``access.denied``, ``run.terminal``, ``control.conflict``, ``control.too_many``,
    ``control.too_large``, ``input.invalid``.
    """
    require(actor, "start_run", run=run_id, action="run.signal")
    problems = check_storable(payload, "payload")
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message, problems=tuple(problems))
    _refuse_unknown_name(run_id, name)
    return send(
        run_id=run_id,
        kind=ControlKind.SIGNAL,
        payload={"name": name, "payload": payload},
        request_id=_request_id(request_id),
        sender=actor.recorded,
        now=timezone.now(),
        action="run.signal",
    ).new


def steer(run_id: int, text: str, *, actor: Actor, reason: str = "", request_id: str | None = None) -> Accepted:
    """Tell the next try of a step that takes it what to do; the text stays pending until then (CTL.5). A reason is for
    the audit, not for the step.

    The same request id again is the same text. Raises ``run.not_found``, ``access.denied``, ``input.invalid``,
    ``run.terminal``, ``control.conflict``, ``control.too_many``, ``control.too_large``.
    """
    require(actor, "hold_run", run=run_id, action="run.steer")
    check_steering(text)
    told = checked_reason(reason)
    return send(
        run_id=run_id,
        kind=ControlKind.STEER,
        payload={"text": text, "reason": told} if told else {"text": text},
        request_id=_request_id(request_id),
        sender=actor.recorded,
        now=timezone.now(),
        action="run.steer",
    )


def check_steering(text: str) -> None:
    """Raises ``input.invalid`` for a text that says nothing, is too long, or cannot be stored."""
    problems = check_storable(text, "text")
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message, problems=tuple(problems))
    if not text.strip():
        raise Refusal("input.invalid", reason="The text is empty.")
    if len(text) > MOST_STEERING:
        raise Refusal("input.invalid", reason=f"The text has {len(text)} characters; the limit is {MOST_STEERING}.")


def _request_id(given: str | None) -> str:
    """Raises ``input.invalid``."""
    if given is None:
        return uuid.uuid4().hex
    if not (0 < len(given) <= MOST_REQUEST_ID and given.isprintable()):
        raise Refusal("input.invalid", reason=f"A request id has 1 to {MOST_REQUEST_ID} printable characters.")
    return given


def signal_names(plan: Plan) -> SignalNames:
    """The names of the signals that a plan waits for, in the order of its steps."""
    waited = [step.options["signal"] for step in plan.steps.values() if step.options.get("signal") is not None]
    fixed = [name.evaluate({}) if isinstance(name, Value) and name.is_fixed else name for name in waited]
    known = tuple(dict.fromkeys(name for name in fixed if isinstance(name, str)))
    return SignalNames(fixed=known, is_complete=all(isinstance(name, str) for name in fixed))


def _refuse_unknown_name(run_id: int, name: str) -> None:
    run = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None or run.is_final:
        return  # sending says so
    try:
        names = signal_names(compiled(run.plan.hash, run.plan.document))
    except Refusal:  # a plan that cannot be read: whoever repairs it may want the signal
        return
    if name in names.fixed or not names.is_complete:
        return
    hint = did_you_mean(name, names.fixed) or (
        f"It waits for {', '.join(names.fixed)}." if names.fixed else "Signals go to the run whose step waits for them."
    )
    raise Refusal("input.invalid", reason=f'No step of run {run_id} waits for a signal "{name[:80]}".', advice=hint)
