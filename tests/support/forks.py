"""Forks in tests: made without the doors of the product, and looked at."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.db.models import Model

from workflows.ledger.forking import Fork, Forked, fork
from workflows.models import Run, Visit


def fork_at(origin: int, revision: int, **more: Any) -> Forked:
    """A fork of a run at a revision of its past."""
    return fork(wish_at(origin, revision, **more))


def wish_at(origin: int, revision: int, **more: Any) -> Fork:
    """What ``fork`` takes for it."""
    run = Run.objects.get(pk=origin)
    wish: dict[str, Any] = {
        "origin": origin,
        "revision": revision,
        "visit": None,
        "request_id": uuid4().hex,
        "asked": "",
        "record": {"cut": {"revision": revision, "visit": None}},
        "actor": "ann",
        "started_by": run.started_by,
        "commit_id": uuid4().hex,
        "now": datetime.now(UTC),
        "plan_id": run.plan_id,
        "engine_version": run.engine_version,
        "title": run.title,
    }
    return Fork(**{**wish, **more})


def fork_before(origin: int, visit: int, **more: Any) -> Forked:
    """A fork of a run that begins with one of its visits."""
    row = Visit.objects.get(run_id=origin, number=visit)
    return fork_at(origin, row.revision_before, visit=visit, **more)


def digest_of(run_id: int) -> str:
    """A digest over every row of a run, and over its own row, ids and counters included."""
    found = hashlib.sha256()
    for model in apps.get_app_config("workflows").get_models():
        for row in _rows_of(model, run_id):
            found.update(json.dumps([model.__name__, row], default=str, sort_keys=True).encode())
    return found.hexdigest()


def _rows_of(model: type[Model], run_id: int) -> list[dict[str, Any]]:
    names = {field.attname for field in model._meta.concrete_fields}
    if model is Run:
        return list(model._default_manager.filter(pk=run_id).values())
    if "run_id" not in names:
        return []
    return list(model._default_manager.filter(run_id=run_id).order_by("pk").values())
