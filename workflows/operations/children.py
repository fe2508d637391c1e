"""Child workflows: what a plan refers to is found, checked and frozen together with it (PLAN.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workflows.definitions.plan import Plan
from workflows.operations.workflows import LIBRARY, Definition, named_definition, store_definition

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser


def referred(plan: Plan) -> Iterator[str]:
    """Names of the workflows that a plan starts as child runs."""
    return iter(sorted({step.options["ref"] for step in plan.steps.values() if step.kind == "workflow"}))


def definitions_below(plan: Plan, *, viewer: AbstractUser | AnonymousUser | None) -> dict[str, Definition]:
    """Every workflow a run of ``plan`` may start, at any depth. ``viewer`` is who is told of similar names when one is
    missing. Raises what ``named_definition`` raises."""
    found: dict[str, Definition] = {}
    wanted = list(referred(plan))
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = named_definition(name, viewer=viewer)
            wanted.extend(referred(found[name].plan))
    return found


def frozen_children(definitions: dict[str, Definition]) -> dict[str, Any]:
    """Store what is not stored yet; the plans by name, as they are frozen beside the parent's."""
    frozen = {}
    for name, definition in sorted(definitions.items()):
        stored = store_definition(definition, created_by=LIBRARY)
        frozen[name] = {"plan": stored.plan_id, "hash": definition.hash}
    return frozen
