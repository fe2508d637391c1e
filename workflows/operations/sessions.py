"""Sessions: where people are logged in, and ending them. Everybody ends their own; others' need a permission."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from workflows.ledger.login_sessions import end_sessions
from workflows.models import LoginSession
from workflows.operations.access import require
from workflows.operations.people import Actor

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser


def note_session(user: AbstractUser, *, key: str, began_at: datetime, address: str, browser: str) -> None:
    """Remember where a person is logged in, and that they were seen now. Nothing that anybody has to know of."""
    told = {"user": user, "seen_at": timezone.now(), "address": address[:45], "browser": browser[:80]}
    LoginSession.objects.update_or_create(
        session_key=key, defaults=told, create_defaults={**told, "began_at": began_at}
    )


def end(user: AbstractUser, sessions: Collection[int], *, actor: Actor) -> int:
    """End these sessions of a person; how many there were. Raises ``access.denied`` for those of somebody else."""
    if actor.user is None or actor.user.pk != user.pk:
        require(actor, "end_session")
    now = timezone.now()
    return end_sessions(user_id=user.pk, person=user.get_username(), sessions=sessions, actor=actor.recorded, now=now)


def end_all(user: AbstractUser, *, actor: Actor, but_key: str | None = None) -> int:
    """End every session of a person, except the one with this key. Raises ``access.denied``."""
    rows = LoginSession.objects.filter(user_id=user.pk)
    rows = rows.exclude(session_key=but_key) if but_key else rows
    return end(user, list(rows.values_list("pk", flat=True)), actor=actor)


def forget_ended(*, older_than: timedelta = timedelta(days=30)) -> int:
    """Drop what was kept of sessions that nobody has used for so long; how many."""
    return LoginSession.objects.filter(seen_at__lt=timezone.now() - older_than).delete()[0]
