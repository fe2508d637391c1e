"""Paths of values as people read them: ``payload.list[0]``, ``payload["odd key"]``."""

from __future__ import annotations

import json
import re

_PLAIN_KEY = re.compile(r"[\w-]+", re.ASCII)


def member_path(path: str, key: str) -> str:
    """The path of a mapping's member; keys that are not plain words are quoted."""
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key)}]"


def item_path(path: str, index: int) -> str:
    """The path of a list's item."""
    return f"{path}[{index}]"
