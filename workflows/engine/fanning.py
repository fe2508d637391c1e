"""Fanning out: maps, parallel branches and block calls; their scopes, their joins, their early ends (docs/format.md).

The visit of a container stays open while its bodies run; the scope it stands in waits for the join. An item keeps its
place under ``concurrency`` until it ends. Items that have not started have no rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workflows.definitions.parameters import check_parameters, for_expressions
from workflows.definitions.plan import Body, StepPlan
from workflows.engine.contract import Call, FanOut
from workflows.engine.draft import Draft
from workflows.engine.environment import body_of, evaluate, owner_of
from workflows.engine.paths import visit_path
from workflows.errors import Failure
from workflows.expressions import BadExpression
from workflows.facts import FanoutCounts, FanoutRow, ScopeRow, VisitRow
from workflows.jsonvalue import NotStorable, text_of
from workflows.ledger.records import compact
from workflows.statuses import RunStatus, ScopeKind, ScopePhase, Section, Stopping, WaitsFor

#: Bytes of canonical text a joined output may have.
JOINED_LIMIT = 32 * 1024 * 1024
#: Reasons that cancel what runs; the others only keep new items from starting.
CANCELLING = frozenset({Stopping.SUCCEEDED, Stopping.TIMED_OUT, Stopping.CANCELLED})


def fan_out(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, entered: FanOut) -> None:
    """Begin a map or parallel visit in the present revision: its list, and the first items."""
    digest = draft.keep(list(entered.values), limit=JOINED_LIMIT)
    assert digest is not None
    draft.fanouts[visit.number] = FanoutRow(
        visit=visit.number, total=len(entered.values), items_digest=digest, revision_created=draft.revision
    )
    draft.fanout_counts[visit.number] = FanoutCounts()
    draft.event("step_fanned_out", visit=visit.number, step=step.id, items=len(entered.values))
    wait_for_join(draft, scope, visit, entered.timeout_ms)
    start_items(draft, visit, entered.keys)


def call_block(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, entered: Call) -> None:
    """Begin a block call in the present revision."""
    draft.event("step_started", visit=visit.number, step=step.id)
    wait_for_join(draft, scope, visit, entered.timeout_ms)
    begin_body(
        draft,
        ScopeRow(
            path=visit_path(scope.path, step.id, visit.round or 1),
            kind=ScopeKind.BLOCK.value,
            section=scope.section,
            phase=ScopePhase.READY.value,
            step=step.bodies["do"].first,
            parent_visit=visit.number,
            input_digest=draft.keep(dict(entered.params)),
            revision_created=draft.revision,
        ),
    )


def wait_for_join(draft: Draft, scope: ScopeRow, visit: VisitRow, timeout_ms: int | None) -> None:
    draft.change_scope(
        scope,
        phase=ScopePhase.WAITING.value,
        visit=visit.number,
        waits_for=WaitsFor.JOIN.value,
        wake_at_ms=None if timeout_ms is None else draft.now_ms + timeout_ms,
        stopping="",
    )


# ---- items ----------------------------------------------------------------------------------------------------------


def start_items(draft: Draft, visit: VisitRow, keys: Sequence[str] | None = None) -> None:
    """Start as many items as there are free places, in the order of the list."""
    step = draft.plan.steps[visit.step]
    fanout = draft.fanout(visit.number)
    places = step.options.get("concurrency") or fanout.total
    while True:
        counts = draft.counts(visit.number)
        scope = draft.scopes[visit.scope]
        if scope.stopping or counts.started >= fanout.total or counts.live >= places:
            return
        if stop_after(draft, step, visit) is not None:  # an item may have failed at its very start
            return
        if over_map_budget(draft, step, visit):
            draft.change_scope(scope, stopping=Stopping.OVER_BUDGET.value)
            return
        start_item(draft, step, visit, counts.started, keys)


def has_room(draft: Draft, visit: VisitRow) -> bool:
    """Whether an item could start now, or none is left to wait for."""
    counts, total = draft.counts(visit.number), draft.fanout(visit.number).total
    places = draft.plan.steps[visit.step].options.get("concurrency") or total
    return not counts.live or (counts.started < total and counts.live < places)


def over_map_budget(draft: Draft, step: StepPlan, visit: VisitRow) -> bool:
    budget = step.options.get("budget") or {}
    return "visits" in budget and draft.visits_below(visit.number) >= budget["visits"]


def start_item(draft: Draft, step: StepPlan, visit: VisitRow, index: int, keys: Sequence[str] | None) -> None:
    scope = draft.scopes[visit.scope]
    branches = list(step.bodies) if step.kind == "parallel" else None
    key = branches[index] if branches else keys[index] if keys else item_key(draft, scope, step, visit, index)
    counts = draft.counts(visit.number)
    draft.fanout_counts[visit.number] = replace(counts, started=counts.started + 1)
    body = step.bodies[key] if branches else step.bodies["do"]
    row = ScopeRow(
        path=f"{visit_path(scope.path, step.id, visit.round or 1)}[{index}]",
        kind=(ScopeKind.BRANCH if branches else ScopeKind.ITEM).value,
        section=scope.section,
        phase=ScopePhase.READY.value,
        step=body.first,
        parent_visit=visit.number,
        index=index,
        key=key,
        revision_created=draft.revision,
    )
    try:
        if body.kind == "block":
            row = replace(row, input_digest=draft.keep(block_parameters(draft, scope, step, visit, index)))
        begin_body(draft, row)
    except (BadExpression, NotStorable) as error:
        draft.put_scope(row)
        end_scope(draft, row, failure=scope_failure("bad_expression", None, str(error)))


def item_names(draft: Draft, step: StepPlan, visit: VisitRow, index: int) -> dict[str, Any]:
    items = draft.payload(draft.fanout(visit.number).items_digest)
    return {step.options["as"]: items[index], "index": index}


def item_key(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, index: int) -> str:
    """The key of an item, computed again: it is a pure function of the list."""
    written = step.options.get("key")
    if written is None:
        return str(index)
    return key_text(evaluate(draft, scope, written, item_names(draft, step, visit, index)))


def key_text(value: Any) -> str:
    """The text of an item's key. Raises ``BadExpression`` for null."""
    try:
        return text_of(value)
    except ValueError:
        raise BadExpression('"key" gave null; every item needs a key.') from None


