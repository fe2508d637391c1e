"""What a workflow file may refer to on this server: other workflows, task functions, models, agents, graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workflows.definitions.freezing import verify
from workflows.definitions.source import SourceError, read_source
from workflows.definitions.validation import Known
from workflows.errors import Refusal
from workflows.functions import autodiscover, registry
from workflows.models import Workflow
from workflows.operations.access import hidden_names
from workflows.operations.library import library_file, library_files, name_in

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser


def known_here(beside: Iterable[bytes] = (), *, viewer: AbstractUser | AnonymousUser | None = None) -> Known:
    """Everything a file may name. ``beside`` are the texts of files that are checked together and may name each other.
    For a ``viewer`` there are only the workflows that they may see; None is the operator's shell.

    Models, agents and graphs cannot be registered in this version: there are none.
    """
    autodiscover()
    return Known(
        workflows=KnownWorkflows(beside, viewer),
        functions=registry.declarations(),
        models=frozenset(),
        agents=frozenset(),
        graphs=frozenset(),
    )


class KnownWorkflows(Mapping[str, Any]):
    """Workflows by name, published or in the library. Rows and files are read only when a file refers to one."""

    def __init__(self, beside: Iterable[bytes] = (), viewer: AbstractUser | AnonymousUser | None = None) -> None:
        self._viewer = viewer
        self._beside = {name: text for text in beside if (name := name_in(text)) is not None}

    @cached_property
    def names(self) -> frozenset[str]:
        published = Workflow.objects.filter(current__isnull=False).values_list("name", flat=True)
        hidden = hidden_names(self._viewer) if self._viewer is not None else frozenset()
        return frozenset({*published, *library_files(), *self._beside}) - hidden

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name not in self.names:
            raise KeyError(name)
        document = _read(self._beside.get(name)) or _published(name) or _from_library(name) or {}
        return {"params": document.get("params") or {}, "calls": sorted(set(_calls(document)))}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.names))

    def __len__(self) -> int:
        return len(self.names)


def _published(name: str) -> Mapping[str, Any] | None:
    workflow = Workflow.objects.select_related("current").filter(name=name, current__isnull=False).first()
    if workflow is None or workflow.current is None:
        return None
    try:
        return verify(workflow.current.document, workflow.current.hash, plan=name)
    except Refusal:  # a corrupt plan is reported where it is run, not where a file refers to it
        return {}


def _from_library(name: str) -> Mapping[str, Any] | None:
    file = library_file(name)
    return _read(file.text if file is not None else None)


def _read(text: bytes | None) -> Mapping[str, Any] | None:
    try:
        return read_source(text).document if text is not None else None
    except SourceError:
        return None


def _calls(value: Any) -> Iterator[str]:
    """Names of the workflows that the steps of a document run."""
    if isinstance(value, Mapping):
        if value.get("kind") == "workflow" and isinstance(value.get("ref"), str):
            yield value["ref"]
        for member in value.values():
            yield from _calls(member)
    elif isinstance(value, list):
        for item in value:
            yield from _calls(item)
