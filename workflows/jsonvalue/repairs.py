"""Repair of what a step gave: NUL and half surrogates become U+FFFD, in texts and in keys."""

from __future__ import annotations

from typing import Any

from workflows.jsonvalue.faults import BROKEN_CHARACTER, MAX_LEVELS

REPLACEMENT = "\ufffd"


def clean_text(text: str | bytes) -> tuple[str, bool]:
    """Text that can be stored, and whether something was replaced. Bytes are read as UTF-8."""
    if isinstance(text, bytes):
        try:
            return clean_text(text.decode())
        except UnicodeDecodeError:
            return clean_text(text.decode(errors="replace"))[0], True
    if text.isascii() and "\0" not in text:
        return text, False
    cleaned, count = BROKEN_CHARACTER.subn(REPLACEMENT, text)
    return cleaned, count > 0


def repair(value: Any) -> tuple[Any, bool]:
    """``value`` with clean texts and keys, and whether anything was replaced; the same object if nothing was.

    Of two keys that become equal the last one is kept. What is nested too deeply to be stored is left as it is.
    """
    repaired = _repaired(value, 0)
    return repaired, repaired is not value


def _repaired(value: Any, level: int) -> Any:
    if isinstance(value, str):
        cleaned, replaced = clean_text(value)
        return cleaned if replaced else value
    if level >= MAX_LEVELS:
        return value
    if isinstance(value, dict):
        return _repaired_mapping(value, level + 1)
    if isinstance(value, list):
        items = [_repaired(item, level + 1) for item in value]
        changed = any(new is not old for new, old in zip(items, value, strict=True))
        return items if changed else value
    return value


def _repaired_mapping(members: dict[Any, Any], level: int) -> dict[Any, Any]:
    changed = False
    repaired: dict[Any, Any] = {}
    for key, member in members.items():
        new_key, new_member = _repaired(key, level) if isinstance(key, str) else key, _repaired(member, level)
        changed = changed or new_key is not key or new_member is not member
        repaired[new_key] = new_member
    return repaired if changed else members
