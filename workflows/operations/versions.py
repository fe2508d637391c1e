"""Versions of workflows: found by number, published by people (promises PLAN, PUB)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from workflows.definitions.compiler import compiled
from workflows.errors import Problem, Refusal
from workflows.ledger.publishing import StoredPlan, publish_plan
from workflows.models import Plan, Workflow
from workflows.operations.access import require
from workflows.operations.library import library_file, library_files
from workflows.operations.people import Actor
from workflows.operations.workflows import LIBRARY, Definition, definition_of_file, version_of

#: What publishing a version needs.
PUBLISH = "publish_plan"


def version_definition(workflow: Workflow, version: int | None = None) -> Definition:
    """A published version, by default the current one. Raises ``plan.no_such_version``, ``plan.corrupt``."""
    plans = Plan.objects.filter(workflow=workflow, version__isnull=False)
    plan: Plan | None = plans.filter(pk=workflow.current_id).first() if version is None else None
    if version is not None:
        plan = plans.filter(version=version).first()
    if plan is None:
        raise Refusal("plan.no_such_version", workflow=workflow.name, version=version or "that is current")
    return Definition(
        plan=compiled(plan.hash, plan.document),
        hash=plan.hash,
        canonical=plan.document,
        source=plan.source,
        plan_id=plan.pk,
        version=plan.version,
    )


def publish_text(
    text: bytes, *, actor: Actor, name: str | None = None, began_from: int | None = None
) -> tuple[Definition, StoredPlan]:
    """Make a text the current version of its workflow, for who may publish it.

    ``name`` is the workflow that is meant: a text that names another one is not published. ``began_from`` is the
    version that the text was made from, 0 for a new workflow. Raises ``access.denied``, ``workflow.not_found``,
    ``definition.invalid``, ``plan.superseded``.
    """
    require(actor, PUBLISH, workflow=name, action="plan.publish")
    definition = definition_of_file(text, private=False, viewer=actor.user)
    if name is not None and definition.plan.name != name:
        raise Refusal("definition.invalid", count=1, problems=(_other_name(definition.plan.name, name),))
    require(actor, PUBLISH, workflow=definition.plan.name, action="plan.publish")
    return definition, _publish(definition, actor, created_by=actor.name, began_from=began_from)


def publish_library_file(name: str, *, actor: Actor) -> tuple[Definition, StoredPlan]:
    """Make the library file of a name its current version. Raises what ``publish_text`` raises."""
    require(actor, PUBLISH, workflow=name, action="plan.publish")
    file = library_file(name)
    if file is None:
        raise Refusal("workflow.not_found", name=name, suggestion="The library has no file of this name.")
    definition = definition_of_file(file.text, private=False)
    return definition, _publish(definition, actor, created_by=LIBRARY)


def _publish(definition: Definition, actor: Actor, *, created_by: str, began_from: int | None = None) -> StoredPlan:
    return publish_plan(version_of(definition, created_by, began_from=began_from, audited_as=actor.recorded))


def _other_name(found: str, meant: str) -> Problem:
    return Problem(
        code="E103",
        path="name",
        message=f'The name is "{found}", but this page publishes "{meant}".',
        hint="Keep the name, or publish the text as a new workflow.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """A library file that is not published. ``title`` is empty for one that cannot be read."""

    name: str
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()


def unpublished_files() -> list[Shelved]:
    """The library files whose workflows were never published, by name."""
    published = set(Workflow.objects.filter(current__isnull=False).values_list("name", flat=True))
    return [_shelved(file.name, file.text) for file in library_files().values() if file.name not in published]


@lru_cache(maxsize=256)
def _shelved(name: str, text: bytes) -> Shelved:
    from workflows.definitions.source import SourceError, read_source  # slow to import

    try:
        document = read_source(text).document
    except SourceError:
        return Shelved(name=name)
    tags = document.get("tags")
    return Shelved(
        name=name,
        title=str(document.get("title") or name),
        description=str(document.get("description") or ""),
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
    )


def library_is_newer(workflow: Workflow) -> bool:
    """Whether the library file of a workflow has changed since it was last published from there."""
    published = Plan.objects.filter(workflow=workflow, version__isnull=False, created_by=LIBRARY)
    last: str | None = published.order_by("-version").values_list("source", flat=True).first()
    file = library_file(workflow.name) if last is not None else None
    return file is not None and file.text.decode("utf-8", "replace") != last
