"""Import: runs of another installation that are over become runs of this one, whole or not at all.

Inside of a run everything refers by the run's own numbers, so rows are stored as they are. What refers to the other
installation gets the numbers of this one: runs, plans, workflows. Digests stay true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models import Model

from workflows.jsonvalue import Stored, digest
from workflows.ledger.auditing import record_audit
from workflows.ledger.inspection import inspect_run
from workflows.ledger.inspection_strays import RUN_TABLES
from workflows.ledger.publishing import store_payloads
from workflows.ledger.records import compact
from workflows.ledger.transactions import ledger_transaction
from workflows.models import ExternalOffer, Lease, Plan, Run, Slot, Workflow
from workflows.statuses import FINAL_STATUSES

#: A fork keeps its mark as one; which run it came from is a number of the other installation. No run has this one.
ELSEWHERE = 0
_STORED_TABLES = tuple(table for table in RUN_TABLES if table not in (Lease, Slot))
#: Documents that were made before these were there do not have them.
_LATER_TABLES = frozenset({ExternalOffer})
_ROWS_AT_ONCE = 500
#: Events that name rows of the installation: which of their values are numbers of what.
_NUMBERS_IN_EVENTS = {"run_started": {"plan": "plans", "workflow": "workflows"}, "child_ended": {"child": "runs"}}


class NotAnExport(ValueError):
    """The document is not what an export writes; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """``run`` is the number here; ``runs`` maps the numbers there to those here. ``created`` False: it was imported
    before."""

    run: int
    created: bool
    runs: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Numbers:
    """The numbers there and here."""

    runs: dict[int, int] = field(default_factory=dict)
    plans: dict[int, int] = field(default_factory=dict)
    workflows: dict[int, int] = field(default_factory=dict)


@ledger_transaction
def import_runs(*, document: Mapping[str, Any], key: str, actor: str, now: datetime) -> Imported:
    """Store the runs of an exported document under new numbers.

    1. The same document imported before is the run that is there, by ``key``, which becomes its idempotency key.
    2. Values are stored, each checked against its digest; workflows by name; versions as private ones, or as those of
       the same hash that are there.
    3. Runs that are over are stored with all their rows, parents first; no lease, no places, no keys.
    4. Each of them is inspected; one audit entry is written.

    Raises :class:`NotAnExport` for a document that is damaged, of another shape, or of a run that is not over.
    """
    known = Run.objects.filter(idempotency_key=key).values_list("pk", flat=True).first()
    if known is not None:
        return Imported(run=known, created=False, runs={})
    try:
        with transaction.atomic():
            numbers = _store(document, key, now)
    except (KeyError, TypeError, AttributeError, ValueError, IntegrityError) as error:
        raise error if isinstance(error, NotAnExport) else NotAnExport(f"it is damaged ({_told(error)})") from None
    for there, here in numbers.runs.items():
        if problems := inspect_run(here):
            raise NotAnExport(f"the rows of run {there} do not agree: {problems[0]}")
    root = numbers.runs[document["run"]]
    record_audit(actor=actor, action="run.import", at=now, run=root, data={"from": document["run"], "key": key})
    return Imported(run=root, created=True, runs=numbers.runs)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _store(document: Mapping[str, Any], key: str, now: datetime) -> _Numbers:
    numbers = _Numbers()
    _store_values(document["payloads"])
    names = {one["id"]: one for one in document["workflows"]}
    for plan in document["plans"]:
        _store_plan(plan, names[plan["workflow_id"]], numbers, now)
    for one in document["runs"]:
        _store_run(one, document["run"], key, numbers)
    return numbers


def _store_values(payloads: list[dict[str, Any]]) -> None:
    for payload in payloads:
        if digest(payload["text"]) != payload["digest"] or payload["size"] != len(payload["text"].encode()):
            raise NotAnExport(f"the value {payload['digest']} is not what its digest says")
    for start in range(0, len(payloads), _ROWS_AT_ONCE):
        part = payloads[start : start + _ROWS_AT_ONCE]
        store_payloads([Stored(text=one["text"], digest=one["digest"], size=one["size"]) for one in part])