def block_parameters(draft: Draft, scope: ScopeRow, step: StepPlan, visit: VisitRow, index: int) -> Mapping[str, Any]:
    given = evaluate(draft, scope, step.options["with"], item_names(draft, step, visit, index))
    return checked_parameters(step.bodies["do"], given)


def checked_parameters(block: Body, given: Any) -> dict[str, Any]:
    """The parameters of a block, checked and filled in as those of a run. Raises ``BadExpression``."""
    checked = check_parameters(block.params, given)
    if checked.problems:
        raise BadExpression("; ".join(problem.message for problem in checked.problems[:3]))
    return for_expressions(block.params, checked.values)


def begin_body(draft: Draft, row: ScopeRow) -> None:
    """Insert a scope and its variables. Raises ``BadExpression`` when an initial value cannot be computed."""
    draft.put_scope(row)
    variables = body_of(draft, row).vars
    if variables:
        draft.set_variables(row.path, {name: evaluate(draft, row, value) for name, value in variables.items()})


# ---- the end of a body ----------------------------------------------------------------------------------------------


def scope_failure(code: str, step: str | None, message: str, visit: int | None = None) -> dict[str, Any]:
    return {"code": code, "step": step, "message": message, "visit": visit}


def end_scope(draft: Draft, scope: ScopeRow, *, failure: dict[str, Any] | None, cancelled: bool = False) -> None:
    """The end of an item, a branch or a block, in the present revision. The join comes with ``check_join``."""
    digest = None
    if failure is None and not cancelled:
        digest, failure = collected(draft, scope)
    outcome = "cancelled" if cancelled else "failed" if failure else "ok"
    end_scope_as(draft, scope, outcome, output_digest=digest, error=compact(failure) if failure else "")


def end_scope_as(
    draft: Draft, scope: ScopeRow, outcome: str, *, output_digest: str | None = None, error: str = ""
) -> None:
    """End a scope with an outcome and a result that are known."""
    draft.change_scope(
        scope,
        phase=ScopePhase.ENDED.value,
        step="",
        visit=None,
        waits_for="",
        wake_at_ms=None,
        outcome=outcome,
        output_digest=output_digest,
        error=error,
    )
    draft.event("scope_ended", visit=scope.parent_visit, scope=scope.path, outcome=outcome)
    assert scope.parent_visit is not None
    draft.pending_joins.append(scope.parent_visit)
    if scope.index is not None:
        counts = draft.counts(scope.parent_visit)
        changed = {outcome: getattr(counts, outcome) + 1}
        draft.fanout_counts[scope.parent_visit] = replace(counts, **changed)


def collected(draft: Draft, scope: ScopeRow) -> tuple[str | None, dict[str, Any] | None]:
    """The result of a body: its ``collect`` or ``output``, else the output of the last step that ran."""
    owner = owner_of(draft, scope)
    assert owner is not None
    body = body_of(draft, scope)
    wanted = owner.options.get("collect") if owner.kind == "map" and body.kind == "block" else None
    wanted = wanted or body.collect
    if wanted is None:
        last = draft.settled(scope.path, scope.last_step) if scope.last_step else None
        return (last.output_digest if last else None), None
    try:
        return draft.keep(evaluate(draft, scope, wanted), limit=JOINED_LIMIT), None
    except BadExpression as error:
        return None, scope_failure("bad_expression", scope.last_step or None, str(error))
    except NotStorable as error:
        return None, scope_failure(error.code, scope.last_step or None, error.message)


def is_cancelled(draft: Draft, scope: ScopeRow) -> bool:
    """Whether a scope is being stopped: by a cancel of the run, or by a container around it. Closing steps are not."""
    current = scope
    while (parent := draft.parent(current)) is not None:
        if parent.stopping in CANCELLING:
            return True
        current = parent
    return current.section == Section.MAIN and draft.closing.get("status") == RunStatus.CANCELLED


