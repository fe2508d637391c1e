"""The names of an expression and their values: only what it refers to is looked up (docs/format.md).

A scope sees its own steps and variables and, read-only, those of the scopes around it, up to the root or to the block
it is in: a block sees its own parameters and variables only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from workflows.definitions.kinds import KINDS, STEP_ATTRIBUTES
from workflows.definitions.plan import Body, StepPlan
from workflows.engine.draft import Draft
from workflows.expressions import Value
from workflows.facts import ScopeRow, VisitRow
from workflows.statuses import ScopeKind


def evaluate(
    draft: Draft,
    scope: ScopeRow,
    value: Value,
    extra: Mapping[str, Any] | None = None,
    *,
    escape: Callable[[str], str] | None = None,
) -> Any:
    """Render a template in a scope. Raises ``BadExpression``. ``extra`` adds names (``item``, ``signal``, …).

    ``escape`` is applied to the text of each expression.
    """
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
            _add_members(names, "vars", visible_variables(draft, scope, rest), rest)
        elif head == "params":
            _add_members(names, "params", visible_parameters(draft, scope), rest)
        elif head == "run":
            names["run"] = run_values(draft)
        elif head not in names:
            _add_item(names, draft, scope, head)
    return value.evaluate(names, escape=escape)


# ---- scopes around a scope ------------------------------------------------------------------------------------------


def around(draft: Draft, scope: ScopeRow) -> Iterator[ScopeRow]:
    """The scope and those around it, inner first, up to the root or to the block it is in."""
    current: ScopeRow | None = scope
    while current is not None:
        yield current
        current = None if is_block(draft, current) else draft.parent(current)


def owner_of(draft: Draft, scope: ScopeRow) -> StepPlan | None:
    """The step whose body a scope is; None for the root."""
    return None if scope.parent_visit is None else draft.plan.steps[draft.visit(scope.parent_visit).step]


def body_of(draft: Draft, scope: ScopeRow) -> Body:
    """The list of steps a scope works through."""
    owner = owner_of(draft, scope)
    if owner is None:
        body = draft.plan.section(scope.section)
        assert body is not None
        return body
    return owner.bodies[scope.key] if scope.kind == ScopeKind.BRANCH else owner.bodies["do"]


def is_block(draft: Draft, scope: ScopeRow) -> bool:
    return scope.parent_visit is not None and body_of(draft, scope).kind == "block"


def home_of(draft: Draft, scope: ScopeRow, step: str) -> str | None:
    """The path of the scope in which the visits of ``step`` are that this scope sees; None: it sees none."""
    plan = draft.plan.steps.get(step)
    if plan is None:
        return None
    for one in around(draft, scope):
        if plan.body.kind == "section" if one.parent_visit is None else body_of(draft, one) is plan.body:
            return one.path
    return None


def visible_variables(draft: Draft, scope: ScopeRow, rest: tuple[str, ...]) -> Mapping[str, Any]:
    own = draft.variables(scope.path)
    if scope.parent_visit is None or (rest and rest[0] in own):
        return own
    layers = [draft.variables(one.path) for one in around(draft, scope)]
    return {name: value for layer in reversed(layers) for name, value in layer.items()}


def visible_parameters(draft: Draft, scope: ScopeRow) -> Mapping[str, Any]:
    if scope.parent_visit is None:
        return draft.facts.identity.params
    for one in around(draft, scope):
        if is_block(draft, one):
            return draft.payload(one.input_digest) if one.input_digest else {}
    return draft.facts.identity.params


def _add_item(names: dict[str, Any], draft: Draft, scope: ScopeRow, head: str) -> None:
    """``index`` and the item's name, of the innermost map that gives it."""
    for one in around(draft, scope):
        if one.kind != ScopeKind.ITEM or one.parent_visit is None or is_block(draft, one):
            continue
        owner = owner_of(draft, one)
        assert owner is not None
        if head == "index":
            names[head] = one.index
            return
        if head == owner.options["as"]:
            names[head] = draft.payload(draft.fanout(one.parent_visit).items_digest)[one.index]
            return


# ---- values ---------------------------------------------------------------------------------------------------------


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
    home = scope.path if scope.parent_visit is None else home_of(draft, scope, step)
    settled = None if home is None else draft.settled(home, step)
    refused = None if home is None else draft.refused(home, step)
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
        case "items" | "counts" if settled and settled.detail_digest:
            return draft.payload(settled.detail_digest)[name]
        case "exit_code" if settled:
            return settled.exit_code
        case "started_at" if settled:
            return moment_text(settled.started_at)
        case "finished_at" if settled and settled.ended_at:
            return moment_text(settled.ended_at)
    return None


def attempts_read(visit: VisitRow) -> int:
    """Kinds without attempts read 1, a skipped step 0. Each try of a ``workflow`` step is a child run."""
    if KINDS[visit.kind].effect or visit.kind == "workflow":
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
