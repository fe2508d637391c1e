"""Reading a workflow file: strict YAML with a position for every path.

YAML 1.2 core types, one document, no anchors, aliases, merge keys, tags or duplicate keys (docs/format.md). PyYAML only
delivers events here; its own constructor would read ``on`` as true, ``010`` as 8 and silently keep the last of two
keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from workflows.definitions import yaml_words
from workflows.errors import Problem
from workflows.jsonvalue import MAX_LEVELS, MAX_SAFE_INTEGER, item_path, member_path

MAX_BYTES = 512 * 1024
FILE = "(file)"

Position = tuple[int, int]


class SourceError(ValueError):
    """The file cannot be read. ``problem`` (E001 to E010) is the first one in the file."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that was read: ``document`` is its JSON value, in the order of the file; ``text`` is the decoded file."""

    document: dict[str, Any]
    text: str = field(repr=False)
    keys: Mapping[str, Position] = field(repr=False)
    values: Mapping[str, Position] = field(repr=False)

    def position(self, path: str) -> Position:
        """Line and column, from 1, of ``path`` (``steps[0].next.ok``): of its key, or of a list item itself.

        A path that is not in the file has the position of the nearest one that contains it.
        """
        return _nearest(path, self.keys)

    def value_position(self, path: str) -> Position:
        """Line and column, from 1, where the value of ``path`` begins."""
        return _nearest(path, self.values)


