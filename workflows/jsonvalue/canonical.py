"""Canonical JSON (RFC 8785), its digest, and the stored form of a value."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import rfc8785

from workflows.jsonvalue.faults import MAX_LEVELS, MAX_SAFE_INTEGER, first_fault

_LONG_DIGITS = re.compile(r"[0-9]{16}")
_FINITE = float("inf")

#: What the quick look at a value says: the standard encoder writes it as RFC 8785 wants, only the library does, or
#: it is not JSON.
_SIMPLE, _PARTICULAR, _FAULTY = range(3)


class NotStorable(ValueError):
    """A value that cannot be stored. ``code`` is ``invalid_output`` or ``output_too_large``; ``path`` says where."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Stored:
    """A value in its stored form: canonical text, SHA-256 of it, and its length in bytes of UTF-8."""

    text: str
    digest: str
    size: int

    def value(self) -> Any:
        """The value, decoded anew at every call, so that the caller may change it."""
        return decode(self.text)


def canonical(value: Any) -> str:
    """The one text of ``value`` by RFC 8785. Raises :class:`NotStorable` (``invalid_output``) for what is not JSON.

    The standard encoder is forty times faster than the library and differs from it only in most doubles and in the
    order of keys beyond the basic plane, so the library is asked only for those.
    """
    look = _look(value, 0)
    if look == _SIMPLE:
        return _encode(value)
    if look == _PARTICULAR:
        return rfc8785.dumps(value).decode()
    fault = first_fault(value)
    raise NotStorable("invalid_output", fault.path, fault.message)


def digest(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of ``text``, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def store(value: Any, *, limit: int | None = None) -> Stored:
    """The stored form of ``value``; ``limit`` is in bytes.

    Raises :class:`NotStorable`: ``invalid_output`` for what JSON or the database cannot hold (other types, NaN,
    whole numbers beyond ±(2^53 - 1), NUL, half surrogates, more than 64 levels), ``output_too_large`` for the rest.
    """
    text = canonical(value)
    data = text.encode()
    if limit is not None and len(data) > limit:
        raise NotStorable(
            "output_too_large", "", f"The value is {len(data):,} bytes as JSON; the limit is {limit:,} bytes."
        )
    return Stored(text=text, digest=hashlib.sha256(data).hexdigest(), size=len(data))


def decode(text: str) -> Any:
    """The value of stored text. Whole numbers beyond 2^53 - 1 were doubles when they were stored and are again."""
    if _LONG_DIGITS.search(text) is None:
        return json.loads(text)
    return json.loads(text, parse_int=_int_or_double)


def text_of(value: Any) -> str:
    """The text of a value: strings as they are, lists and mappings as canonical JSON.

    Raises ``ValueError`` for None, which has no text, and :class:`NotStorable` for what is not JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("null has no text")
    return canonical(value)


def _int_or_double(digits: str) -> int | float:
    number = int(digits)
    return number if abs(number) <= MAX_SAFE_INTEGER else float(number)


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False).encode


def _look(value: Any, level: int) -> int:
    if value is None or value is True or value is False:
        return _SIMPLE
    if isinstance(value, str):
        return _SIMPLE if _is_text(value) else _FAULTY
    if isinstance(value, int):
        return _SIMPLE if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else _FAULTY
    if isinstance(value, float):
        return _PARTICULAR if -_FINITE < value < _FINITE else _FAULTY
    if level >= MAX_LEVELS:
        return _FAULTY
    if isinstance(value, dict):
        return _look_at_members(value, level + 1)
    if isinstance(value, list):
        return _look_at_items(value, level + 1)
    return _FAULTY


def _look_at_items(items: list[Any], level: int) -> int:
    worst = _SIMPLE
    for item in items:
        look = _look(item, level)
        if look > worst:
            if look == _FAULTY:
                return _FAULTY
            worst = look
    return worst


def _look_at_members(members: dict[Any, Any], level: int) -> int:
    worst = _SIMPLE
    for key, member in members.items():
        if not isinstance(key, str) or not _is_text(key):
            return _FAULTY
        look = _look(member, level)
        if look == _FAULTY:
            return _FAULTY
        if look > worst or (not key.isascii() and max(key) > "\ud7ff"):
            worst = _PARTICULAR
    return worst


def _is_text(text: str) -> bool:
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
