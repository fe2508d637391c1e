"""Keys of programs as lists show them; the keys themselves are nowhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.models import ApiKey

MOST_LISTED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """``state`` is *good*, *expired*, *revoked*, or *off*: its owner is inactive."""

    id: str
    name: str
    owner: str
    scopes: Sequence[str]
    state: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


def key_list(*, now: datetime, owner: str | None = None) -> list[KeyRow]:
    """The newest first, of one owner or of all. One query."""
    rows = ApiKey.objects.select_related("owner").order_by("-pk")
    if owner is not None:
        rows = rows.filter(owner__username=owner)
    return [_row(key, now) for key in rows[:MOST_LISTED]]


def _row(key: ApiKey, now: datetime) -> KeyRow:
    return KeyRow(
        id=key.public_id,
        name=key.name,
        owner=key.owner.get_username(),
        scopes=tuple(json.loads(key.scopes)),
        state=state_of(key, now),
        created_at=key.created_at,
        expires_at=key.expires_at,
        last_used_at=key.last_used_at,
        revoked_at=key.revoked_at,
    )


def state_of(key: ApiKey, now: datetime) -> str:
    """In one word, whether a key can be used."""
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "expired"
    return "good" if key.owner.is_active else "off"
