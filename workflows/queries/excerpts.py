"""Beginnings of stored values: a page never loads a value of many megabytes to show its first lines (WEB.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Substr

from workflows.errors import Refusal
from workflows.jsonvalue import decode
from workflows.models import Payload

#: Characters of a value that a page shows; a longer one is cut, and its text is not indented.
MOST_SHOWN = 20_000
_BROKEN_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """``text`` as people read it: the text of a text, indented JSON of anything else. ``size`` counts the bytes of the
    whole as it is stored."""

    text: str
    size: int
    is_text: bool = False
    is_cut: bool = False


NOTHING = Excerpt(text="null", size=4)


def excerpts(digests: Iterable[str | None], *, limit: int = MOST_SHOWN) -> Mapping[str | None, Excerpt]:
    """The beginnings of payloads by digest; None is the value null. One query."""
    wanted = sorted({digest for digest in digests if digest})
    found: dict[str | None, Excerpt] = {None: NOTHING}
    if wanted:
        rows = Payload.objects.filter(digest__in=wanted).annotate(head=Substr("text", 1, limit + 1))
        for digest, head, size in rows.values_list("digest", "head", "size"):
            found[digest] = excerpt(head, size, limit=limit)
    return found


def excerpt(head: str, size: int, *, limit: int) -> Excerpt:
    """What is shown of a value whose canonical text begins with ``head``.

    >>> excerpt('"a line\\\\nanother"', 17, limit=100).text
    'a line\\nanother'
    >>> excerpt('"abcdef', 900, limit=4)
    Excerpt(text='abc', size=900, is_text=True, is_cut=True)
    """
    is_cut = len(head) > limit
    is_text = head.startswith('"')
    if not is_cut:
        value = decode(head)
        text = value if is_text else json.dumps(value, ensure_ascii=False, indent=2)
        return Excerpt(text=text[: limit * 2], size=size, is_text=is_text, is_cut=len(text) > limit * 2)
    beginning = head[:limit]
    if is_text:
        beginning = json.loads(_BROKEN_ESCAPE.sub(r"\1", beginning) + '"', strict=False)
    return Excerpt(text=beginning, size=size, is_text=is_text, is_cut=True)


def whole_value(run_id: int, digest: str | None) -> tuple[str, bool]:
    """A whole value for a download: its text, and whether it is a text and not JSON. Raises ``visit.not_found``."""
    if digest is None:
        return "null", False
    text = Payload.objects.filter(digest=digest).values_list("text", flat=True).first()
    if text is None:
        raise Refusal("visit.not_found", run=run_id, what="such value")
    value: Any = decode(text) if text.startswith('"') else None
    return (value, True) if isinstance(value, str) else (text, False)
