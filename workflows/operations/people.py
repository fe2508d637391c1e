"""Who acts: a user of the site, or from a shell the operating system's user or somebody they name with ``--as``."""

from __future__ import annotations

import getpass
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import connection

from workflows.errors import Refusal

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """``name`` is whoever acts in the run's eyes (``run.started_by``); ``recorded`` is what events and audit keep.

    ``user`` is asked for permissions (``operations.access``); None is the operator's shell, which may do everything.
    """

    name: str
    recorded: str
    user: AbstractUser | AnonymousUser | None = field(default=None, repr=False, compare=False)


def user_actor(user: AbstractUser | AnonymousUser, *, through: str = "") -> Actor:
    """A logged-in user. ``through`` says by what they act if not in person: ``key ci`` is recorded beside the name."""
    name = user.get_username()
    return Actor(name=name, recorded=f"{name} ({through})" if through else name, user=user)


def shell_actor(person: str | None = None) -> Actor:
    """The actor of a command; ``person`` is the value of ``--as``.

    A person is an existing active user; on the embedded database a missing one is made, without a password. Raises
    ``user.not_found``.
    """
    shell = f"shell:{_system_user()}"
    if person is None:
        return Actor(name=shell, recorded=shell)
    _require_user(person)
    return Actor(name=person, recorded=f"{shell} as {person}")


def _require_user(name: str) -> None:
    users = get_user_model()._default_manager
    user = users.filter(username=name).first()
    if user is None and connection.vendor == "sqlite" and _is_username(name):
        user = users.create_user(username=name)
    if user is None:
        advice = f"`python manage.py createsuperuser --username {shlex.quote(name)}` makes one; see docs/people.md."
        raise Refusal("user.not_found", user=name, advice=advice if _is_username(name) else "")
    if not user.is_active:
        raise Refusal("user.not_found", user=name, advice="There is one of this name that was made inactive.")


def _is_username(name: str) -> bool:
    return 0 < len(name) <= 150 and name.isprintable() and not name.startswith("shell:") and name == name.strip()


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return "unknown"
