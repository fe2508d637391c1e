"""What exists beside a workflow file on the server that checks it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a file may refer to. None means that it is not known here, so references to it are not checked.

    * ``workflows``: by name, a mapping (or an object) with ``params``, the names of the parameters or their
      declarations, and ``calls`` (or ``refs``), the names of the workflows that it calls itself.
    * ``functions``: registered task functions by name, each with ``outcomes``, ``access`` and ``idempotent``.
    * ``models``, ``agents``, ``graphs``: names.
    """

    workflows: Mapping[str, Any] | None = None
    functions: Mapping[str, Any] | None = None
    models: Collection[str] | None = None
    agents: Collection[str] | None = None
    graphs: Collection[str] | None = None
    _workflows: dict[str, KnownWorkflow] = field(default_factory=dict, repr=False, compare=False)

    def workflow(self, name: str) -> KnownWorkflow | None:
        """The workflow of this name; None when there is none."""
        if self.workflows is None or name not in self.workflows:
            return None
        if name not in self._workflows:
            self._workflows[name] = _workflow(self.workflows[name])
        return self._workflows[name]

    def declared_outcomes(self) -> dict[str, tuple[str, ...]]:
        """The outcomes that the registered functions declare."""
        functions = self.functions or {}
        return {name: tuple(part(functions[name], "outcomes") or ()) for name in functions}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWorkflow:
    """``params`` by name: whether it is required, None when that is not known."""

    params: Mapping[str, bool | None]
    calls: tuple[str, ...]


def part(holder: Any, name: str) -> Any:
    """A member of a mapping or an attribute of an object; None when it has none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def is_required(declaration: Mapping[str, Any]) -> bool:
    """Whether a parameter has to be given."""
    return "default" not in declaration and declaration.get("optional") is not True


def _workflow(described: Any) -> KnownWorkflow:
    calls = part(described, "calls") or part(described, "refs") or ()
    return KnownWorkflow(params=dict(_params(part(described, "params") or ())), calls=tuple(calls))


def _params(described: Any) -> Iterable[tuple[str, bool | None]]:
    if isinstance(described, Mapping):
        for name, declaration in described.items():
            yield name, is_required(declaration) if isinstance(declaration, Mapping) else None
        return
    for entry in described if isinstance(described, Iterable) and not isinstance(described, str) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            yield entry["name"], is_required(entry)
        elif isinstance(entry, str):
            yield entry, None
