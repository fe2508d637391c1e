"""What an expression is given: the parts of the names that it reads, as values the CEL library can convert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflows.expressions.errors import BadExpression

_MISSING = object()


def inputs_for(paths: tuple[tuple[str, ...], ...], names: Mapping[str, Any]) -> dict[str, Any]:
    """A tree with just the values at ``paths``. What does not exist is left out, so that ``has`` can ask for it."""
    tree: dict[str, Any] = {}
    for path in paths:
        _copy_path(path, names, tree)
    return tree


def look_up(source: str, path: tuple[str, ...], names: Mapping[str, Any]) -> Any:
    """The value at a fixed path, as a fresh value. Raises :class:`BadExpression` where CEL would fail."""
    current: Any = names
    for depth, field in enumerate(path):
        if not isinstance(current, Mapping):
            kind = "null" if current is None else _kind(current)
            raise BadExpression(
                f'The expression "{source}" failed: "{".".join(path[:depth])}" is {kind} and has no "{field}".'
            )
        current = current.get(field, _MISSING)
        if current is _MISSING:
            reason = f'there is no key "{field}"' if depth else f'"{field}" has no value here'
            raise BadExpression(f'The expression "{source}" failed: {reason}.')
    return plain(current)


def plain(value: Any) -> Any:
    """A copy of ``value`` in plain lists and dicts."""
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _copy_path(path: tuple[str, ...], names: Mapping[str, Any], tree: dict[str, Any]) -> None:
    current: Any = names
    target = tree
    last = len(path) - 1
    for depth, field in enumerate(path):
        member = current.get(field, _MISSING)
        if member is _MISSING:
            return
        if depth == last or not isinstance(member, Mapping):
            target[field] = member if type(member) in _READY else plain(member)
            return
        target = target.setdefault(field, {})
        current = member


_READY = frozenset({str, int, float, bool, type(None), list})


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, (list, tuple)) else "a number"
