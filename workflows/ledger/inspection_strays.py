"""Inspect what belongs to no run: rows whose run is gone, plans, current versions of workflows. See ``inspection``."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Exists, F, Model, OuterRef, Q

from workflows.ledger.inspection_rows import DAMAGE, pass_on_store_failures
from workflows.ledger.inspection_schedules import inspect_schedules
from workflows.ledger.inspection_values import plan_problems
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    ExternalOffer,
    Fanout,
    Interrupt,
    Lease,
    Plan,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Slot,
    Visit,
    Vote,
    Workflow,
)

#: Every table with rows of runs. Most refer to their run without a constraint of the database.
RUN_TABLES: tuple[type[Model], ...] = (
    Lease,
    Scope,
    ScopeVars,
    Fanout,
    Visit,
    Attempt,
    Interrupt,
    Vote,
    ExternalOffer,
    ControlMessage,
    Slot,
    Event,
    RowVersion,
)
_PLANS_AT_ONCE = 50


def inspect_strays() -> Iterator[str]:
    """What is wrong beside the runs, one sentence each. Plans are read a few at a time."""
    for table in RUN_TABLES:
        yield from _guarded(_rows_without_run(table), f"rows of {table._meta.model_name}")
    yield from _guarded(_plans(), "plans")
    yield from _guarded(_workflows(), "workflows")
    yield from _guarded(inspect_schedules(), "schedules")


def _rows_without_run(table: type[Model]) -> Iterator[str]:
    rows = table._default_manager.filter(~Exists(Run.objects.filter(pk=OuterRef("run_id"))))
    for run_id in rows.order_by("run_id").values_list("run_id", flat=True).distinct()[:100]:
        yield f"{table._meta.model_name} has rows of run {run_id}, which does not exist"


def _plans() -> Iterator[str]:
    for plan in Plan.objects.order_by("pk").iterator(chunk_size=_PLANS_AT_ONCE):
        yield from plan_problems(plan)


def _workflows() -> Iterator[str]:
    foreign = Q(current__isnull=False) & (~Q(current__workflow=F("pk")) | Q(current__version=None))
    for name in Workflow.objects.filter(foreign).order_by("name").values_list("name", flat=True):
        yield f"the current version of workflow {name} is no published version of it"


def _guarded(problems: Iterator[str], what: str) -> Iterator[str]:
    try:
        yield from problems
    except DAMAGE as error:
        pass_on_store_failures(error)
        yield f"{what} cannot be checked: {type(error).__name__}: {error}"[:500]
