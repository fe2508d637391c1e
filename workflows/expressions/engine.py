"""The CEL library behind one small door: compile a text, evaluate it with named values, get JSON or an error.

Nothing else imports the library for evaluation, so it can be exchanged here (``functions`` and ``checking`` declare
functions and types to it).
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_optional, ext_strings

from workflows.expressions.errors import BadExpression
from workflows.expressions.functions import OWN_FUNCTIONS
from workflows.jsonvalue import MAX_SAFE_INTEGER

LOOP_LIMIT_MESSAGE = "one expression may loop about 9,000 times in all; use `collect` or a step for longer lists"
WORK_LIMIT_MESSAGE = "with values of this size it could take too much time or memory; use `collect` or a step"
_MAX_MESSAGE = 2_000
_STATUS = re.compile(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$")
_EXTENSIONS = [ext_strings.ExtStrings(), ext_math.ExtMath(), ext_optional.ExtOptional()]


def _protect_none() -> None:
    """Before Python 3.12 the library gives back references to None that it never took, and after some thousand nulls

    the interpreter would deallocate None and abort. A head start that is never used up prevents it; from 3.12 on None
    is immortal.
    """
    if sys.version_info < (3, 12):
        ctypes.c_ssize_t.from_address(id(None)).value += 1 << 48


_protect_none()

_environment = cel.NewEnv(extensions=_EXTENSIONS, functions=OWN_FUNCTIONS)


def checking_environment(variables: Mapping[str, cel.Type]) -> cel.Env:
    """An environment of the library that knows the types of names."""
    return cel.NewEnv(variables=dict(variables), extensions=_EXTENSIONS, functions=OWN_FUNCTIONS)


class Refused(ValueError):
    """The library cannot read an expression; ``errors`` are its own texts with line and column, from 1."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.errors = errors_in(report)


def errors_in(report: str) -> tuple[tuple[int, int, str], ...]:
    """Line, column and text of each error of the library's report; -1, -1 where it names no place."""
    found = re.findall(r"ERROR: <input>:(-?\d+):(-?\d+): ([^\n]*)", report)
    if not found:
        return ((-1, -1, _STATUS.sub("", _STATUS.sub("", report.strip()))),)
    return tuple((int(line), int(column), _STATUS.sub("", text)) for line, column, text in found)


@lru_cache(maxsize=4_096)
def program(source: str) -> cel.Expression:
    """The program of ``source``, without checks of names and types. Raises :class:`Refused`."""
    if "\0" in source or not _is_unicode(source):
        raise Refused("the expression contains a character that cannot be stored")
    try:
        return _environment.compile(source, disable_check=True)
    except RuntimeError as error:
        raise Refused(str(error)) from None


def evaluate(source: str, names: Mapping[str, Any]) -> Any:
    """The JSON value of ``source``. ``names`` holds plain JSON values. Raises :class:`BadExpression`."""
    return json_of(raw(source, names, shown=source), source)


def raw(source: str, names: Mapping[str, Any], *, shown: str) -> Any:
    """The library's Python form of the value, which need not be JSON. ``shown`` is the expression in messages."""
    try:
        result = program(source).eval(data=names)
        if result.type() == cel.Type.ERROR:
            raise BadExpression(_failure(shown, str(result.value())))
        return result.plain_value()
    except RuntimeError as error:
        raise BadExpression(_failure(shown, str(error))) from None
    except TypeError:
        # The library has no Python form for optionals.
        raise BadExpression(sentence(shown, "the result is optional; end it with .orValue(…)")) from None


def _failure(source: str, report: str) -> str:
    reason = _STATUS.sub("", _STATUS.sub("", report.strip()))
    if "Iteration budget" in reason:
        return sentence(source, LOOP_LIMIT_MESSAGE)
    return sentence(source, _plain(reason))


def sentence(source: str, reason: str) -> str:
    """What is said about an expression that failed."""
    shown = source if len(source) <= 200 else f"{source[:200]}…"
    return f'The expression "{shown}" failed: {reason}.'[:_MAX_MESSAGE]


