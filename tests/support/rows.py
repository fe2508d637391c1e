"""All rows of the ledger as plain values, to compare what was written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db.models import Model

from tests import soundness
from workflows.ledger.inspection import Verified, inspect_run
from workflows.models import Event, Payload, Run

#: Columns that differ between two executions of the same thing.
_ACCIDENTAL = {"id", "acquired_ms", "heartbeat_ms", "last_poll_ms", "active_ms", "expires_ms"}


def all_rows() -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of the product, by table."""
    return {model.__name__: _rows(model) for model in apps.get_app_config("workflows").get_models()}


def _rows(model: type[Model]) -> list[dict[str, Any]]:
    return list(model._default_manager.order_by("pk").values())


def run_rows(run_id: int, *, but: Iterable[str] = ()) -> dict[str, list[dict[str, Any]]]:
    """Every row of one run without what differs between two executions, by table, and every payload."""
    found: dict[str, list[dict[str, Any]]] = {}
    for model in apps.get_app_config("workflows").get_models():
        names = [field.attname for field in model._meta.concrete_fields if field.attname not in {*_ACCIDENTAL, *but}]
        if model is Run:
            rows = model.objects.filter(pk=run_id)
        elif "run_id" in names:
            rows = model._default_manager.filter(run_id=run_id)
            names.remove("run_id")
        elif model is Payload:
            rows = model._default_manager.all()
        else:
            continue
        found[model.__name__] = sorted((_comparable(row) for row in rows.values(*names)), key=repr)
    return found


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    # the moment of a takeover is the database's, whatever moment the test is at
    return {**row, "at": None} if row.get("type") == "lease_recovered" else row


def events_of(run_id: int) -> list[str]:
    """The types of the events of a run, in order."""
    return list(Event.objects.filter(run_id=run_id).order_by("sequence").values_list("type", flat=True))


def assert_sound(*run_ids: int) -> None:
    """Whether the rows of these runs (by default of all) tell one story."""
    verified = Verified()
    for run_id in run_ids or Run.objects.values_list("pk", flat=True):
        problems = inspect_run(run_id, verified=verified)
        assert problems == [], "\n".join(problems)
    if not run_ids:
        soundness.remember_inspection()
