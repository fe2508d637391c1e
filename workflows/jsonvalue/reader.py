"""The strict JSON reader of the doors: parameters, answers and API bodies.

The standard decoder reads well-formed text; only when it meets a repeated key, a mistake or a nesting deeper than it
can follow is the text read again, slowly, by a scanner that knows lines and columns.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from workflows.errors import Problem
from workflows.jsonvalue.faults import UnreadNumber
from workflows.jsonvalue.scanner import BadJSON, RepeatedKey, scan

_MAX_DIGITS = 400


def read_json(text: str) -> tuple[Any, list[Problem]]:
    """The value of a JSON text and the problems of the text itself (E609: repeated keys, mistakes).

    NaN, infinities and numbers that no double holds are kept in the value, so that ``check_storable`` can name their
    paths. With a mistake in the text the value is None; of a repeated key the last value counts.
    """
    try:
        return _decoder.decode(text), []
    except (ValueError, RecursionError):
        return _read_slowly(text)


def number_from(written: str) -> int | float:
    """The number a JSON text holds; :class:`UnreadNumber` when no int or double can be made of it."""
    if any(mark in written for mark in ".eE"):
        number = float(written)
        if number in (float("inf"), float("-inf")) or loses_digits(written, number):
            return UnreadNumber(written)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return int(written) if len(written) <= _MAX_DIGITS else UnreadNumber(written)


def loses_digits(written: str, number: float) -> bool:
    """Whether a double beyond ±(2^53 - 1) is shown with other digits than were written; below, fractions are rounded as
    everywhere."""
    return abs(number) >= 2**53 and Decimal(repr(number)) != Decimal(written)


def _mapping_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated key")
    return members


_decoder = json.JSONDecoder(object_pairs_hook=_mapping_once, parse_float=number_from, parse_int=number_from)


def _read_slowly(text: str) -> tuple[Any, list[Problem]]:
    repeated: list[RepeatedKey] = []
    try:
        value = scan(text, number_from, repeated)
    except BadJSON as mistake:
        return None, [*map(_repeated_key, repeated), _mistake(mistake)]
    return value, [_repeated_key(key) for key in repeated]


def _repeated_key(key: RepeatedKey) -> Problem:
    where = f"line {key.line}, column {key.column}"
    return Problem(
        code="E609",
        path="(file)",
        message=f'The file is not usable JSON: key "{key.name}" appears twice ({where}).',
        hint="Remove one of them.",
        line=key.line,
        column=key.column,
    )


def _mistake(mistake: BadJSON) -> Problem:
    where = f"line {mistake.line}, column {mistake.column}"
    return Problem(
        code="E609",
        path="(file)",
        message=f"The file is not usable JSON: {mistake.reason} ({where}).",
        hint=mistake.hint,
        line=mistake.line,
        column=mistake.column,
    )
