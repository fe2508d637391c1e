"""Signals: sent by people and programs, kept until a wait of the run takes them (promises CTL)."""

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
from workflows.ledger.controlling import send
from workflows.models import Run
from workflows.operations.people import Actor
from workflows.statuses import ControlKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalNames:
    """The names that the waits of a plan can take. ``is_complete`` False: an expression forms further ones."""

    fixed: tuple[str, ...]
    is_complete: bool


def signal(run_id: int, name: str, payload: Any, *, actor: Actor, request_id: str | None = None) -> bool:
    """Send a signal to a run; it stays pending until a wait for it consumes it. True when that is new.

    A name that no wait of the run's plan can take is refused: it is misspelled, and the run would wait for ever. Raises
    ``run.not_found``, ``run.terminal``, ``control.conflict``, ``control.too_many``, ``input.invalid``.
    """
    problems = check_storable(payload, "payload")
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message, problems=tuple(problems))
    _refuse_unknown_name(run_id, name)
    return send(
        run_id=run_id,
        kind=ControlKind.SIGNAL,
        payload={"name": name, "payload": payload},
        request_id=request_id or uuid.uuid4().hex,
        sender=actor.recorded,
        now=timezone.now(),
    ).new


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
