"""What a person may say of an interrupted step, for a form that asks them (promise ADM.6)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workflows.definitions.compiler import compiled
from workflows.errors import FAILURES, Refusal
from workflows.models import Run, Visit
from workflows.operations.reconciling import _SHELL_OUTPUT, _possible_outcomes, _visit_to_decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Tellable:
    """The ``outcomes`` a step may have ended with, its main one first, the ``errors`` it may have failed with, and what
    its output is: ``text``, ``lines``, ``none`` or ``json``."""

    outcomes: tuple[str, ...]
    errors: tuple[str, ...]
    output: str
    has_exit_code: bool


def tellable(run_id: int, visit: int) -> Tellable:
    """Raises ``run.not_found``, ``plan.corrupt``, and ``attempt.not_interrupted`` when there is nothing to say."""
    run = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    number = _visit_to_decide(run_id, visit)
    step = compiled(run.plan.hash, run.plan.document).steps[Visit.objects.get(run=run, number=number).step]
    parse = step.options.get("parse") or "text"
    return Tellable(
        outcomes=tuple(dict.fromkeys((step.main_outcome or "ok", *_possible_outcomes(step, json.loads(run.frozen))))),
        errors=tuple(code for code, rule in FAILURES.items() if rule.retryable),
        output=parse if step.kind == "shell" and parse in _SHELL_OUTPUT else "json",
        has_exit_code=step.kind == "shell",
    )
