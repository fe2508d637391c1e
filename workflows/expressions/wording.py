"""The sentences about expressions that cannot be read."""

from __future__ import annotations

import re

from workflows.expressions.errors import TemplateProblem
from workflows.expressions.syntax import STRING

_HINT = "Check for a missing operand, quote or parenthesis."
_END = "unexpected end"


def not_closed(offset: int) -> TemplateProblem:
    """E402."""
    return TemplateProblem(
        "E402", 'The expression "${" is not closed.', 'Add the missing "}"; write `$${` for a literal "${".', offset
    )


def unreadable(source: str, errors: tuple[tuple[int, int, str], ...]) -> TemplateProblem:
    """E401 from the library's report: line and column (from 1, -1 unknown) and text of each error."""
    line, column, text = errors[0]
    if not source:
        return TemplateProblem("E401", 'The expression "" cannot be read: it is empty.', _HINT)
    if line < 1:
        return TemplateProblem(
            "E401", f'The expression "{_shown(source)}" cannot be read: {_placeless(text)}.', _too_deep_hint(text)
        )
    at = _position(source, line, column)
    reason, hint = _reason(source, at, text)
    return TemplateProblem(
        "E401", f'The expression "{_shown(source)}" cannot be read: {reason} at character {at + 1}.', hint, at
    )


def _reason(source: str, at: int, text: str) -> tuple[str, str]:
    if (found := re.search(r"token recognition error at: '(.*)'?$", text, re.DOTALL)) is not None:
        return _unknown_token(source, at)
    if (found := re.match(r"reserved identifier: (\w+)", text)) is not None:
        return f'"{found[1]}" is a reserved word', "Choose another name."
    if text.startswith("invalid "):
        return f"{_token(source, at)} is not a number CEL can hold", "Whole numbers have 64 bits."
    if "variable name must be a simple identifier" in text:
        return "expected the name of a variable", "Write e.g. `list.map(x, x + 1)`."
    if at >= len(source):
        return _END, _HINT
    return f"unexpected {_token(source, at)}", _word_hint(source, at)


def _unknown_token(source: str, at: int) -> tuple[str, str]:
    character = source[at : at + 1]
    if not character:
        return _END, _HINT
    if character in "\"'":
        if STRING.match(source, at) is None:
            return "quote that is not closed", _HINT
        return "unknown escape in the text", "Write a backslash as `\\\\`."
    if character == "=":
        return 'unexpected "="', 'Compare with "==".'
    if character in "&|":
        return f'unexpected "{character}"', f'Write "{character * 2}" for "{"and" if character == "&" else "or"}".'
    return f'unexpected "{character}"', _HINT


def _word_hint(source: str, at: int) -> str:
    words = {"and": "&&", "or": "||", "not": "!", "is": "==", "if": "condition ? a : b", "else": "condition ? a : b"}
    found = re.match(r"[A-Za-z_]+", source[at:])
    return f"Write `{words[found[0]]}`." if found is not None and found[0] in words else _HINT


def _token(source: str, at: int) -> str:
    found = re.match(r"[\w.]+|\S", source[at:])
    return f'"{found[0] if found else source[at : at + 1]}"'


def _placeless(text: str) -> str:
    return "it is nested too deeply" if "recursion" in text else text


def _too_deep_hint(text: str) -> str:
    return "Split it into variables or steps." if "recursion" in text else _HINT


def _position(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    before = sum(len(each) + 1 for each in lines[: line - 1])
    return min(before + column - 1, len(source))


def _shown(source: str) -> str:
    return source if len(source) <= 200 else f"{source[:200]}…"
