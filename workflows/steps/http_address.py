"""The address of a request: what expressions may put where (docs/format.md, ``url``). Pure.

An expression gives text, never structure. In the host it may hold letters, digits, ``.`` and ``-``; after the host it
is percent-encoded, ``/`` kept; a path of which it makes a ``..`` segment is refused. An expression at the very start
gives scheme and host (a base address in a parameter) and, if any, a plain path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from workflows.engine.contract import Entry
from workflows.expressions import BadExpression, Value
from workflows.jsonvalue import NotStorable, text_of
from workflows.steps.entering import kind_of_value

ADDRESS_LIMIT = 32 * 1024
SHOWN_LIMIT = 500

#: Marks the place of an expression while an address is put together; no text of a workflow can hold it.
_HOLE = "\0"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@\\:\[\]]+)(?::(?P<port>[0-9]+))?"
_ADDRESS = re.compile(rf"https?://{_HOST}(?P<path>/[^?#]*)?(?:\?[^#]*)?(?:#.*)?", re.IGNORECASE)
_START = re.compile(rf"https?(?:://{_HOST}(?P<path>/[^?#%\\]*)?)?", re.IGNORECASE)
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_HOST_TEXT = re.compile(r"[A-Za-z0-9.-]+")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_HIGHEST_PORT = 65535


def written_address(entry: Entry, written: Value, query: Mapping[str, Any]) -> str:
    """The complete address of a request, without fragment. Raises :class:`BadExpression`."""
    address = _with_query(_rendered(entry, written), query)
    if len(address) > ADDRESS_LIMIT:
        raise BadExpression(f'"url" is {len(address):,} characters long; the limit is {ADDRESS_LIMIT:,}.')
    return address


def shown_address(address: str) -> str:
    """An address for logs and messages: its query, which may hold what nobody should read, is left out."""
    plain, mark, _ = address.partition("#")[0].partition("?")
    if len(plain) > SHOWN_LIMIT:
        return f"{plain[:SHOWN_LIMIT]}…"
    return f"{plain}?…" if mark else plain


def _rendered(entry: Entry, written: Value) -> str:
    pieces: list[str] = []

    def keep(text: str) -> str:
        pieces.append(text)
        return _HOLE

    rendered = entry.evaluate_escaped(written, keep)
    if not isinstance(rendered, str):
        raise BadExpression(f'"url" must be text, but it is {kind_of_value(rendered)}.')
    fixed = rendered.split(_HOLE)
    if len(fixed) != len(pieces) + 1:
        raise BadExpression('"url" contains the character U+0000.')
    address = fixed[0]
    for piece, after in zip(pieces, fixed[1:], strict=True):
        address += _encoded(address, piece) + after
    return _checked(address, computed=bool(pieces))


def _encoded(before: str, text: str) -> str:
    """The text of one expression as it stands in an address that begins with ``before``."""
    if not before:
        return _start(text)
    scheme = _SCHEME.match(before)
    if scheme is None:
        raise BadExpression(_no_address(before))
    if re.search("[/?#]", before[scheme.end() :]):
        return quote(text, safe="/")
    if not _HOST_TEXT.fullmatch(text):
        raise BadExpression(
            f'An expression in the host of "url" gives {kind_of_value(text)}; only letters, digits, "." and "-" '
            'are allowed there. Write the "/" that ends the host before the expression.'
        )
    return text


def _start(text: str) -> str:
    found = _START.fullmatch(text)
    if found is None:
        raise BadExpression(
            f'The expression at the start of "url" gives {kind_of_value(text)}; it must give http:// or https:// with '
            'a host and, if any, a path without "?", "#", "%" and "\\".'
        )
    path = found["path"] or ""
    return text[: len(text) - len(path)] + quote(path, safe="/")


def _checked(address: str, *, computed: bool) -> str:
    found = None if _CONTROL.search(address) else _ADDRESS.fullmatch(address)
    if found is None or int(found["port"] or 0) > _HIGHEST_PORT:
        raise BadExpression(_no_address(address))
    segments = unquote(found["path"] or "").split("/")
    if computed and (".." in segments or "." in segments):
        raise BadExpression(
            f'The path of "url" would contain a "." or ".." segment: {kind_of_value(shown_address(address))}. '
            "Expressions cannot leave the path that is written in the file."
        )
    return address.partition("#")[0]


def _no_address(text: str) -> str:
    return (
        '"url" must be an http or https address with a host and without a user name, such as '
        f"https://example.com/path, but it is {kind_of_value(shown_address(text))}."
    )


def _with_query(address: str, query: Mapping[str, Any]) -> str:
    pairs = []
    for name, value in query.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                pairs.append(f"{quote(name, safe='')}={quote(_query_text(name, item), safe='')}")
    if not pairs:
        return address
    joint = "?" if "?" not in address else "" if address.endswith(("?", "&")) else "&"
    return address + joint + "&".join(pairs)


def _query_text(name: str, value: Any) -> str:
    try:
        return text_of(value)
    except NotStorable as fault:
        raise BadExpression(f'The query parameter "{name}" has no text: {fault.message}') from None
