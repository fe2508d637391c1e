"""Values of declared fields: conversion from text and the check of one value against its declaration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from workflows.definitions.field_limits import (
    found_text,
    hides,
    is_date,
    is_datetime,
    is_number,
    limit_problems,
    literal,
    plain,
    shown,
    shown_name,
)
from workflows.definitions.suggestions import did_you_mean
from workflows.errors import Problem
from workflows.jsonvalue import item_path, member_path, number_from, read_json

TYPES = ("string", "integer", "number", "boolean", "array", "object", "date", "datetime")

Declaration = Mapping[str, Any]

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "date": "a date such as 2026-01-31",
    "datetime": "a date and time such as 2026-01-31T09:30:00Z",
}
_EXAMPLES = {
    "string": '"text"',
    "integer": "10",
    "number": "1.5",
    "boolean": "true",
    "array": '["a", "b"]',
    "object": '{"a": 1}',
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


# ---- text to value ---------------------------------------------------------------------------------------------------


def converted(declaration: Declaration, text: str) -> tuple[Any, list[Problem]]:
    """The value that ``text`` is for the declared type. Text that is none stays text, so that the check names it."""
    kind = declaration["type"]
    if kind in ("string", "date", "datetime"):
        return text, []
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.strip(), text), []
    if kind in ("integer", "number"):
        return _number(text.strip(), text), []
    value, problems = read_json(text)
    if problems and text.lstrip()[:1] in ("[", "{"):
        return text, [_at_field(problem, declaration["name"]) for problem in problems]
    return (text if problems else value), []


def _number(stripped: str, text: str) -> Any:
    if _INTEGER.fullmatch(stripped):
        return int(stripped)
    return number_from(stripped) if _NUMBER.fullmatch(stripped) else text


def _at_field(problem: Problem, name: str) -> Problem:
    return Problem(
        code=problem.code,
        path=name,
        message=problem.message.replace("The file is", f'"{name}" is'),
        hint=problem.hint,
    )


# ---- check -----------------------------------------------------------------------------------------------------------


def check_value(declaration: Declaration, value: Any, path: str) -> tuple[Any, list[Problem]]:
    """Check one storable value. Returns it with nested defaults filled in and whole doubles as integers, and all
    problems (E601 to E604, E611 to E613) with paths at and below ``path``."""
    if value is None and declaration.get("optional"):
        return None, []
    kind = declaration.get("type")
    if kind in ("integer", "number") and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if kind is not None and not _HAS_TYPE[kind](value):
        return value, [_wrong_type(declaration, value, path)]
    problems = limit_problems(declaration, value, path)
    if isinstance(value, list) and declaration.get("items"):
        value, found = _check_items(declaration, value, path)
        return value, problems + found
    if isinstance(value, dict) and declaration.get("properties"):
        value, found = _check_properties(declaration, value, path)
        return value, problems + found
    return value, problems


_HAS_TYPE: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "date": is_date,
    "datetime": is_datetime,
}


def _wrong_type(declaration: Declaration, value: Any, path: str) -> Problem:
    kind = declaration["type"]
    if kind in ("date", "datetime") and isinstance(value, str):
        hint = "Year, month, day with dashes." if kind == "date" else "RFC 3339: date, T, time, and Z or an offset."
        return Problem(
            code="E611",
            path=path,
            message=f'"{path}" must be {_WORDS[kind]}, but it is {found_text(declaration, value)}.',
            hint=hint,
        )
    hidden = isinstance(value, (str, int, float)) and hides(declaration, value)
    it_is = found_text(declaration, value) if hidden else shown(value)
    return Problem(
        code="E602",
        path=path,
        message=f'"{path}" must be {_WORDS[kind]}, but it is {it_is}.',
        hint=_type_hint(declaration, value),
    )


def _type_hint(declaration: Declaration, value: Any) -> str:
    kind = declaration["type"]
    if value is None and "default" in declaration:
        return "Leave it out to get the default."
    if "example" in declaration:
        return f"Example: {plain(declaration['example'])}."
    if kind == "string" and (is_number(value) or isinstance(value, bool)):
        return f'Pass it as text: "{literal(value)}".'
    if kind == "boolean":
        return "Write true or false."
    return f"Example: {_EXAMPLES.get(kind, '2026-01-31' if kind == 'date' else '2026-01-31T09:30:00Z')}."


# ---- nested values ---------------------------------------------------------------------------------------------------


def _within(declaration: Declaration, declared: Declaration) -> Declaration:
    """The declaration of a nested value: what is inside of a sensitive one is sensitive."""
    return {**declared, "sensitive": True} if declaration.get("sensitive") else declared


def _check_items(declaration: Declaration, value: list[Any], path: str) -> tuple[list[Any], list[Problem]]:
    declared = _within(declaration, declaration["items"])
    items, problems = [], []
    for index, item in enumerate(value):
        checked, found = check_value(declared, item, item_path(path, index))
        items.append(checked)
        problems += found
    return items, problems


def _check_properties(
    declaration: Declaration, value: Mapping[str, Any], path: str
) -> tuple[dict[str, Any], list[Problem]]:
    properties: Mapping[str, Declaration] = declaration["properties"]
    members, problems = dict(value), []
    for name, declared in properties.items():
        if name in value:
            members[name], found = check_value(
                {"name": name, **_within(declaration, declared)}, value[name], member_path(path, name)
            )
            problems += found
        elif declared.get("default") is not None:
            members[name] = declared["default"]
        elif not declared.get("optional") and "default" not in declared:
            problems.append(_missing_member(path, name))
    problems += [_undeclared_member(path, name, properties) for name in value if name not in properties]
    return members, problems


def _missing_member(path: str, name: str) -> Problem:
    here = member_path(path, name)
    return Problem(code="E601", path=here, message=f'"{here}" is missing.', hint=f'Add "{name}" to "{path}".')


def _undeclared_member(path: str, name: str, properties: Mapping[str, Declaration]) -> Problem:
    here = member_path(path, name)
    return Problem(
        code="E603",
        path=here,
        message=f"There is no {shown_name(here)}.",
        hint=did_you_mean(name, list(properties)) or f'Members of "{path}": {", ".join(properties)}.',
    )
