"""Plain words for what the YAML parser says."""

from __future__ import annotations

from typing import Any

import yaml

_INDENTATION = 'Check the indentation and the quotes near this line; a value that contains ": " or " #" needs quotes.'
_TAB = "Indent with spaces; YAML does not allow tabs there."

#: libyaml's words on the left. Those that are not here are plain enough.
_PLAIN = {
    "mapping values are not allowed in this context": "mapping values are not allowed here",
    "block sequence entries are not allowed in this context": "list items are not allowed here",
    "block collections are not allowed in this context": "a list or mapping is not allowed here",
    "could not find expected ':'": 'a key without ":"',
    "did not find expected key": "a key was expected here",
    "did not find expected '-' indicator": 'a list item ("- ") was expected here',
    "did not find expected ',' or ']'": 'expected "," or "]"',
    "did not find expected ',' or '}'": 'expected "," or "}"',
    "did not find expected node content": "a value was expected here",
    "did not find expected <document start>": "the end of the file was expected here",
    "found unexpected end of stream": "a quote is not closed",
    "found unexpected document indicator": "a quote is not closed",
    "found unknown escape character": "an unknown escape after a backslash",
    "did not find expected hexdecimal number": "an escape after a backslash that is not hexadecimal",
    "found invalid Unicode character escape code": "an escape after a backslash that is no character",
    "did not find expected alphabetic or numeric character": 'a value cannot begin with "*" or "&"',
    "found a tab character where an indentation space is expected": "a tab was used for indentation",
    "found a tab character that violates indentation": "a tab was used for indentation",
}


def plain(problem: str, character: str) -> str:
    """The parser's problem in plain words. ``character`` is the one it stopped at."""
    if problem == "found character that cannot start any token":
        return "a tab was used for indentation" if character == "\t" else f'a value cannot begin with "{character}"'
    return _PLAIN.get(problem, problem.rstrip(".") or "it cannot be parsed")


def hint(character: str) -> str:
    return _TAB if character == "\t" else _INDENTATION


def what_it_is(value: Any, *, empty: bool) -> str:
    """What a file holds instead of a mapping."""
    if empty:
        return "empty"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, (int, float)) else "text"


def collection(event: Any) -> str:
    return "a list" if isinstance(event, yaml.SequenceStartEvent) else "a mapping"


def wrong_key(value: Any) -> tuple[str, str]:
    """The word for a key that is not text, and the hint."""
    if isinstance(value, bool):
        return "boolean", "Conditions route with `then` and `else`. Quote the key if you mean the word."
    word = "null" if value is None else "number"
    return word, "Quote the key if you mean the word."
