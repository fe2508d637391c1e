"""What keeps a value from being stored: every fault of it, with its path."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from workflows.jsonvalue.paths import item_path, member_path

#: Levels of lists and mappings a value may have; a scalar has none.
MAX_LEVELS = 64
#: The largest whole number that every JSON reader keeps exactly: 2^53 - 1.
MAX_SAFE_INTEGER = 9_007_199_254_740_991

#: No double is as large: what is smaller could be read, but not digit by digit.
_BEYOND_DOUBLES = Decimal(2) ** 1024

BROKEN_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing JSON or the database cannot hold. ``code`` is the problem code of parameters, "" for other types."""

    code: str
    path: str
    message: str
    hint: str = ""


class UnreadNumber(float):
    """A number of a JSON text that no double holds, kept with the digits that were written."""

    written: str

    def __new__(cls, written: str) -> UnreadNumber:
        self = super().__new__(cls, "-inf" if written.startswith("-") else "inf")
        self.written = written
        return self


def first_fault(value: Any, path: str = "") -> Fault:
    """The first fault of a value that has one."""
    return next(iter(faults_of(value, path)))


def faults_of(value: Any, path: str) -> Iterator[Fault]:
    """Every fault of ``value``, in the order of the text. Containers that are nested too deeply are one fault."""
    levels = levels_of(value)
    if levels is None:
        yield Fault(code="", path=path, message=f"{named(path)} holds itself.")
        return
    if levels > MAX_LEVELS:
        yield Fault(
            code="E610",
            path=path,
            message=f"{named(path)} is nested {levels} levels deep; the limit is {MAX_LEVELS}.",
            hint="Flatten it or pass a file.",
        )
        return
    yield from _faults_below(value, path)


def levels_of(value: Any) -> int | None:
    """How many levels of lists and mappings ``value`` has: 0 for a scalar, 1 for a flat list; None if endless."""
    level = 0
    seen: set[int] = set()
    containers = _containers([value])
    while containers:
        level += 1
        seen.update(containers)
        if level > len(seen):
            return None
        containers = _containers(
            member
            for container in containers.values()
            for member in (container.values() if isinstance(container, dict) else container)
        )
    return level


def _containers(values: Iterable[Any]) -> dict[int, Any]:
    return {id(value): value for value in values if isinstance(value, (dict, list))}


def _faults_below(value: Any, path: str) -> Iterator[Fault]:
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                yield Fault(code="", path=path, message=f"{named(path)} has the key {key!r:.80}, which is not text.")
                continue
            if (found := BROKEN_CHARACTER.search(key)) is not None:
                yield _character(path, found.group(), f"A key of {named(path)}")
                yield from _faults_below(member, path)
                continue
            yield from _faults_below(member, member_path(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults_below(item, item_path(path, index))
    elif (fault := _fault_of_scalar(value, path)) is not None:
        yield fault


def _fault_of_scalar(value: Any, path: str) -> Fault | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = BROKEN_CHARACTER.search(value)
        return None if found is None else _character(path, found.group(), named(path))
    if isinstance(value, int):
        return None if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else _integer(value, path)
    if isinstance(value, float):
        return None if math.isfinite(value) else _double(value, path)
    return Fault(
        code="", path=path, message=f"{named(path)} is of the Python type {type(value).__name__}, which is not JSON."
    )


def _character(path: str, character: str, subject: str) -> Fault:
    return Fault(
        code="E607",
        path=path,
        message=f"{subject} contains the character U+{ord(character):04X}.",
        hint="Remove it; NUL and half surrogates cannot be stored.",
    )


def _integer(number: int, path: str) -> Fault:
    digits = str(number) if number.bit_length() < 4_000 else hex(number)
    return _digits(digits, path)


def _digits(digits: str, path: str) -> Fault:
    shown = digits if len(digits) <= 100 else f"{digits[:50]}…{digits[-10:]}"
    return Fault(
        code="E606",
        path=path,
        message=f"{named(path)} is {shown}; whole numbers beyond ±{MAX_SAFE_INTEGER} lose digits.",
        hint=f'Pass it as text: "{shown}".',
    )


def _double(number: float, path: str) -> Fault:
    if isinstance(number, UnreadNumber):
        if number.written.lstrip("-").isdigit() or abs(Decimal(number.written)) < _BEYOND_DOUBLES:
            return _digits(number.written, path)
        shown = number.written if len(number.written) <= 100 else f"{number.written[:50]}…{number.written[-10:]}"
    elif math.isnan(number):
        shown = "NaN"
    else:
        shown = "Infinity" if number > 0 else "-Infinity"
    return Fault(
        code="E605",
        path=path,
        message=f"{named(path)} is {shown}, which JSON cannot hold.",
        hint="Use a finite number or leave it out.",
    )


def named(path: str) -> str:
    """The subject of a sentence about the value at ``path``."""
    return f'"{path}"' if path else "The value"
