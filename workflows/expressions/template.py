"""Splitting text into literal parts and ``${ … }`` expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workflows.expressions.syntax import STRING

_OPEN = re.compile(r"\$?\$\{")
_INSIDE = re.compile(r"//[^\n}]*|[{}]|[\"']|[bBrR]{1,2}[\"']")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """Text as it is; ``$${`` is already ``${``."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """An expression; ``source`` is trimmed and begins at ``offset`` of the text, its ``${`` at ``opened_at``."""

    source: str
    offset: int
    opened_at: int


class NotClosed(ValueError):
    """``${`` at ``offset`` has no closing brace."""

    def __init__(self, offset: int) -> None:
        super().__init__("not closed")
        self.offset = offset


def split(text: str) -> tuple[Literal | Hole, ...]:
    """The parts of ``text`` in order; literal parts are never empty. Raises :class:`NotClosed`."""
    parts: list[Literal | Hole] = []
    literal: list[str] = []
    at = 0
    while (found := _OPEN.search(text, at)) is not None:
        literal.append(text[at : found.start()])
        if found.group() == "$${":
            literal.append("${")
            at = found.end()
            continue
        if joined := "".join(literal):
            parts.append(Literal(text=joined))
        literal = []
        closing = _closing_brace(text, found.end())
        if closing is None:
            raise NotClosed(found.start())
        inner = text[found.end() : closing]
        offset = found.end() + len(inner) - len(inner.lstrip())
        parts.append(Hole(source=inner.strip(), offset=offset, opened_at=found.start()))
        at = closing + 1
    if joined := "".join([*literal, text[at:]]):
        parts.append(Literal(text=joined))
    return tuple(parts)


def _closing_brace(text: str, start: int) -> int | None:
    """Where the expression that begins at ``start`` ends, braces of mappings and texts in quotes left aside.

    With a quote that is never closed the first brace counts, so that the missing quote is what gets reported.
    """
    depth, at = 0, start
    while (found := _INSIDE.search(text, at)) is not None:
        mark = found.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            if depth == 0:
                return found.start()
            depth -= 1
        elif mark[-1] in "\"'":
            quoted = STRING.match(text, found.start()) or STRING.match(text, found.end() - 1)
            if quoted is None:
                brace = text.find("}", start)
                return None if brace < 0 else brace
            at = quoted.end()
            continue
        at = found.end()
    return None