def _plain(reason: str) -> str:
    """The library's reason in the words of this project."""
    if (found := re.fullmatch(r'Key not found in map : "?(.*?)"?', reason, re.DOTALL)) is not None:
        return f'there is no key "{found[1]}"'
    if (found := re.fullmatch(r'No value with name "(.*)" found in Activation', reason)) is not None:
        return f'"{found[1]}" has no value here'
    if (found := re.fullmatch(r"No matching overloads found : (.*)", reason, re.DOTALL)) is not None:
        return _no_overload(found[1])
    return reason[:1].lower() + reason[1:].rstrip(".")


_OPERATORS = {
    "_+_": "+",
    "_-_": "-",
    "_*_": "*",
    "_/_": "/",
    "_%_": "%",
    "_<_": "<",
    "_<=_": "<=",
    "_>_": ">",
    "_>=_": ">=",
    "_==_": "==",
    "_!=_": "!=",
    "_&&_": "&&",
    "_||_": "||",
    "!_": "!",
    "-_": "-",
    "@in": "in",
    "_[_]": "[]",
    "_?_:_": "?:",
    "_[?_]": "[?]",
    "_?._": ".?",
    "math.@max": "math.greatest",
    "math.@min": "math.least",
}


def operator_sign(function: str) -> str:
    """``+`` for the library's ``_+_``; other names as they are."""
    return _OPERATORS.get(function, function)


def _no_overload(call: str) -> str:
    if call == "<jump_condition>":
        return "a condition must be true or false"
    if call == "<iter_range>":
        return "only lists and mappings have items"
    found = re.fullmatch(r"(?:\((?P<target>.*?)\)\.)?(?P<name>[^()]+)\((?P<types>.*)\)", call, re.DOTALL)
    if found is None:
        return f"no such operation: {call}"
    types = [kind for kind in (found["target"], *found["types"].split(", ")) if kind]
    return f'"{operator_sign(found["name"])}" cannot be used with {listed(map(_type_name, types)) or "no arguments"}'


def _type_name(name: str) -> str:
    return {"int64": "int", "uint64": "uint", "null_type": "null"}.get(name, name)


def listed(words: Any) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *front, last = words if isinstance(words, list) else (list(words) or [""])
    return f"{', '.join(front)} and {last}" if front else last


def json_of(value: Any, source: str) -> Any:
    """A value of the library as JSON. Timestamps become RFC 3339 text, durations seconds such as ``90s``."""
    kind = type(value)
    if kind is str:
        if "\0" in value:
            raise BadExpression(sentence(source, "the result contains the character U+0000"))
        return value
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            raise BadExpression(
                sentence(source, f"{value} is beyond ±{MAX_SAFE_INTEGER}, where whole numbers lose digits")
            )
        return value
    if kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise BadExpression(sentence(source, f"the result is {value}, which JSON cannot hold"))
        return value
    if kind is list:
        return [json_of(item, source) for item in value]
    if kind is dict:
        return {_key(key, source): json_of(member, source) for key, member in value.items()}
    return _special(value, source)


def _key(key: Any, source: str) -> str:
    if not isinstance(key, str):
        raise BadExpression(sentence(source, f"the result has the key {key!r}, but keys of JSON are texts"))
    if "\0" in key:
        raise BadExpression(sentence(source, "the result contains the character U+0000"))
    return key


def _special(value: Any, source: str) -> Any:
    if isinstance(value, datetime):
        text = value.astimezone(UTC).isoformat()
        return f"{text.removesuffix('+00:00')}Z"
    if isinstance(value, timedelta):
        seconds, rest = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
        sign = "-" if value < timedelta(0) else ""
        fraction = f".{rest:06d}".rstrip("0") if rest else ""
        return f"{sign}{seconds}{fraction}s"
    kinds = {"bytes": "bytes", "bytearray": "bytes", "Type": "a type"}
    name = kinds.get(type(value).__name__, type(value).__name__)
    raise BadExpression(sentence(source, f"the result is {name}, which is not JSON"))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
