"""The environment of the process; a variable that cannot be read is named with what it must be."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any
from urllib.parse import urlsplit

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

    def mail_server(self, var: str, default: str) -> dict[str, Any]:
        """The address of a mail server as Django's settings want it."""
        try:
            server: dict[str, Any] = self.email_url(var, default=default)
        except (KeyError, ValueError, ImproperlyConfigured):
            # not the address itself: it may hold a password
            raise ImproperlyConfigured(
                f"{var} is not the address of a mail server such as smtp+tls://user:password@host:587."
            ) from None
        return {name: value for name, value in server.items() if name.startswith("EMAIL_")}

    def web_address(self, var: str, default: str) -> str:
        """The beginning of http or https addresses, without a slash at its end."""
        value: str = self.str(var, default=default).rstrip("/")
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
            usable = usable and parts.username is None and value.isprintable() and " " not in value
        except ValueError:
            usable = False
        if not usable:
            raise ImproperlyConfigured(
                f'{var} must be an address such as https://waypost.example.com, but it is "{value}".'
            )
        return value

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

    def name(self, var: str, default: str = "") -> str:
        """A short word of letters, digits, - and _."""
        value: str = self.str(var, default=default)
        if not re.fullmatch(r"[A-Za-z0-9_-]{0,63}", value):
            raise ImproperlyConfigured(f'{var} must be letters, digits, "-" and "_", but it is "{value[:63]}".')
        return value
