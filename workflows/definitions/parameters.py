"""Parameters of a run: checked before the run exists, with the path of every value that is refused (docs/format.md).

``fields`` are the declarations of a canonical document (``plan.params``, the ``params`` of a block, a ``form``):
mappings with ``name``, ``type`` and the other keys of docs/format.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workflows.definitions.credentials import credential_paths
from workflows.definitions.field_limits import shown_name
from workflows.definitions.field_values import check_value, converted
from workflows.definitions.suggestions import did_you_mean
from workflows.errors import Problem
from workflows.jsonvalue import NotStorable, canonical, check_storable, item_path, member_path

MAX_BYTES = 1024 * 1024
MAX_ELEMENTS = 10_000
EVERYTHING = "(parameters)"

Fields = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """``values``: what the run gets, defaults filled in, in the order of the declarations; parameters that were left
    out and have no default are not in it. It is of use only without ``problems``."""

    values: dict[str, Any] = field(repr=False)
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How problems name what is filled in: one of them, the option that gives it, and all together."""

    one: str
    option: str
    owner: str


PARAMETER_WORDS = Words(one="parameter", option="-P", owner="workflow")
FIELD_WORDS = Words(one="field", option="--field", owner="question")


def check_parameters(
    fields: Fields, given: Mapping[str, Any], *, from_text: Collection[str] = (), words: Words = PARAMETER_WORDS
) -> Checked:
    """Check ``given`` against the declarations. ``from_text`` names values that are text to be converted first.

    Every problem is reported (E601 to E613). W601 names the path of what looks like a credential, never the value.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for declaration in fields:
        name = declaration["name"]
        if name not in given:
            problems += _left_out(declaration, values, words)
            continue
        value: Any = given[name]
        found: list[Problem] = []
        if name in from_text and isinstance(value, str):
            value, found = converted(declaration, value)
        if not found:
            value, found = _checked_value(declaration, value, name)
        problems += found
        if value is not None:
            values[name] = value
    problems += _undeclared(fields, given, words)
    if not problems:
        problems += _too_large(values, words)
    return Checked(values=values, problems=tuple(problems), warnings=tuple(_credentials(fields, values, given)))


def from_command_line(fields: Fields, name: str, text: str) -> Any:
    """The value of ``-P name=text`` by the declared type; the text itself when it cannot be one or is not declared."""
    declaration = next((declaration for declaration in fields if declaration["name"] == name), None)
    if declaration is None:
        return text
    value, problems = converted(declaration, text)
    return text if problems else value


def for_expressions(fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
    """What expressions see as ``params``: every declared parameter, null where left out, numbers always doubles."""
    return {declaration["name"]: _with_doubles(declaration, values.get(declaration["name"])) for declaration in fields}


def _with_doubles(declaration: Mapping[str, Any], value: Any) -> Any:
    if declaration.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list) and declaration.get("items"):
        return [_with_doubles(declaration["items"], item) for item in value]
    if isinstance(value, dict) and declaration.get("properties"):
        properties = declaration["properties"]
        return {key: _with_doubles(properties.get(key, {}), member) for key, member in value.items()}
    return value


def _left_out(declaration: Mapping[str, Any], values: dict[str, Any], words: Words) -> list[Problem]:
    name = declaration["name"]
    if "default" in declaration:
        if declaration["default"] is not None:
            values[name] = declaration["default"]
        return []
    if declaration.get("optional"):
        return []
    return [
        Problem(
            code="E601",
            path=name,
            message=f'{words.one.capitalize()} "{name}" is missing.',
            hint=f"Fill it in, or pass `{words.option} {name}=…`.",
        )
    ]


def _checked_value(declaration: Mapping[str, Any], value: Any, name: str) -> tuple[Any, list[Problem]]:
    found = check_storable(value, name) or list(_long_lists(value, name))
    return (None, found) if found else check_value(declaration, value, name)


def _long_lists(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, list):
        if len(value) > MAX_ELEMENTS:
            yield Problem(
                code="E608",
                path=path,
                message=f'"{path}" has {len(value):,} elements; the limit is {MAX_ELEMENTS:,}.',
                hint="Put large data into a file and pass its name.",
            )
        for index, item in enumerate(value):
            yield from _long_lists(item, item_path(path, index))
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _long_lists(member, member_path(path, key))


def _undeclared(fields: Fields, given: Mapping[str, Any], words: Words) -> list[Problem]:
    declared = [declaration["name"] for declaration in fields]
    names = f"{words.one.capitalize()}s: {', '.join(declared)}."
    listed = names if declared else f"This {words.owner} has no {words.one}s."
    return [
        Problem(
            code="E603",
            path=member_path("", str(name)),
            message=f"There is no {words.one} {shown_name(str(name))}.",
            hint=did_you_mean(str(name), declared) or listed,
        )
        for name in given
        if name not in declared
    ]


def _too_large(values: Mapping[str, Any], words: Words) -> list[Problem]:
    try:
        size = sum(len(f"{canonical(name)}:{canonical(value)},".encode()) for name, value in values.items()) + 1
    except NotStorable as error:  # a default from an older plan
        return [Problem(code="E605", path=error.path, message=error.message)]
    if size <= MAX_BYTES:
        return []
    return [
        Problem(
            code="E608",
            path=EVERYTHING,
            message=f"The {words.one}s are {-(-size // 1024):,} KiB; the limit is {MAX_BYTES // 1024:,} KiB.",
            hint="Put large data into a file and pass its name.",
        )
    ]


def _credentials(fields: Fields, values: Mapping[str, Any], given: Mapping[str, Any]) -> list[Problem]:
    declared = [declaration["name"] for declaration in fields]
    return [
        Problem(
            code="W601",
            path=path,
            message=f'"{path}" looks like a credential. Parameters are stored and shown.',
            hint="Declare it under `secrets:` instead.",
        )
        for name in declared
        if name in given and name in values
        for path in credential_paths(values[name], name, name)
    ]
