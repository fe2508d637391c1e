"""The names of an expression and their values: only what it refers to is looked up (FORMAT 2.5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from workflows.definitions.kinds import KINDS
from workflows.engine.draft import Draft
from workflows.expressions import Value
from workflows.facts import ScopeRow, VisitRow

STEP_ATTRIBUTES = (
    "output",
    "outcome",
    "visits",
    "attempts",
    "error",
    "exit_code",
    "items",
    "counts",
    "started_at",
    "finished_at",
)


def evaluate(draft: Draft, scope: ScopeRow, value: Value, extra: Mapping[str, Any] | None = None) -> Any:
    """Render a template in a scope. Raises ``BadExpression``. ``extra`` adds names (``signal``, ``state``)."""
    if value.is_fixed:
        return value.evaluate({})
    names: dict[str, Any] = {}
    for reference in value.references:
        head, rest = reference[0], reference[1:]
        if extra is not None and head in extra:
            names[head] = extra[head]
        elif head == "steps":
            _add_step(names.setdefault("steps", {}), draft, scope, rest)
        elif head == "vars":
            _add_members(names, "vars", draft.variables(scope.path), rest)
        elif head == "params":
            _add_members(names, "params", draft.facts.identity.params, rest)
        elif head == "run":
            names["run"] = run_values(draft)
    return value.evaluate(names)


def _add_members(names: dict[str, Any], head: str, values: Mapping[str, Any], rest: tuple[str, ...]) -> None:
    known = names.setdefault(head, {})
    if not rest:
        known.update(values)
    elif rest[0] in values:
        known[rest[0]] = values[rest[0]]


def _add_step(steps: dict[str, Any], draft: Draft, scope: ScopeRow, rest: tuple[str, ...]) -> None:
    if not rest:
        for step in draft.plan.steps:
            steps[step] = step_values(draft, scope, step, STEP_ATTRIBUTES)
        return
    wanted = rest[1:2] if len(rest) > 1 else STEP_ATTRIBUTES
    steps.setdefault(rest[0], {}).update(step_values(draft, scope, rest[0], wanted))


def step_values(draft: Draft, scope: ScopeRow, step: str, wanted: Iterable[str]) -> dict[str, Any]:
    """What expressions see of a step: its latest settled visit, with outcome and error of a later refused entry."""
    settled = draft.settled(scope.path, step)
    refused = draft.refused(scope.path, step)
    spoken = settled if refused is None or (settled and settled.number > refused.number) else refused
    return {name: _attribute(draft, name, settled, spoken) for name in wanted}


def _attribute(draft: Draft, name: str, settled: VisitRow | None, spoken: VisitRow | None) -> Any:
    match name:
        case "visits":
            return settled.round if settled else 0
        case "attempts":
            return attempts_read(settled) if settled else 0
        case "outcome":
            return spoken.outcome if spoken else None
        case "error":
            return json.loads(spoken.error) if spoken and spoken.error else None
        case "output" if settled and settled.output_digest:
            return draft.payload(settled.output_digest)
        case "exit_code" if settled:
            return settled.exit_code
        case "started_at" if settled:
            return moment_text(settled.started_at)
        case "finished_at" if settled and settled.ended_at:
            return moment_text(settled.ended_at)
    return None


def attempts_read(visit: VisitRow) -> int:
    """Kinds without attempts read 1, a skipped step 0."""
    if KINDS[visit.kind].effect:
        return visit.attempts
    return 0 if visit.outcome == "skipped" else 1


def run_values(draft: Draft) -> dict[str, Any]:
    identity = draft.facts.identity
    values: dict[str, Any] = {
        "id": identity.id,
        "workflow": identity.workflow,
        "started_by": identity.started_by,
        "started_at": moment_text(identity.created_at),
    }
    closing = draft.closing
    if closing:
        values["status"] = closing["status"]
        error = closing.get("error")
        values["error"] = {name: error[name] for name in ("code", "step", "message")} if error else None
    return values


def moment_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