def scopes_below(draft: Draft, visit: int) -> list[ScopeRow]:
    """The live scopes inside the bodies of a container visit, at any depth."""
    found = []
    for scope in draft.live_scopes():
        current: ScopeRow | None = scope
        while current is not None and current.parent_visit != visit:
            current = draft.parent(current)
        if current is not None:
            found.append(scope)
    return found


def stop_after(draft: Draft, step: StepPlan, visit: VisitRow) -> Stopping | None:
    """Whether the join is decided before every item has ended."""
    counts = draft.counts(visit.number)
    rule = step.options["join"]["rule"]
    if rule == "all" and counts.failed:
        return Stopping.FAILED
    if rule == "any" and counts.ok:
        return Stopping.SUCCEEDED
    return None


# ---- the join -------------------------------------------------------------------------------------------------------


def joined_outcome(step: StepPlan, counts: FanoutCounts, total: int, stopping: str) -> str:
    """The outcome of a fan-out whose items have all ended or will not start."""
    if stopping in (Stopping.TIMED_OUT, Stopping.CANCELLED, Stopping.OVER_BUDGET):
        return stopping
    if total == 0:
        return "empty"
    join = step.options["join"]
    match join["rule"]:
        case "settled":
            return "ok"
        case "any":
            return "ok" if counts.ok else "failed"
        case "at_least":
            needed = join["count"] if "count" in join else math.ceil(total * join["percent"] / 100 - 1e-9)
            return "ok" if counts.ok >= needed else "failed"
    return "ok" if counts.ok == total else "failed"


def assemble(draft: Draft, step: StepPlan, visit: VisitRow) -> tuple[str | None, str | None, dict[int, ScopeRow]]:
    """Digests of output and of ``{items, counts}``, and the ended items. Raises ``NotStorable``."""
    total = draft.fanout(visit.number).total
    refuse_too_much(draft, visit)
    ended = draft.ended_items(visit.number)
    keys = list(step.bodies) if step.kind == "parallel" else None
    outputs = [_output(draft, ended.get(index)) for index in range(total)]
    items = [
        _item(ended[index]) if index in ended else _not_started(draft, step, visit, index, keys)
        for index in range(total)
    ]
    counts = {name: sum(1 for item in items if item["outcome"] == name) for name in _OUTCOMES}
    detail = draft.keep({"items": items, "counts": {**counts, "total": total}}, limit=JOINED_LIMIT)
    joined: Any = dict(zip(keys, outputs, strict=True)) if keys else outputs
    return draft.keep(joined, limit=JOINED_LIMIT), detail, ended


_OUTCOMES = ("ok", "failed", "cancelled", "not_started")


def refuse_too_much(draft: Draft, visit: VisitRow) -> None:
    """Say that outputs are too large together before they are read. Raises ``NotStorable``."""
    size = 0 if visit.number in draft.fanouts else draft.facts.output_bytes(visit.number)
    for row in draft.ended_scopes.values():
        if row.parent_visit == visit.number and row.output_digest in draft.payloads:
            size += draft.payloads[row.output_digest].size
    if size > JOINED_LIMIT:
        message = f"The results of the items are {size:,} bytes as JSON; the limit is {JOINED_LIMIT:,} bytes."
        raise NotStorable("output_too_large", "", message)


def _output(draft: Draft, row: ScopeRow | None) -> Any:
    return draft.payload(row.output_digest) if row and row.outcome == "ok" and row.output_digest else None


def _item(row: ScopeRow) -> dict[str, Any]:
    item: dict[str, Any] = {"index": row.index, "key": row.key, "outcome": row.outcome, "error": None}
    if row.error:
        error = json.loads(row.error)
        item["error"] = {name: error[name] for name in ("code", "step", "message")}
    return item


def _not_started(
    draft: Draft, step: StepPlan, visit: VisitRow, index: int, keys: Sequence[str] | None
) -> dict[str, Any]:
    key = keys[index] if keys else item_key(draft, draft.scopes[visit.scope], step, visit, index)
    return {"index": index, "key": key, "outcome": "not_started", "error": None}


def joined_failure(outcome: str, counts: FanoutCounts, total: int, ended: Mapping[int, ScopeRow]) -> Failure | None:
    match outcome:
        case "failed":
            return Failure(code="items_failed", message=_failed_message(counts, total, ended))
        case "timed_out":
            return Failure(
                code="timeout", message=f"It took longer than its timeout; {counts.ok} of {total} were done."
            )
        case "over_budget":
            return Failure(code="budget_exceeded", message=f"Its budget was used up after {counts.started} of {total}.")
        case "cancelled":
            return Failure(code="cancelled", message="The run was cancelled.")
    return None


def _failed_message(counts: FanoutCounts, total: int, ended: Mapping[int, ScopeRow]) -> str:
    failed = [ended[index] for index in sorted(ended) if ended[index].outcome == "failed"]
    message = f"{counts.failed} of {total} failed."
    if failed and failed[0].error:
        error = json.loads(failed[0].error)
        place = f"{failed[0].path}/{error['step']}" if error["step"] else failed[0].path
        message += f" First: {place}: {error['message']}"
    return message[:4000]