def _nearest(path: str, positions: Mapping[str, Position]) -> Position:
    while path:
        if path in positions:
            return positions[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return (1, 1)


def read_source(source: str | bytes) -> Source:
    """Read a workflow file. Raises :class:`SourceError` with the first problem of the file."""
    text = _decode(source)
    return _Reader(text).read()


def _decode(source: str | bytes) -> str:
    size = len(source) if isinstance(source, bytes) else len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        kibibytes = -(-size // 1024)
        raise _broken(
            "E001",
            f"This file is not a workflow file: it has {kibibytes:,} KiB; the limit is {MAX_BYTES // 1024} KiB.",
            "Put large data into files of their own and pass their names.",
        )
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        column = error.start - source.rfind(b"\n", 0, error.start)
        raise _broken(
            "E001",
            f"This file is not valid YAML: it is not UTF-8 text (byte 0x{source[error.start]:02X}).",
            "Save the file as UTF-8.",
            at=(line, column),
        ) from None


def _broken(code: str, message: str, hint: str, *, path: str = FILE, at: Position = (1, 1)) -> SourceError:
    return SourceError(Problem(code=code, path=path or FILE, message=message, hint=hint, line=at[0], column=at[1]))


def _at(mark: Any) -> Position:
    return (mark.line + 1, mark.column + 1)


_Loader: Any = getattr(yaml, "CLoader", yaml.Loader)

#: Control characters other than tab and line breaks, and what no UTF-8 text can hold.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
#: Stands for a control character while the parser looks for the place it is in; the parser itself stops at them.
_STAND_IN = "\u2400"

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class _InexactError(ValueError):
    """A number that a double cannot hold with all its digits."""


def _core_value(text: str) -> Any:
    """The value of a plain scalar by the core schema of YAML 1.2. Raises :class:`_InexactError`."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return _exact_integer(text, 10)
    if _OCTAL.fullmatch(text):
        return _exact_integer(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return _exact_integer(text[2:], 16)
    if _FLOAT.fullmatch(text):
        return _exact_float(text)
    if _NOT_FINITE.fullmatch(text):
        raise _InexactError
    return text


def _exact_integer(digits: str, base: int) -> int:
    significant = digits.lstrip("+-").lstrip("0")
    if len(significant) > 20:
        raise _InexactError
    number = int(significant or "0", base)
    if number > MAX_SAFE_INTEGER:
        raise _InexactError
    return -number if digits.startswith("-") else number


def _exact_float(text: str) -> float:
    number = float(text)
    try:
        exact = Decimal(repr(number)) == Decimal(text)
    except InvalidOperation:
        exact = False
    if not exact:
        raise _InexactError
    return number


class _Reader:
    """One pass over the events of the parser, keeping positions by path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.control = _CONTROL.search(text)
        self.control_at = self._position_of(self.control.start()) if self.control else None
        self.events: Any = _Loader(_CONTROL.sub(_STAND_IN, text) if self.control else text)
        self.keys: dict[str, Position] = {}
        self.values: dict[str, Position] = {}

    def _position_of(self, offset: int) -> Position:
        before = self.text[:offset]
        return (before.count("\n") + 1, offset - before.rfind("\n"))

    def read(self) -> Source:
        try:
            return self._read()
        finally:
            self.events.dispose()

    def _read(self) -> Source:
        self._next()
        event = self._next()
        value: Any = None
        if not isinstance(event, yaml.StreamEndEvent):
            value = self._value(self._next(), "", 0)
            self._next()
            self._end_of_stream()
        if self.control and self.control_at:
            raise self._control_character(self.control.group(), FILE, self.control_at)
        if not isinstance(value, dict):
            found = yaml_words.what_it_is(value, empty=isinstance(event, yaml.StreamEndEvent) or value is None)
            raise _broken(
                "E003",
                f"A workflow file must be a mapping of keys (format, name, steps, …), but this file is {found}.",
                "Start with `format: 1`.",
            )
        return Source(document=value, text=self.text, keys=self.keys, values=self.values)

    def _next(self) -> Any:
        try:
            return self.events.get_event()
        except yaml.MarkedYAMLError as error:
            at = _at(error.problem_mark) if error.problem_mark else (1, 1)
            raise _broken(
                "E001",
                f"This file is not valid YAML: {yaml_words.plain(error.problem or '', self._character(at))}.",
                yaml_words.hint(self._character(at)),
                at=at,
            ) from None
        except yaml.YAMLError as error:
            raise _broken(
                "E001", f"This file is not valid YAML: {yaml_words.plain(str(error), '')}.", yaml_words.hint("")
            ) from None

    def _character(self, at: Position) -> str:
        lines = self.text.split("\n")
        if at[0] > len(lines) or at[1] > len(lines[at[0] - 1]):
            return ""
        return lines[at[0] - 1][at[1] - 1]

    def _end_of_stream(self) -> None:
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return
        documents = 2
        at = _at(event.start_mark)
        try:
            event = self.events.get_event()
            at = _at(event.start_mark)
            while not isinstance(event, yaml.StreamEndEvent):
                event = self.events.get_event()
                documents += isinstance(event, yaml.DocumentStartEvent)
        except yaml.YAMLError:
            pass  # the count is of the documents that can be told apart
        raise _broken(
            "E004",
            f"This file contains {documents} YAML documents.",
            "Keep one workflow per file; remove the `---` line.",
            at=at,
        )

    def _value(self, event: Any, path: str, level: int) -> Any:
        at = _at(event.start_mark)
        self._refuse_features(event, path, at)
        self.values.setdefault(path, at)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path, at)
        if level >= MAX_LEVELS:
            raise _broken(
                "E001",
                f"This file is nested too deeply: more than {MAX_LEVELS} levels.",
                "Flatten it, or move a part to a block under `blocks:`.",
                path=path,
                at=at,
            )
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, level)
        return self._mapping(path, level)

    def _refuse_features(self, event: Any, path: str, at: Position) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _broken(
                "E006",
                "YAML anchors and aliases (& and *) are not supported.",
                "Move the shared part to `defaults:` or to a block under `blocks:`.",
                at=at,
            )
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise _broken(
                "E007",
                f'The YAML tag "{tag}" is not supported.',
                "Remove the tag; use quotes to force text.",
                path=path,
                at=at,
            )

    def _scalar(self, event: Any, path: str, at: Position) -> Any:
        text: str = event.value
        self._refuse_control(event, text, path, at)
        if event.style:
            return text
        try:
            return _core_value(text)
        except _InexactError:
            raise _broken(
                "E009",
                f"The number {text} cannot be stored exactly.",
                f'Write it as text: "{text}".',
                path=path,
                at=at,
            ) from None

    def _refuse_control(self, event: Any, text: str, path: str, at: Position) -> None:
        if self.control and self.control_at and at <= self.control_at <= _at(event.end_mark):
            raise self._control_character(self.control.group(), path, self.control_at)
        found = _CONTROL.search(text)
        if found:
            raise self._control_character(found.group(), path, at)

    def _control_character(self, character: str, path: str, at: Position) -> SourceError:
        return _broken(
            "E010",
            f"This text contains the control character U+{ord(character):04X}.",
            "Remove it; control characters other than tab and line breaks cannot be stored.",
            path=path,
            at=at,
        )

    def _sequence(self, path: str, level: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            here = item_path(path, len(items))
            self.keys.setdefault(here, _at(event.start_mark))
            items.append(self._value(event, here, level + 1))
        return items

    def _mapping(self, path: str, level: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, path)
            here, at = member_path(path, key), _at(event.start_mark)
            if key in members:
                raise _broken(
                    "E005",
                    f'Key "{key}" is written twice here (first on line {lines[key]}).',
                    "Remove one of them; YAML would silently keep only the last.",
                    path=here,
                    at=at,
                )
            lines[key] = at[0]
            self.keys.setdefault(here, at)
            members[key] = self._value(self._next(), here, level + 1)
        return members

    def _key(self, event: Any, path: str) -> str:
        at = _at(event.start_mark)
        self._refuse_features(event, path, at)
        if not isinstance(event, yaml.ScalarEvent):
            raise _broken(
                "E001",
                f"This file is not valid YAML: {yaml_words.collection(event)} cannot be the key of a mapping.",
                "Quote a value that begins with { or [; expressions are written `${ … }`.",
                path=path,
                at=at,
            )
        self._refuse_control(event, event.value, member_path(path, event.value), at)
        if event.style:
            return str(event.value)
        if event.value == "<<":
            raise _broken(
                "E006",
                "YAML merge keys (<<) are not supported.",
                "Move the shared part to `defaults:` or to a block under `blocks:`.",
                at=at,
            )
        try:
            value = _core_value(event.value)
        except _InexactError:
            value = 0
        if isinstance(value, str):
            return value
        word, hint = yaml_words.wrong_key(value)
        raise _broken("E008", f"The key {event.value or 'null'} is a YAML {word}, not a name.", hint, path=path, at=at)
