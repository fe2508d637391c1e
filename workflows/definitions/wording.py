"""Sentences about workflow files: values as written, kinds of values, lists of words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_LONGEST_SHOWN = 80


def shown(value: object) -> str:
    """A value as it may stand in a sentence: text in quotes, everything else as JSON, long ones cut."""
    if isinstance(value, str):
        return f'"{cut(value)}"'
    return cut(json.dumps(value, ensure_ascii=False))


def cut(text: str) -> str:
    """``text`` on one line, at most 80 characters."""
    line = " ".join(text.split()) if "\n" in text else text
    return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"


def quoted(words: Iterable[str], last: str = "and") -> str:
    """``"a"``, ``"a" and "b"``, ``"a", "b" and "c"``."""
    return joined([f'"{word}"' for word in words], last)


def joined(words: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def article(word: str) -> str:
    """``word`` with its indefinite article."""
    spoken_vowel = word[:1].lower() in "aeiou" or word in ("http", "llm")
    return f"{'an' if spoken_vowel else 'a'} {word}"


def what_it_is(value: object) -> str:
    """The kind of a value in plain words: ``text``, ``a whole number``, ``a list``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true/false"
        case str():
            return "text"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "a mapping"


def as_name(written: object) -> str:
    """The name that ``written`` could be: lower-case, ``_`` for everything else; "" when nothing is left of it."""
    plain = unicodedata.normalize("NFKD", str(written)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", plain.lower()).lstrip("_0123456789").rstrip("_")[:63].rstrip("_")


def name_hint(written: object, *, must_start: bool = False) -> str:
    """How a name has to be written, with a proposal when one can be made."""
    proposal = as_name(written) if isinstance(written, str) else ""
    rule = 'Use lower-case letters, digits and "_"'
    if must_start or not proposal:
        rule += ", starting with a letter"
    if isinstance(written, str) and len(written) > 63:
        rule += ", at most 63 characters"
    return f'{rule}: "{proposal}".' if proposal else f"{rule}."


def sentence(*parts: str) -> str:
    """The parts that are not empty, with a space between."""
    return " ".join(part for part in parts if part)


def flow(text: Any) -> str:
    """A YAML flow value for a hint: text that needs quotes gets them."""
    return (
        text
        if isinstance(text, str) and re.fullmatch(r"[A-Za-z_][\w./-]*", text)
        else json.dumps(text, ensure_ascii=False)
    )
