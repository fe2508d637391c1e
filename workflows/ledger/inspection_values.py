"""Inspect the values a run names: payloads and plans are what their digests say. See ``inspection``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models.functions import Length

from workflows.jsonvalue import canonical, decode, digest
from workflows.ledger.inspection_rows import DAMAGE, RunRows, pass_on_store_failures
from workflows.models import Payload, Plan, Run, Visit
from workflows.statuses import ScopeKind, VisitStatus

#: Texts that are read together have at most so many characters, unless a single one is longer.
MOST_AT_ONCE = 4 * 1024 * 1024
#: SQLite refuses a statement with more parameters than 32 766.
NAMES_AT_ONCE = 5_000
_MOST_REMEMBERED = 200_000


class Verified:
    """Digests of payloads and hashes of plans that were found whole; forgets when there are too many."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._known

    def add(self, name: str) -> None:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known.add(_key(name))


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def values(rows: RunRows, verified: Verified) -> Iterator[str]:
    """Payloads and plans that the rows name exist and are whole; lists and counts of fan-outs are what they say."""
    yield from plan_of(rows.run, verified)
    named = sorted(payload_names(rows))
    present: set[str] = set()
    for start in range(0, len(named), NAMES_AT_ONCE):
        yield from _payloads(named[start : start + NAMES_AT_ONCE], present, verified)
    for name in named:
        if name not in present:
            yield f"payload {name} is missing"
    yield from _fanouts(rows, present)


def payload_names(rows: RunRows) -> set[str]:
    """The digests of the payloads that the rows of a run name, its history left out."""
    named: set[str | None] = {rows.run.params_digest, rows.run.output_digest}
    named |= set(map(output_in, (rows.run.closing, *(attempt.authorization for attempt in rows.attempts))))
    for visit in rows.visits:
        named |= {visit.output_digest, visit.detail_digest}
    for scope in rows.scopes:
        named |= {scope.output_digest, scope.input_digest}
    for attempt in rows.attempts:
        named |= {attempt.output_digest, attempt.late_output_digest, attempt.log_digest}
    named |= {fanout.items_digest for fanout in rows.fanouts}
    named |= {question.shown_digest for question in rows.questions} | {vote.shown_digest for vote in rows.votes}
    return {name for name in named if name}


def output_in(text: str) -> str | None:
    """The payload that the JSON of ``closing`` or ``authorization`` names as its output."""
    output = json.loads(text).get("output") if text else None
    return output if isinstance(output, str) else None


def _payloads(names: list[str], present: set[str], verified: Verified) -> Iterator[str]:
    lengths = Payload.objects.filter(digest__in=names).annotate(length=Length("text"))
    batch: list[str] = []
    size = 0
    for name, length in lengths.order_by("digest").values_list("digest", "length"):
        present.add(name)
        if name in verified:
            continue
        if batch and size + length > MOST_AT_ONCE:
            yield from _texts(batch, verified)
            batch, size = [], 0
        batch.append(name)
        size += length
    yield from _texts(batch, verified)


def _texts(names: list[str], verified: Verified) -> Iterator[str]:
    try:
        found = list(Payload.objects.filter(digest__in=names).order_by("digest"))
    except DAMAGE as error:
        pass_on_store_failures(error)
        yield f"one of the payloads {', '.join(name[:12] for name in names[:8])} cannot be read"
        return
    for payload in found:
        data = payload.text.encode("utf-8", "surrogatepass")
        if digest(payload.text) != payload.digest or len(data) != payload.size:
            yield f"payload {payload.digest} is not what its digest says"
        else:
            verified.add(payload.digest)


def _fanouts(rows: RunRows, present: set[str]) -> Iterator[str]:
    """How many items a list has, and how they ended."""
    outcomes: dict[int, Counter[str]] = {}
    for scope in rows.scopes:
        if scope.kind in (ScopeKind.ITEM, ScopeKind.BRANCH) and scope.parent_visit is not None:
            outcomes.setdefault(scope.parent_visit, Counter())[scope.outcome] += 1
    for fanout in rows.fanouts:
        if fanout.items_digest in present:
            items = _value(fanout.items_digest)
            if not isinstance(items, list) or len(items) != fanout.total:
                yield f"the fan-out of v{fanout.visit} counts {fanout.total} items, its list has {_length(items)}"
        visit = rows.visit_by_number.get(fanout.visit)
        if visit is not None and visit.status == VisitStatus.SETTLED and visit.detail_digest in present:
            yield from _counts(visit, fanout.total, outcomes.get(visit.number, Counter()))


def _counts(visit: Visit, total: int, ended: Counter[str]) -> Iterator[str]:
    detail = _value(visit.detail_digest)
    told = detail.get("counts") if isinstance(detail, dict) else None
    counted = {name: ended[name] for name in ("ok", "failed", "cancelled")}
    counted |= {"not_started": total - sum(ended.values()), "total": total}
    if told != counted:
        yield f"v{visit.number} counts {told}, but its items ended as {counted}"


def _value(name: str | None) -> Any:
    """The value of a payload; None for one that cannot be read, which is told elsewhere."""
    try:
        return decode(Payload.objects.values_list("text", flat=True).get(digest=name))
    except DAMAGE as error:
        pass_on_store_failures(error)
        return None


def _length(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else "none"


# ---- plans -----------------------------------------------------------------------------------------------------------


def plan_of(run: Run, verified: Verified) -> Iterator[str]:
    """The plan of a run, and those that were frozen beside it, exist and match their hashes."""
    wanted = {run.plan_id: None, **_frozen_plans(run)}
    unknown = [key for key in wanted if _plan_name(key) not in verified]
    found: dict[int, Plan] = Plan.objects.in_bulk([*{run.plan_id, *unknown}])
    for key in wanted:
        plan = found.get(key)
        if plan is None and key in unknown:
            yield f"plan {key} does not exist"
        elif plan is not None and key in unknown:
            problems = list(plan_problems(plan))
            yield from problems
            if not problems:
                verified.add(_plan_name(key))
    for key, expected in wanted.items():
        plan = found.get(key)
        if plan is not None and expected not in (None, plan.hash):
            yield f"the run froze plan {key} as {str(expected)[:12]}, but it is {plan.hash[:12]}"
    own = found.get(run.plan_id)
    if own is not None and own.workflow_id != run.workflow_id:
        yield f"the run is of workflow {run.workflow_id}, its plan of {own.workflow_id}"


def plan_problems(plan: Plan) -> Iterator[str]:
    """What is wrong with a stored plan: its document is canonical, and its SHA-256 is the hash (PLAN.1, 2)."""
    name = f"plan {plan.pk}"
    if digest(plan.document) != plan.hash:
        yield f"{name} does not match its hash"
        return
    try:
        is_canonical = canonical(decode(plan.document)) == plan.document
    except ValueError:
        is_canonical = False
    if not is_canonical:
        yield f"{name} is not canonical JSON"


def _plan_name(key: int) -> str:
    return f"plan {key}"


def _frozen_plans(run: Run) -> dict[int, Any]:
    """Plans of child workflows that a run may start: id to hash."""
    frozen = json.loads(run.frozen) if run.frozen else {}
    children: Iterable[dict[str, Any]] = (frozen.get("children") or {}).values()
    return {child["plan"]: child.get("hash") for child in children if "plan" in child}
