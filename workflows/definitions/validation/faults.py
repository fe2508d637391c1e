"""What pydantic found wrong with the form of a file, placed in the file.

Errors arrive with the keys that lead to the value, mixed with tags of the unions that were chosen on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from workflows.definitions.models import STEP_MODELS, WorkflowModel
from workflows.definitions.models.control import Case
from workflows.definitions.models.effects import Check
from workflows.definitions.models.fields import FieldModel
from workflows.definitions.models.values import TAG, AtLeast, Budget, Limit, People, Policy, SecretReference
from workflows.definitions.models.workflow import BlockModel, Concurrency, Defaults, ScheduleEntry
from workflows.definitions.validation.report import Path

_CONTAINERS: dict[str, type[BaseModel]] = {
    "defaults": Defaults,
    "concurrency": Concurrency,
    "schedule": ScheduleEntry,
    "budget": Budget,
    "retry": Policy,
    "limit": Limit,
    "checks": Check,
    "cases": Case,
    "by": People,
    "to": People,
    "join": AtLeast,
    "auth": SecretReference,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error of form. ``inner`` is the path below the step it is in, ``kind`` that step's kind; both empty outside.

    ``is_key``: the key itself is wrong, not its value. ``details`` are what the type of the value knows.
    """

    type: str
    path: Path
    value: Any
    details: Mapping[str, Any]
    is_key: bool = False
    kind: str = ""
    step_path: Path = ()
    step: Mapping[str, Any] | None = None

    @property
    def inner(self) -> Path:
        return self.path[len(self.step_path) :]

    @property
    def key(self) -> str:
        """The last key of the path that is not an index."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")

    @property
    def container(self) -> Path:
        return self.path[:-1]

    @property
    def is_field_key(self) -> bool:
        """Whether the path leads to a key of a parameter or of a form field."""
        outer = self.inner if self.step_path else self.path
        return (
            (len(outer) == 3 and outer[0] in ("params", "form"))
            or (len(outer) == 5 and outer[0] == "blocks" and outer[2] == "params")
        )  # fmt: skip


def fault_of(document: Mapping[str, Any], error: Any) -> Fault:
    """The fault that one of pydantic's error details describes."""
    path: list[str | int] = []
    step_path: Path = ()
    kind = ""
    for part in error["loc"]:
        if isinstance(part, str) and part.startswith(TAG):
            if part[1:] in STEP_MODELS:
                step_path, kind = tuple(path), part[1:]
        else:
            path.append(part)
    is_key = bool(path) and path[-1] == "[key]"
    if is_key:
        path.pop()
    return Fault(
        type=error["type"],
        path=tuple(path),
        value=error["input"],
        details=error.get("ctx", {}),
        is_key=is_key,
        kind=kind,
        step_path=step_path,
        step=value_at(document, step_path) if step_path else None,
    )


def value_at(document: Any, path: Path) -> Any:
    """The value at ``path``; None when there is none."""
    for part in path:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def keys_allowed(fault: Fault) -> list[str]:
    """The keys that the mapping of an unknown key may have."""
    if fault.is_field_key:
        return _keys(FieldModel)
    if fault.step_path and len(fault.inner) == 1:
        return _keys(STEP_MODELS[fault.kind])
    if len(fault.path) == 1:
        return _keys(WorkflowModel)
    if fault.path[0] == "blocks" and len(fault.path) == 3:
        return _keys(BlockModel)
    holder = next((part for part in reversed(fault.container) if isinstance(part, str)), "")
    return _keys(_CONTAINERS[holder]) if holder in _CONTAINERS else []


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
