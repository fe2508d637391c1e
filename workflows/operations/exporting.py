"""Exporting: a run as one JSON document that needs nothing else to be understood (docs/operating.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Model, QuerySet
from django.utils import timezone

from workflows.errors import Refusal
from workflows.ledger.auditing import audit
from workflows.ledger.inspection_strays import RUN_TABLES
from workflows.ledger.naming import digests_of_runs
from workflows.ledger.records import compact
from workflows.ledger.snapshots import snapshot
from workflows.models import ExternalOffer, Lease, Payload, Plan, Run, Slot, Workflow
from workflows.operations.access import require
from workflows.operations.people import Actor

#: What the document is, and the version of its shape.
FORMAT = "waypost-run"
SCHEMA = 1
#: Rows that say who drives a run or holds a place at this moment: nothing of its story.
_MOMENTARY: frozenset[type[Model]] = frozenset({Lease, Slot})
#: What tells whoever reads the document who may finish the work of a run.
_WITHHELD: Mapping[type[Model], Mapping[str, Any]] = {ExternalOffer: {"token_hash": ""}}
EXPORTED_TABLES = tuple(table for table in RUN_TABLES if table not in _MOMENTARY)
_ROWS_AT_ONCE = 200
_NAMES_AT_ONCE = 5_000


def export_run(run_id: int, *, actor: Actor, with_children: bool = False) -> Iterator[str]:
    """The document of a run, in pieces of text, all of it as it is at one moment; values are read one by one.

    It has the run's rows, with ``with_children`` those of its child runs at any depth, the plans with their source,
    and every value by its digest. Secrets are in none of them: rows know only their names. The export is audited.

    Raises ``run.not_found``, ``access.denied`` before the first piece.
    """
    require(actor, "export_run", run=run_id)
    if not Run.objects.filter(pk=run_id).exists():
        raise Refusal("run.not_found", run=run_id)
    now = timezone.now()
    audit(actor=actor.recorded, action="run.export", at=now, run=run_id, data={"with_children": with_children})
    head = {"format": FORMAT, "schema": SCHEMA, "run": run_id, "exported_at": now, "exported_by": actor.recorded}
    return _pieces(run_id, head, with_children)


def _pieces(run_id: int, head: dict[str, Any], with_children: bool) -> Iterator[str]:
    with snapshot():
        runs = _family(run_id) if with_children else [run_id]
        yield compact(head)[:-1]
        yield from _member("workflows", _workflows(runs))
        yield from _member("plans", _plans(runs))
        yield ',\n"runs":[\n'
        for position, number in enumerate(runs):
            yield from _run(number, first=position == 0)
        yield "]"
        yield from _member("payloads", _payloads(runs))
        yield "}\n"


def _family(run_id: int) -> list[int]:
    """A run and its child runs at any depth, parents before their children."""
    found, level = [run_id], [run_id]
    while level := list(Run.objects.filter(parent_run__in=level).order_by("pk").values_list("pk", flat=True)):
        found += level
    return found


def _member(name: str, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield f',\n"{name}":[\n'
    for position, row in enumerate(rows):
        yield f"{',' if position else ''}{compact(row)}\n"
    yield "]"


def _run(number: int, *, first: bool) -> Iterator[str]:
    row = Run.objects.filter(pk=number).values().get()
    yield f'{"" if first else ","}{{"run":{compact(row)}'
    for table in EXPORTED_TABLES:
        rows = table._default_manager.filter(run_id=number).order_by("pk")
        yield from _member(str(table._meta.model_name), _rows(rows))
    yield "}\n"


def _rows(rows: QuerySet[Any]) -> Iterator[dict[str, Any]]:
    names = [field.attname for field in rows.model._meta.concrete_fields if field.attname not in ("id", "run_id")]
    withheld = _WITHHELD.get(rows.model, {})
    for row in rows.values(*names).iterator(chunk_size=_ROWS_AT_ONCE):
        yield {**row, **withheld}


def _workflows(runs: Sequence[int]) -> Iterator[dict[str, Any]]:
    plans = {plan["workflow_id"] for plan in Plan.objects.filter(pk__in=_plan_ids(runs)).values("workflow_id")}
    yield from Workflow.objects.filter(pk__in=plans).order_by("pk").values("id", "name", "title")


def _plans(runs: Sequence[int]) -> Iterator[dict[str, Any]]:
    yield from Plan.objects.filter(pk__in=_plan_ids(runs)).order_by("pk").values().iterator(chunk_size=10)


def _plan_ids(runs: Sequence[int]) -> list[int]:
    """The plans of these runs and those that were frozen beside them."""
    found: set[int] = set()
    for plan, frozen in Run.objects.filter(pk__in=runs).values_list("plan_id", "frozen"):
        found.add(plan)
        found |= {child["plan"] for child in (json.loads(frozen).get("children") or {}).values()}
    return sorted(found)


def _payloads(runs: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Each value once. What is missing is missing here, too: ``check_ledger`` says so."""
    names = sorted(digests_of_runs(runs))
    for start in range(0, len(names), _NAMES_AT_ONCE):
        part = Payload.objects.filter(digest__in=names[start : start + _NAMES_AT_ONCE])
        for name in part.order_by("digest").values_list("digest", flat=True):
            yield from Payload.objects.filter(digest=name).values()
