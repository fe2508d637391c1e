"""Runs from YAML text, without the doors of the product."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import Frozen, freeze
from workflows.definitions.plan import Plan
from workflows.definitions.source import read_source
from workflows.jsonvalue import store
from workflows.ledger.publishing import PlanVersion, Publication, Published, StoredPlan, publish, publish_plan
from workflows.models import Plan as PlanRow

#: A moment of the past at which everything in tests begins.
START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def workflow(steps: str, *, before: str = "", after: str = "", name: str = "demo") -> str:
    """The text of a workflow file with these ``steps`` (indented or not)."""
    return f"format: 1\nname: {name}\n{before}\nsteps:\n{steps}\n{after}\n"


@cache
def frozen_plan(text: str) -> tuple[Frozen, Plan]:
    """What a text is frozen to, and its plan: read once, for tests publish the same texts again and again."""
    frozen = freeze(read_source(text).document)
    return frozen, compile_plan(frozen.document)


def store_plan(text: str, *, private: bool = True, now: datetime = START) -> StoredPlan:
    frozen, plan = frozen_plan(text)
    return publish_plan(
        PlanVersion(
            name=plan.name,
            title=plan.title,
            document=frozen.canonical,
            hash=frozen.hash,
            source=text,
            created_by="ann",
            now=now,
            private=private,
        )
    )


def publication(text: str, params: Mapping[str, Any] | None = None, **more: Any) -> Publication:
    """What ``publish`` takes, for the plan of ``text``, which is stored when it is new."""
    frozen, plan = frozen_plan(text)
    stored = PlanRow.objects.filter(workflow__name=plan.name, hash=frozen.hash).values_list("pk", flat=True).first()
    values: dict[str, Any] = {
        "plan_id": stored or store_plan(text).plan_id,
        "params": store(dict(params or {})),
        "frozen": {},
        "first_step": plan.main.first,
        "started_by": "ann",
        "commit_id": uuid4().hex,
        "now": START,
    }
    return Publication(**{**values, **more})


def published(text: str, params: Mapping[str, Any] | None = None, **more: Any) -> Published:
    return publish(publication(text, params, **more))


def publish_run(text: str, params: Mapping[str, Any] | None = None, **more: Any) -> int:
    """The id of a new run."""
    return published(text, params, **more).run_id
