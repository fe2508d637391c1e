"""System checks: ``manage.py check``, and with ``--database default`` the state of the schema too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django.db
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import connections

from workflows.stores.files import wider_than_private
from workflows.stores.mounts import network_file_system
from workflows.stores.schema_state import SchemaState, schema_state

_Apps = Sequence[AppConfig] | None


@register(Tags.security)
def check_private_files(app_configs: _Apps, **kwargs: Any) -> list[CheckMessage]:
    """W001: a private file or directory that others may use."""
    var = Path(settings.WAYPOST_VAR)
    paths = [var, var / "secret_key", Path(settings.WORKSPACE_ROOT)]
    if settings.WAYPOST_USES_EMBEDDED_DATABASE:
        paths.append(Path(settings.WAYPOST_EMBEDDED_DATABASE))
    return [
        Warning(sentence, hint=f"Run `chmod go-rwx {path}`.", id="waypost.W001")
        for path in paths
        if (sentence := wider_than_private(path)) is not None
    ]


@register(Tags.security)
def check_secret_key_is_kept(app_configs: _Apps, **kwargs: Any) -> list[CheckMessage]:
    """W002: the secret key could not be stored, so sessions end with the process."""
    kept = Path(settings.WAYPOST_VAR) / "secret_key"
    if not settings.WAYPOST_MAKES_SECRET_KEY or kept.is_file():
        return []
    return [
        Warning(
            f"The secret key cannot be kept in {kept}; sign-ins end with the process.",
            hint="Make the directory writable, or set SECRET_KEY.",
            id="waypost.W002",
        )
    ]


@register(Tags.security, deploy=True)
def check_secret_key_is_shared(app_configs: _Apps, **kwargs: Any) -> list[CheckMessage]:
    """W003: hosts that share a PostgreSQL database need one secret key."""
    if not settings.WAYPOST_MAKES_SECRET_KEY or settings.WAYPOST_USES_EMBEDDED_DATABASE:
        return []
    return [
        Warning(
            "SECRET_KEY is not set; this host made one of its own.",
            hint="Set SECRET_KEY to the same value on every host.",
            id="waypost.W003",
        )
    ]


@register(Tags.compatibility)
def check_file_system(app_configs: _Apps, **kwargs: Any) -> list[CheckMessage]:
    """E001: an SQLite database on a network file system."""
    if settings.WAYPOST_ALLOW_NETWORK_DATABASE:
        return []
    found: list[CheckMessage] = []
    for alias in connections:
        connection = connections[alias]
        name = str(connection.settings_dict["NAME"])
        if connection.vendor != "sqlite" or ":memory:" in name:
            continue
        kind = network_file_system(Path(name))
        if kind is not None:
            found.append(
                Error(
                    f"The database {name} lies on a network file system ({kind}), where file locks are not reliable.",
                    hint="Move it to a local disk, use PostgreSQL, or set WAYPOST_ALLOW_NETWORK_DATABASE=1.",
                    id="waypost.E001",
                )
            )
    return found


@register(Tags.database)
def check_schema(app_configs: _Apps, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """E002 inconsistent, E003 unreadable, W004 newer, I001 old. An empty database is about to be made: no finding."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            report = schema_state(alias)
        except django.db.Error as error:
            found.append(Error(f"The database {alias} cannot be read: {error}", id="waypost.E003"))
            continue
        match report.state:
            case SchemaState.INCONSISTENT:
                refusal = report.as_refusal()
                found.append(Error(refusal.message, hint=refusal.hint, id="waypost.E002"))
            case SchemaState.NEWER:
                found.append(Warning(report.describe(), id="waypost.W004"))
            case SchemaState.OLD if not report.is_empty:
                found.append(Info(report.describe(), hint="Run `python manage.py migrate`.", id="waypost.I001"))
    return found
