"""The environment of the process; a variable that cannot be read is named with what it must be."""

from __future__ import annotations

import zoneinfo
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

#: The databases that Waypost runs on, by the scheme of DATABASE_URL.
SCHEMES = ("postgres", "postgresql", "sqlite")


class Environment(environ.FileAwareEnv):  # type: ignore[misc]
    """Raises ``ImproperlyConfigured`` with the name of the variable."""

    def int(self, var: str, default: Any = environ.Env.NOTSET) -> int:
        try:
            number: int = super().int(var, default=default)
        except ValueError:
            raise ImproperlyConfigured(f'{var} must be a whole number, but it is "{self.str(var)}".') from None
        return number

    def database(self, var: str) -> dict[str, Any]:
        """A database address as Django's settings want it."""
        scheme = self.str(var).partition(":")[0]
        if scheme not in SCHEMES:
            # not the address itself: it may hold a password
            raise ImproperlyConfigured(
                f'{var} must begin with postgres:// or sqlite:///, but it begins with "{scheme[:20]}". '
                "Waypost runs on PostgreSQL and SQLite."
            )
        try:
            address: dict[str, Any] = self.db_url(var)
        except ValueError:
            raise ImproperlyConfigured(f"{var} is not a database address such as postgres://user@host/name.") from None
        return address

    def choice(self, var: str, allowed: tuple[str, ...], default: str) -> str:
        value: str = self.str(var, default=default)
        if value not in allowed:
            raise ImproperlyConfigured(f'{var} must be one of {", ".join(allowed)}, but it is "{value}".')
        return value

    def time_zone(self, var: str, default: str) -> str:
        value: str = self.str(var, default=default)
        try:
            zoneinfo.ZoneInfo(value)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ImproperlyConfigured(
                f'{var} must be a time zone such as Europe/Vienna, but it is "{value}".'
            ) from None
        return value