def _store_plan(plan: Mapping[str, Any], of: Mapping[str, Any], numbers: _Numbers, now: datetime) -> None:
    if digest(plan["document"]) != plan["hash"]:
        raise NotAnExport(f"plan {plan['id']} does not match its hash")
    workflow, _ = Workflow.objects.get_or_create(name=of["name"], defaults={"title": of["title"], "created_at": now})
    numbers.workflows[of["id"]] = workflow.pk
    known = Plan.objects.filter(workflow=workflow, hash=plan["hash"]).order_by("pk").first()
    stored = known or Plan.objects.create(
        workflow=workflow,
        version=None,
        hash=plan["hash"],
        document=plan["document"],
        source=plan["source"],
        created_by=plan["created_by"],
        created_at=now,
    )
    numbers.plans[plan["id"]] = stored.pk


def _store_run(exported: Mapping[str, Any], root: int, key: str, numbers: _Numbers) -> None:
    there = exported["run"]
    if there["status"] not in FINAL_STATUSES:
        raise NotAnExport(f"run {there['id']} is {there['status']}, and only runs that are over can be imported")
    row = _values(Run, there)
    row |= {
        "workflow_id": numbers.workflows[there["workflow_id"]],
        "plan_id": numbers.plans[there["plan_id"]],
        "frozen": _frozen(there["frozen"], numbers),
        "idempotency_key": key if there["id"] == root else None,
        "request_id": None,
        "fork_of_id": None if there["fork_of_id"] is None else ELSEWHERE,
        "audit_hold": "",
        "workspace": "",
        "wake_at_ms": None,
    }
    row |= _parents(there, root, numbers)
    run = Run.objects.create(**row)
    numbers.runs[there["id"]] = run.pk
    Lease.objects.create(run=run, epoch=run.lease_epoch, active_ms=run.active_ms)
    for table in _STORED_TABLES:
        name = str(table._meta.model_name)
        found = exported.get(name, []) if table in _LATER_TABLES else exported[name]
        rows = [table(run=run, **_values(table, one)) for one in found]
        for stored in rows:
            _renumber(stored, numbers)
        table._default_manager.bulk_create(rows, batch_size=_ROWS_AT_ONCE)


def _parents(there: Mapping[str, Any], root: int, numbers: _Numbers) -> dict[str, Any]:
    """The root of the document has no parent here, whatever it had there."""
    if there["id"] == root:
        nobody = dict.fromkeys(("parent_run_id", "root_run_id", "parent_visit", "invocation_key"))
        return {**nobody, "depth": 0}
    parent = Run.objects.get(pk=numbers.runs[there["parent_run_id"]])
    detached = there["root_run_id"] is None
    tree = None if detached else parent.root_run_id or parent.pk
    return {"parent_run_id": parent.pk, "root_run_id": tree, "depth": parent.depth + 1}


def _frozen(text: str, numbers: _Numbers) -> str:
    frozen = json.loads(text)
    for child in (frozen.get("children") or {}).values():
        child["plan"] = numbers.plans[child["plan"]]
    return compact(frozen)


def _renumber(row: Model, numbers: _Numbers) -> None:
    """Events name rows of the installation in their payload; what is not here keeps its number there."""
    places = _NUMBERS_IN_EVENTS.get(getattr(row, "type", ""))
    if places is None:
        return
    payload = json.loads(row.payload)  # type: ignore[attr-defined]
    for name, kind in places.items():
        if name in payload:
            payload[name] = getattr(numbers, kind).get(payload[name], payload[name])
    row.payload = compact(payload)  # type: ignore[attr-defined]


def _values(model: type[Model], row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an exported row that are stored as they are; moments are texts there."""
    found: dict[str, Any] = {}
    for column in model._meta.concrete_fields:
        if column.attname in ("id", "run_id"):
            continue
        value = row[column.attname]
        is_moment = isinstance(column, models.DateTimeField) and value is not None
        found[column.attname] = datetime.fromisoformat(value) if is_moment else value
    return found
