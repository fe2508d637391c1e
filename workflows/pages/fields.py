"""Fields of a form that a workflow file declares: how each is shown, and what was typed into it.

What was typed is kept as text until the operation has checked it, so a refused form comes back with every character.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from workflows.definitions.field_values import converted
from workflows.errors import Problem

#: Kinds of fields whose content is not shown.
SECRETS = ("secret", "secret area")
PREFIX = "field-"
Declaration = Mapping[str, Any]
#: Widgets of numbers and times by type; the rest follows from other keys of the declaration.
_INPUTS = {"integer": "number", "number": "number", "date": "date"}
_PLACEHOLDERS = {"datetime": "2026-01-31T09:30:00Z", "object": '{"key": "value"}'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    value: str
    label: str
    is_chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One field. ``widget``: text, area, json, lines, number, date, secret, choices (one of ``choices``).
    ``limits`` are attributes of the input (min, max, step, maxlength, pattern)."""

    name: str
    label: str
    widget: str
    value: str = ""
    is_required: bool = False
    hint: str = ""
    placeholder: str = ""
    choices: tuple[Choice, ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def input_name(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def id(self) -> str:
        return f"id_{PREFIX}{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What a person typed, for ``check_parameters``: values by name, and the names of those that are text."""

    given: dict[str, Any] = field(default_factory=dict)
    from_text: frozenset[str] = frozenset()


def field_views(
    declarations: Iterable[Declaration], posted: Mapping[str, str] | None, problems: Sequence[Problem] = ()
) -> list[FieldView]:
    """The fields of a form: empty or with their defaults when ``posted`` is None, else as they were typed."""
    return [_view(declaration, posted, _problems_of(declaration["name"], problems)) for declaration in declarations]


def typed(declarations: Iterable[Declaration], posted: Mapping[str, str]) -> Typed:
    """What was typed. An empty field is left out, unless it is a text whose default was cleared."""
    given: dict[str, Any] = {}
    from_text: set[str] = set()
    for declaration in declarations:
        name = declaration["name"]
        text = _normal(posted.get(PREFIX + name, ""))
        if not text.strip() and not (declaration["type"] == "string" and "default" in declaration):
            continue
        if _is_lines(declaration) and not text.lstrip().startswith("["):
            given[name] = _lines(declaration, text)
        else:
            given[name] = text
            from_text.add(name)
    return Typed(given=given, from_text=frozenset(from_text))


def other_problems(declarations: Iterable[Declaration], problems: Iterable[Problem]) -> list[Problem]:
    """Those that are about no field of the form."""
    names = {declaration["name"] for declaration in declarations}
    return [problem for problem in problems if _root(problem.path) not in names]


def _normal(text: str) -> str:
    """Browsers send the ends of lines as two characters."""
    return text.replace("\r\n", "\n")


def _root(path: str) -> str:
    return path.partition("[")[0].partition(".")[0]


def _problems_of(name: str, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if _root(problem.path) == name)


def _view(declaration: Declaration, posted: Mapping[str, str] | None, problems: tuple[Problem, ...]) -> FieldView:
    name = declaration["name"]
    value = _normal(posted.get(PREFIX + name, "")) if posted is not None else _default_text(declaration)
    widget = _widget(declaration)
    is_secret = widget in SECRETS
    return FieldView(
        name=name,
        label=str(declaration.get("title") or name.replace("_", " ").capitalize()),
        widget=widget,
        value="" if is_secret else value,
        is_required=not declaration.get("optional") and "default" not in declaration,
        hint=_hint(declaration, widget),
        placeholder=_placeholder(declaration),
        choices=_choices(declaration, value),
        limits=_limits(declaration),
        problems=problems,
    )


def _widget(declaration: Declaration) -> str:
    kind = declaration["type"]
    if declaration.get("enum") or kind == "boolean":
        return "choices"
    if declaration.get("sensitive") and kind == "string":
        return "secret area" if declaration.get("multiline") else "secret"
    if kind == "string":
        return "area" if declaration.get("multiline") else "text"
    if kind in ("array", "object"):
        return "lines" if _is_lines(declaration) else "json"
    return _INPUTS.get(kind, "text")


def _is_lines(declaration: Declaration) -> bool:
    """A list of simple values is typed one per line."""
    items = declaration.get("items") or {}
    return declaration["type"] == "array" and items.get("type") in ("string", "integer", "number", "date")


def _lines(declaration: Declaration, text: str) -> list[Any]:
    items = {**declaration["items"], "name": declaration["name"]}
    return [converted(items, line.strip())[0] for line in text.split("\n") if line.strip()]


def _default_text(declaration: Declaration) -> str:
    default = declaration.get("default")
    if default is None or (declaration.get("sensitive") and declaration["type"] == "string"):
        return ""
    if _is_lines(declaration):
        fits = all("\n" not in str(item) and str(item).strip() for item in default)
        if fits and default and not str(default[0]).startswith("["):
            return "\n".join(str(item) for item in default)
    return _text(default)


def _choices(declaration: Declaration, value: str) -> tuple[Choice, ...]:
    if declaration["type"] == "boolean":
        found = [Choice(value=word, label=label, is_chosen=value == word) for word, label in _YES_NO]
    else:
        texts = [_text(one) for one in declaration.get("enum") or ()]
        labels = [_text(one) for one in declaration.get("labels") or texts]
        found = [
            Choice(value=text, label=label, is_chosen=value == text)
            for text, label in zip_longest(texts, labels[: len(texts)], fillvalue="")
        ]
    if found and (declaration.get("optional") or "default" not in declaration):
        found.insert(0, Choice(value="", label="–", is_chosen=not value))
    return tuple(found)


_YES_NO = (("true", "Yes"), ("false", "No"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _hint(declaration: Declaration, widget: str) -> str:
    kinds = {"lines": "One per line.", "json": "As JSON."}
    return " ".join(part for part in (str(declaration.get("description") or ""), kinds.get(widget, "")) if part)


def _placeholder(declaration: Declaration) -> str:
    example = declaration.get("example")
    if example is not None:
        return _text(example)
    return _PLACEHOLDERS.get(declaration["type"], "")


def _limits(declaration: Declaration) -> tuple[tuple[str, str], ...]:
    names = {"min": "min", "max": "max", "min_length": "minlength", "max_length": "maxlength"}
    found = [(names[key], str(declaration[key])) for key in names if declaration.get(key) is not None]
    if declaration["type"] == "number":
        found.append(("step", "any"))
    return tuple(found) if declaration["type"] in ("string", "integer", "number", "date") else ()
