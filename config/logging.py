"""Log records as lines for people or as JSON for machines, with the ids of what is being worked on (OBS 1–3).

A record of a driver or of a step carries ``run``, and ``visit`` and ``attempt`` where there is one; a record of a
request carries ``request``. Values of secrets are replaced by ``***``, whoever logs them.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from workflows.log_context import marks, masked

FORMATS = ("line", "json")
MASK = "***"
#: Shorter values would blot out ordinary text, and are easy to guess anyway.
SHORTEST_MASKED = 6
_SECRET_VARIABLES = ("SECRET_KEY", "METRICS_TOKEN")
_ADDRESSES = ("DATABASE_URL", "CELERY_BROKER_URL", "EMAIL_URL")
#: What every record has; the rest was given as ``extra``.
_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
#: Of extra values only plain ones are written: Django hands over whole requests.
_PLAIN = (str, int, float, bool)


def as_settings(form: str, level: str) -> dict[str, Any]:
    """Django's ``LOGGING``: everything goes to standard error, one record after the other."""
    name = "JsonLines" if form == "json" else "Lines"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"chosen": {"()": f"config.logging.{name}"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "chosen"}},
        "root": {"handlers": ["console"], "level": level},
        # at lower levels these write whole headers, secrets included
        "loggers": {name: {"level": "WARNING"} for name in ("httpcore", "httpx")},
    }


class Lines(logging.Formatter):
    """``2026-03-01 12:00:00,000 WARNING name [run 7 visit 12 attempt 1]: message``, the trace below it."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets = configured_secrets(os.environ)

    def format(self, record: logging.LogRecord) -> str:
        ids = " ".join(f"{name} {value}" for name, value in marks().items())
        where = f"{record.name} [{ids}]" if ids else record.name
        text = f"{self.formatTime(record)} {record.levelname} {where}: {record.getMessage()}"
        trace = trace_of(record)
        return cleaned(f"{text}\n{trace}" if trace else text, self._secrets)


class JsonLines(logging.Formatter):
    """One object on one line: ``at``, ``level``, ``logger``, ``message``, the ids, ``trace``, and what the record has
    of its own under ``extra``."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets = configured_secrets(os.environ)

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat("T", "milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "thread": record.threadName,
            **marks(),
            "message": record.getMessage(),
        }
        if trace := trace_of(record):
            document["trace"] = trace
        if extra := _extra(record):
            document["extra"] = extra
        clean = {key: _cleaned_value(value, self._secrets) for key, value in document.items()}
        # ASCII only, so that a half of a surrogate pair or a separator of lines can break no reader
        return json.dumps(clean)


def trace_of(record: logging.LogRecord) -> str:
    """The trace that a record has, without the values of local variables."""
    parts = []
    if record.exc_info and record.exc_info[0] is not None:
        parts.append("".join(traceback.format_exception(*record.exc_info)).rstrip())
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _ORDINARY and not name.startswith("_") and isinstance(value, _PLAIN)
    }


def _cleaned_value(value: Any, secrets: Iterable[str]) -> Any:
    if isinstance(value, str):
        return cleaned(value, secrets)
    if isinstance(value, dict):
        return {key: _cleaned_value(one, secrets) for key, one in value.items()}
    return value


def cleaned(text: str, secrets: Iterable[str]) -> str:
    """Without the secrets of the present work, and without those of the process."""
    text = masked(text)
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def configured_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The secret values that this process was started with, the longest first."""
    found = {_value(environment, name) for name in _SECRET_VARIABLES}
    found |= {value for name, value in environment.items() if name.startswith("WAYPOST_SECRET_")}
    for name in _ADDRESSES:
        found |= _passwords(_value(environment, name))
    return tuple(sorted((value for value in found if len(value) >= SHORTEST_MASKED), key=len, reverse=True))


def _value(environment: Mapping[str, str], name: str) -> str:
    """A variable, or the file that it is in. A file that cannot be read is for the settings to complain about."""
    if path := environment.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return ""
    return environment.get(name, "")


def _passwords(address: str) -> set[str]:
    """The password of an address as it is written there, and as it is meant."""
    try:
        password = urlsplit(address).password
    except ValueError:
        return set()
    return {password, unquote(password)} if password else set()
