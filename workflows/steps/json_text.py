"""JSON and its limits in what programs and servers send: strict reading, and texts that fit as step output."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

from workflows.jsonvalue import canonical


def json_size(value: Any) -> int:
    """Bytes of the canonical text of a value."""
    return len(canonical(value).encode())


def beginning(text: str, limit: int) -> str:
    """The longest beginning of ``text`` whose JSON text has at most ``limit`` bytes."""
    if json_size(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if json_size(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(members)
    if len(mapping) != len(members):
        [(twice, _)] = Counter(name for name, _ in members).most_common(1)
        raise ValueError(f'key "{twice}" appears twice')
    return mapping


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


#: Reads JSON text. Raises ``ValueError`` for what is not JSON, for NaN and infinities, and for a key written twice.
read_strictly = json.JSONDecoder(object_pairs_hook=_unique_members, parse_constant=_not_a_number).decode
