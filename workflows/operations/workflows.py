"""Workflows: found by name or read from a file, checked, published as versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.utils import timezone

from workflows.definitions.compiler import compile_plan, compiled
from workflows.definitions.freezing import Frozen, freeze
from workflows.definitions.plan import Plan
from workflows.definitions.suggestions import closest
from workflows.errors import Problem, Refusal
from workflows.ledger.publishing import PlanVersion, StoredPlan, publish_plan
from workflows.models import Plan as PlanRow
from workflows.models import Workflow
from workflows.operations.access import hidden_names
from workflows.operations.library import library_file, library_files

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

    from workflows.definitions.validation import Validation

#: Recorded as the author of the versions that come from library files.
LIBRARY = "library"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A workflow that can be run. ``plan_id`` None: it is not stored yet; ``private``: it never becomes current."""

    plan: Plan
    hash: str
    canonical: str = field(repr=False)
    source: str = field(repr=False)
    warnings: tuple[Problem, ...] = ()
    plan_id: int | None = None
    version: int | None = None
    private: bool = False


def check_files(texts: Sequence[bytes], *, viewer: AbstractUser | AnonymousUser | None = None) -> list[Validation]:
    """Every problem of several files, which may name each other's workflows, and those that ``viewer`` may see."""
    return _validated(texts, beside=texts, viewer=viewer)


def _validated(
    texts: Sequence[bytes], *, beside: Sequence[bytes], viewer: AbstractUser | AnonymousUser | None
) -> list[Validation]:
    from workflows.definitions.validation import validate  # slow to import, and only files are checked
    from workflows.operations.known import known_here  # slow to import

    known = known_here(beside, viewer=viewer)
    return [validate(text, known) for text in texts]


def definition_of_file(
    text: bytes,
    *,
    private: bool = True,
    beside: Sequence[bytes] = (),
    viewer: AbstractUser | AnonymousUser | None = None,
) -> Definition:
    """The workflow that a file describes. Nothing is stored. ``beside`` are files whose workflows it may name, besides
    those that ``viewer`` may see; None is the operator's shell.

    Raises ``definition.invalid`` with the problems.
    """
    (validation,) = _validated([text], beside=beside, viewer=viewer)
    if not validation.is_valid or validation.document is None or validation.source is None:
        raise Refusal("definition.invalid", count=len(validation.errors), problems=validation.problems)
    frozen = freeze(validation.document)
    return _definition(frozen, validation.source.text, validation.warnings, private=private)


def _definition(frozen: Frozen, source: str, warnings: tuple[Problem, ...], *, private: bool) -> Definition:
    return Definition(
        plan=compile_plan(frozen.document),
        hash=frozen.hash,
        canonical=frozen.canonical,
        source=source,
        warnings=warnings,
        private=private,
    )


def named_definition(name: str, *, viewer: AbstractUser | AnonymousUser | None = None) -> Definition:
    """The workflow of a name: its current version, or on the embedded database a library file that is new or changed.

    A version that a person published stays current until the library file changes again. Nothing is stored. ``viewer``
    is who is told of names that are similar, None the operator's shell. Raises ``workflow.not_found`` with the name
    that was probably meant, ``definition.invalid``, ``plan.corrupt``.
    """
    workflow = Workflow.objects.select_related("current").filter(name=name).first()
    current = workflow.current if workflow is not None else None
    if connection.vendor == "sqlite" and (file := library_file(name)) is not None:
        last = _last_of_library(workflow)
        if current is None or (last is not None and last.source.encode() != file.text):
            definition = definition_of_file(file.text, private=False)
            if current is None or last is None or last.hash != definition.hash:
                return definition
    if current is None:
        raise Refusal("workflow.not_found", name=name, suggestion=_suggestion(name, viewer))
    return Definition(
        plan=compiled(current.hash, current.document),
        hash=current.hash,
        canonical=current.document,
        source=current.source,
        plan_id=current.pk,
        version=current.version,
    )


def _last_of_library(workflow: Workflow | None) -> PlanRow | None:
    """The newest version that came from a library file: what a changed file differs from."""
    published = PlanRow.objects.filter(workflow=workflow, version__isnull=False, created_by=LIBRARY)
    last: PlanRow | None = published.order_by("-version").only("hash", "source").first()
    return last


def _suggestion(name: str, viewer: AbstractUser | AnonymousUser | None) -> str:
    """What to do about an unknown name; names that cannot be run here, or that the viewer must not know, are not
    suggested."""
    names = set(Workflow.objects.filter(current__isnull=False).values_list("name", flat=True))
    if connection.vendor == "sqlite":
        names |= set(library_files())
    elif (file := library_file(name)) is not None:
        return f"The library has a file of this name; publish it with `python manage.py workflows publish {file.path}`."
    if viewer is not None:
        names -= hidden_names(viewer)
    similar = closest(name, sorted(names))
    if similar is not None:
        return f'Did you mean "{similar}"?'
    return (
        "`python manage.py workflows list` shows what there is; a file is named with its path, such as `./demo.yaml`."
    )


def store_definition(definition: Definition, *, created_by: str, audited_as: str = "") -> StoredPlan:
    """Store a definition as a version, unless that version is there. ``created_by`` is who did it, ``audited_as`` how
    the audit names them; "" where nobody meant to publish."""
    if definition.plan_id is not None:
        return StoredPlan(plan_id=definition.plan_id, version=definition.version, created=False)
    return publish_plan(version_of(definition, created_by, private=definition.private, audited_as=audited_as))


def version_of(definition: Definition, created_by: str, **more: Any) -> PlanVersion:
    """The version that a definition would become now; ``more`` are further fields of it."""
    return PlanVersion(
        name=definition.plan.name,
        title=definition.plan.title,
        document=definition.canonical,
        hash=definition.hash,
        source=definition.source,
        created_by=created_by,
        now=timezone.now(),
        **more,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPublished:
    """``published`` are the names that got a new version; ``refused`` those whose files have problems."""

    published: tuple[str, ...]
    refused: dict[str, Refusal]


def publish_library() -> LibraryPublished:
    """Make every library file that is new or changed the current version of its workflow, as a start of it would."""
    published: list[str] = []
    refused: dict[str, Refusal] = {}
    for name in library_files():
        try:
            stored = store_definition(named_definition(name), created_by=LIBRARY)
        except Refusal as refusal:
            refused[name] = refusal
            continue
        if stored.created:
            published.append(name)
    return LibraryPublished(published=tuple(published), refused=refused)


def publish_file(
    text: bytes, *, created_by: str, audited_as: str = "", beside: Sequence[bytes] = ()
) -> tuple[Definition, StoredPlan]:
    """Make a file the current version of its workflow, from the operator's shell; ``beside`` are published with it.
    Raises ``definition.invalid``."""
    definition = definition_of_file(text, private=False, beside=beside)
    return definition, store_definition(definition, created_by=created_by, audited_as=audited_as)
