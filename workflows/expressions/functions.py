"""The functions of the format beside those of CEL. All pure; ``bounds`` keeps their work small."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cel_expr_python import cel

from workflows.expressions.paths import path_steps
from workflows.jsonvalue import NotStorable, canonical, check_storable, decode, read_json

_ANY = cel.Type("any")
_TEXT = cel.Type.STRING
_LIST = cel.Type.List(cel.Type.DYN)
_MAPPING = cel.Type.Map(cel.Type.DYN, cel.Type.DYN)


def _get(value: Any, path: str, fallback: Any = None) -> Any:
    for step in path_steps(path):
        if isinstance(step, int) and isinstance(value, list):
            value = value[step] if step < len(value) else None
        elif isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        else:
            value = None
        if value is None:
            return fallback
    return fallback if value is None else value


def _sum(items: list[Any]) -> int | float:
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            raise ValueError(f"sum needs a list of numbers, but it holds {_kind(item)}")
    total: int | float = math.fsum(items) if any(isinstance(item, float) for item in items) else sum(items)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise ValueError("sum: integer overflow")
    return total


def _unique(items: list[Any]) -> list[Any]:
    first: dict[tuple[bool, str], Any] = {}
    for item in items:
        first.setdefault((True, item) if isinstance(item, str) else (False, _json(item)), item)
    return list(first.values())


def _sort(items: list[Any]) -> list[Any]:
    numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items)
    if not numbers and not all(isinstance(item, str) for item in items):
        kinds = sorted({_kind(item) for item in items})
        raise ValueError(f"sort needs a list of numbers or a list of texts, but it holds {' and '.join(kinds)}")
    if any(item != item for item in items):
        raise ValueError("sort: NaN has no place in an order")
    return sorted(items)


def _keys(mapping: dict[Any, Any]) -> list[Any]:
    return sorted(mapping, key=lambda key: (type(key).__name__, key))


def _to_json(value: Any) -> str:
    return _json(value)


def _from_json(text: str) -> Any:
    value, problems = read_json(text)
    problems = problems or check_storable(value, "")
    if problems:
        raise ValueError(f"from_json: {problems[0].message.removeprefix('The file is not usable JSON: ')}")
    return decode(canonical(value))


def _json(value: Any) -> str:
    try:
        return canonical(value)
    except NotStorable as fault:
        raise ValueError(fault.message) from None


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", list: "a list", dict: "a mapping", type(None): "null"}
    return names.get(type(value), "a number")


def _declared(
    name: str, returns: cel.Type, *overloads: tuple[cel.Type, ...], implementation: Callable[..., Any]
) -> cel.FunctionDecl:
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(f"{name}_{len(types)}", return_type=returns, parameters=list(types), impl=implementation)
            for types in overloads
        ],
    )


#: Declarations of our functions for the CEL library.
OWN_FUNCTIONS = [
    _declared("get", cel.Type.DYN, (_ANY, _TEXT), (_ANY, _TEXT, _ANY), implementation=_get),
    _declared("sum", cel.Type.DYN, (_LIST,), implementation=_sum),
    _declared("unique", _LIST, (_LIST,), implementation=_unique),
    _declared("sort", _LIST, (_LIST,), implementation=_sort),
    _declared("keys", _LIST, (_MAPPING,), implementation=_keys),
    _declared("to_json", _TEXT, (_ANY,), implementation=_to_json),
    _declared("from_json", cel.Type.DYN, (_TEXT,), implementation=_from_json),
]
OWN_NAMES = ("get", "sum", "unique", "sort", "keys", "to_json", "from_json")
