"""Limits of declared fields (enum, min, max, lengths, pattern), and how messages show the values that break them."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import re2

from workflows.definitions.credentials import looks_like_credential
from workflows.definitions.suggestions import did_you_mean
from workflows.errors import Problem

Declaration = Mapping[str, Any]

_SHOWN_CHARACTERS = 100
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


# ---- values and their texts ------------------------------------------------------------------------------------------


def is_date(text: Any) -> bool:
    """Whether ``text`` is a day that exists, as ``2026-01-31``."""
    return isinstance(text, str) and _DATE.fullmatch(text) is not None and _parses(datetime.date.fromisoformat, text)


def is_datetime(text: Any) -> bool:
    """Whether ``text`` is a moment as RFC 3339 writes it, with an offset."""
    if not isinstance(text, str) or _DATETIME.fullmatch(text) is None:
        return False
    return _parses(moment_of, text)


def moment_of(text: str) -> datetime.datetime:
    """The moment of an RFC 3339 text; raises ``ValueError`` for one that does not exist."""
    return datetime.datetime.fromisoformat(text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def shown_name(name: str) -> str:
    """A name in quotes, with what cannot be printed escaped."""
    return f'"{name}"' if name.isprintable() else json.dumps(name)


def shown(value: Any) -> str:
    """A value as a message names it: ``the text "ten"``, ``the number 1.5``, ``a list``."""
    if isinstance(value, str):
        return f"the text {literal(value)}"
    if is_number(value):
        return f"the number {literal(value)}"
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return literal(value)


def literal(value: Any) -> str:
    """The value itself, as JSON, shortened."""
    if isinstance(value, str):
        cut = value if len(value) <= _SHOWN_CHARACTERS else f"{value[: _SHOWN_CHARACTERS - 1]}…"
        return f'"{cut}"' if cut.isprintable() else json.dumps(cut, ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def hides(declaration: Declaration, value: Any) -> bool:
    return bool(declaration.get("sensitive")) or looks_like_credential(str(declaration.get("name", "")), value)


def found_text(declaration: Declaration, value: Any) -> str:
    return "something else, not shown here" if hides(declaration, value) else literal(value)


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---- limits ----------------------------------------------------------------------------------------------------------


def limit_problems(declaration: Declaration, value: Any, path: str) -> list[Problem]:
    """What `enum`, `min`, `max`, `min_length`, `max_length` and `pattern` say about a value of the right type."""
    if "enum" in declaration and not any(_same(value, allowed) for allowed in declaration["enum"]):
        return [_outside_enum(declaration, value, path)]
    checks = (_range_problem, _length_problem, _pattern_problem)
    return [problem for check in checks if (problem := check(declaration, value, path)) is not None]


def _same(value: Any, allowed: Any) -> bool:
    return isinstance(value, bool) == isinstance(allowed, bool) and bool(value == allowed)


def _outside_enum(declaration: Declaration, value: Any, path: str) -> Problem:
    allowed = [plain(entry) for entry in declaration["enum"]]
    listed = ", ".join(allowed)
    suggestion = did_you_mean(value, allowed) if isinstance(value, str) else ""
    return Problem(
        code="E604",
        path=path,
        message=f'"{path}" must be one of {listed}; it is {found_text(declaration, value)}.',
        hint=suggestion or f"Allowed: {listed}.",
    )


def _range_problem(declaration: Declaration, value: Any, path: str) -> Problem | None:
    least, most = declaration.get("min"), declaration.get("max")
    if isinstance(value, (bool, list, dict)) or (least is None and most is None):
        return None
    comparable = _comparable(declaration, value)
    if comparable is None:
        return None
    low, high = _comparable(declaration, least), _comparable(declaration, most)
    if low is not None and comparable < low:
        bound = f"at least {plain(least)}"
    elif high is not None and comparable > high:
        bound = f"at most {plain(most)}"
    else:
        return None
    shown_value = "outside" if hides(declaration, value) else plain(value)
    return Problem(
        code="E613",
        path=path,
        message=f'"{path}" must be {bound}, but it is {shown_value}.',
        hint=_allowed(least, most),
    )


def _comparable(declaration: Declaration, value: Any) -> Any:
    kind = declaration.get("type")
    if kind == "datetime":
        return moment_of(value) if is_datetime(value) else None
    if kind == "date":
        return value if is_date(value) else None
    return value if is_number(value) else None


def _allowed(least: Any, most: Any, unit: str = "") -> str:
    if least is not None and most is not None:
        return f"Allowed: {plain(least)} to {plain(most)}{unit}."
    bound = f"at least {plain(least)}" if least is not None else f"at most {plain(most)}"
    return f"Allowed: {bound}{unit}."


def _length_problem(declaration: Declaration, value: Any, path: str) -> Problem | None:
    if not isinstance(value, (str, list)):
        return None
    unit = "character" if isinstance(value, str) else "element"
    least, most, length = declaration.get("min_length"), declaration.get("max_length"), len(value)
    if least is not None and length < least:
        bound, number = f"at least {least}", least
    elif most is not None and length > most:
        bound, number = f"at most {most}", most
    else:
        return None
    units = unit if number == 1 else f"{unit}s"
    return Problem(
        code="E613",
        path=path,
        message=f'"{path}" must have {bound} {units}, but it has {length:,}.',
        hint=_allowed(least, most, f" {units}"),
    )


def _pattern_problem(declaration: Declaration, value: Any, path: str) -> Problem | None:
    pattern = declaration.get("pattern")
    if pattern is None or not isinstance(value, str) or _compiled(pattern).fullmatch(value) is not None:
        return None
    example = declaration.get("example")
    return Problem(
        code="E612",
        path=path,
        message=f'"{path}" must match {pattern}, but it is {found_text(declaration, value)}.',
        hint="The whole value must match." if example is None else f"Example: {plain(example)}.",
    )


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
