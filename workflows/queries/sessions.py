"""Where a person is logged in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef
from django.utils import timezone

from workflows.models import LoginSession

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session. ``is_this``: the one that asks."""

    number: int
    began_at: datetime
    seen_at: datetime
    address: str
    browser: str
    is_this: bool


def sessions_of(user: AbstractUser | AnonymousUser, *, this_key: str | None = None) -> list[SessionRow]:
    """The sessions of a person that are not over, this one first, then the last seen ones. One query."""
    lives = Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=timezone.now())
    rows = LoginSession.objects.filter(Exists(lives), user_id=user.pk or 0).order_by("-seen_at")[:MOST_SHOWN]
    found = [
        SessionRow(
            number=row.pk,
            began_at=row.began_at,
            seen_at=row.seen_at,
            address=row.address,
            browser=row.browser,
            is_this=row.session_key == this_key,
        )
        for row in rows
    ]
    return sorted(found, key=lambda row: not row.is_this)
