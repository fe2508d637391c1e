"""Short ways to declare and check one field."""

from __future__ import annotations

from typing import Any

from workflows.definitions.parameters import check_parameters
from workflows.errors import Problem

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
ARRAY, OBJECT, DATE, DATETIME = ({"type": name} for name in ("array", "object", "date", "datetime"))


def fields_of(**declarations: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, **declaration} for name, declaration in declarations.items()]


def one(declaration: dict[str, Any], value: Any, name: str = "x") -> Problem:
    """The only problem of one value."""
    (problem,) = check_parameters(fields_of(**{name: declaration}), {name: value}).problems
    return problem


def accepted(declaration: dict[str, Any], value: Any) -> Any:
    checked = check_parameters(fields_of(x=declaration), {"x": value})
    assert checked.problems == ()
    return checked.values["x"]
