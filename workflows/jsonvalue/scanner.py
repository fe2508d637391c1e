"""A JSON scanner without recursion that knows lines and columns. Slow; used for texts with something wrong in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
#: The standard decoder, asked for one quoted text at a time.
_texts = json.JSONDecoder()
_CONSTANTS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_SPELLED_ALIKE = {"True": "true", "False": "false", "None": "null", "undefined": "null", "nil": "null"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedKey:
    """A key that a mapping holds already; ``line`` and ``column`` (from 1) of its repetition."""

    name: str
    line: int
    column: int


class BadJSON(ValueError):
    """A mistake in the text: what is wrong, what to do, where (line and column from 1)."""

    def __init__(self, reason: str, hint: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.line = line
        self.column = column


def scan(text: str, number_from: Callable[[str], Any], repeated: list[RepeatedKey]) -> Any:
    """The value of ``text``. Repeated keys are added to ``repeated``. Raises :class:`BadJSON`."""
    return _Scanner(text, number_from, repeated).document()


class _Scanner:
    def __init__(self, text: str, number_from: Callable[[str], Any], repeated: list[RepeatedKey]) -> None:
        self.text = text
        self.at = 0
        self.number_from = number_from
        self.repeated = repeated

    def document(self) -> Any:
        self.skip()
        if self.text.startswith("\ufeff"):
            raise self.bad("the text begins with a byte order mark", "Save the file as UTF-8 without a mark.", 0)
        if self.at == len(self.text):
            raise self.bad("it is empty", "Write a mapping, e.g. {}.")
        value = self.value()
        self.skip()
        if self.at < len(self.text):
            raise self.bad(f"unexpected {self.shown()} after the end of the value", "Keep one value per file.")
        return value

    def value(self) -> Any:
        """Reads one value with everything in it; open containers wait on a list instead of the call stack."""
        open_containers: list[list[Any] | dict[str, Any]] = []
        keys: list[str] = []
        while True:
            self.skip()
            container = self.opened()
            if container is not None:
                open_containers.append(container)
                self.skip()
                if not self.closes(container):
                    if isinstance(container, dict):
                        keys.append(self.key(container))
                    continue
                finished: Any = open_containers.pop()
            else:
                finished = self.scalar()
            while open_containers:
                container = open_containers[-1]
                if isinstance(container, dict):
                    container[keys.pop()] = finished
                else:
                    container.append(finished)
                if self.goes_on(container):
                    if isinstance(container, dict):
                        keys.append(self.key(container))
                    break
                finished = open_containers.pop()
            else:
                return finished

    def opened(self) -> list[Any] | dict[str, Any] | None:
        character = self.text[self.at : self.at + 1]
        if character not in ("{", "["):
            return None
        self.at += 1
        return {} if character == "{" else []

    def closes(self, container: list[Any] | dict[str, Any]) -> bool:
        if self.text[self.at : self.at + 1] != ("}" if isinstance(container, dict) else "]"):
            return False
        self.at += 1
        return True

    def goes_on(self, container: list[Any] | dict[str, Any]) -> bool:
        """After a member: True past a comma, False past the closing bracket."""
        self.skip()
        if self.closes(container):
            return False
        closing = "}" if isinstance(container, dict) else "]"
        if self.text[self.at : self.at + 1] != ",":
            raise self.bad(f'expected "," or "{closing}", found {self.shown()}', "Check commas and brackets.")
        comma = self.at
        self.at += 1
        self.skip()
        if self.text[self.at : self.at + 1] == closing:
            raise self.bad(f'there is a comma before "{closing}"', "Remove the comma.", comma)
        return True

    def key(self, container: dict[str, Any]) -> str:
        start = self.at
        if self.text[start : start + 1] != '"':
            raise self.bad(f"expected a key in double quotes, found {self.shown()}", 'Write keys as "name".')
        name = self.string()
        if name in container:
            line, column = self.place(start)
            self.repeated.append(RepeatedKey(name=name, line=line, column=column))
        self.skip()
        if self.text[self.at : self.at + 1] != ":":
            raise self.bad(f'expected ":" after the key "{name}", found {self.shown()}', 'Write "key": value.')
        self.at += 1
        # A placeholder, so that a repetition inside the value's own siblings is seen before the value is read.
        container.setdefault(name, None)
        return name

    def scalar(self) -> Any:
        if self.text[self.at : self.at + 1] == '"':
            return self.string()
        if self.text.startswith("-Infinity", self.at):
            self.at += len("-Infinity")
            return _CONSTANTS["-Infinity"]
        if (number := _NUMBER.match(self.text, self.at)) is not None:
            self.at = number.end()
            return self.number_from(number.group())
        if (word := _WORD.match(self.text, self.at)) is not None:
            if word.group() in _CONSTANTS:
                self.at = word.end()
                return _CONSTANTS[word.group()]
            alike = _SPELLED_ALIKE.get(word.group())
            hint = f"Write {alike}." if alike else "Texts need double quotes."
            raise self.bad(f"{word.group()} is not a JSON value", hint)
        raise self.bad(f"expected a value, found {self.shown()}", self.advice())

    def string(self) -> str:
        start = self.at
        try:
            text, self.at = _texts.raw_decode(self.text, start)
        except json.JSONDecodeError as error:
            position = error.pos
            if error.msg.startswith("Unterminated"):
                raise self.bad("this text has no closing quote", "Add the missing quote.", start) from None
            if error.msg.startswith("Invalid control character"):
                code = ord(self.text[position])
                raise self.bad(
                    f"the text contains the control character U+{code:04X}",
                    "Write line breaks as \\n and tabs as \\t.",
                    position,
                ) from None
            raise self.bad("the text contains an unknown escape", "Write a backslash as \\\\.", position) from None
        return str(text)

    def skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def shown(self) -> str:
        if self.at >= len(self.text):
            return "the end of the text"
        return f'"{self.text[self.at]}"'

    def advice(self) -> str:
        if self.text[self.at : self.at + 1] == "'":
            return "JSON texts need double quotes."
        return "Check for a missing value, quote or bracket."

    def bad(self, reason: str, hint: str, at: int | None = None) -> BadJSON:
        line, column = self.place(self.at if at is None else at)
        return BadJSON(reason, hint, line, column)

    def place(self, at: int) -> tuple[int, int]:
        before = self.text[:at]
        return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
