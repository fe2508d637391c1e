"""Secrets: where their values come from, and how they are kept out of everything that is stored.

A value comes from ``settings.WAYPOST_SECRETS`` (a value, or a callable that gives it) or, for names that are not
there, from ``WAYPOST_SECRET_<NAME>`` in the worker's environment. It is read at each attempt and never kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from workflows.conf import conf

MASK = "***"
#: Shorter values are not masked: they would blot out ordinary text and still be easy to guess.
SHORTEST_MASKED = 4
#: A line of a multi-line secret (a private key) is masked by itself from this length on.
SHORTEST_MASKED_LINE = 8


class SecretMissing(Exception):
    """A declared secret has no usable value on this server; ``name`` says which, the message says what to do."""

    def __init__(self, name: str, reason: str = "has no value on this server") -> None:
        self.name = name
        super().__init__(f'Secret "{name}" {reason}. Set {variable_of(name)} for the workers.')


def variable_of(name: str) -> str:
    """The environment variable that holds the secret ``name``."""
    return f"WAYPOST_SECRET_{name.upper()}"


def read_secret(name: str) -> str:
    """The value of a secret, now. Raises :class:`SecretMissing`; the message never contains a value."""
    configured = conf().secrets
    if name not in configured:
        value: Any = os.environ.get(variable_of(name))
    else:
        value = configured[name]
        if callable(value):
            try:
                value = value()
            except Exception as error:
                # The text of the error is left out on purpose: it may quote what was being read.
                raise SecretMissing(name, f"could not be read ({type(error).__name__})") from None
    if value is None or value == "":
        raise SecretMissing(name)
    if not isinstance(value, str):
        raise SecretMissing(name, f"is not text but {type(value).__name__}")
    if "\0" in value:
        raise SecretMissing(name, "contains the character U+0000, which no process or header can hold")
    return value


def missing_secrets(names: Iterable[str]) -> list[str]:
    """Those of ``names`` that have no usable value here, in the order given."""
    missing = []
    for name in names:
        try:
            read_secret(name)
        except SecretMissing:
            missing.append(name)
    return missing


class Masker:
    """Replaces the values of secrets in texts and JSON values by ``***``."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        parts: set[str] = set()
        for value in values:
            if len(value) >= SHORTEST_MASKED:
                parts.add(value)
            parts.update(line for line in value.splitlines() if len(line) >= SHORTEST_MASKED_LINE)
        self._parts = sorted(parts, key=len, reverse=True)

    def text(self, text: str) -> str:
        for part in self._parts:
            text = text.replace(part, MASK)
        return text

    def value(self, value: Any) -> Any:
        """The same JSON value with every text in it masked, keys included."""
        if not self._parts:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value

    def cut_end(self, text: str) -> str:
        """``text``, which was cut at its end, without the beginning of a secret that the cut left there."""
        for part in self._parts:
            for length in range(min(len(part) - 1, len(text)), 0, -1):
                if text.endswith(part[:length]):
                    text = text[:-length] + MASK
                    break
        return text

    def cut_start(self, text: str) -> str:
        """``text``, which was cut at its start, without the end of a secret that the cut left there."""
        for part in self._parts:
            for length in range(min(len(part) - 1, len(text)), 0, -1):
                if text.startswith(part[-length:]):
                    text = MASK + text[length:]
                    break
        return text


class AttemptSecrets:
    """Reads the secrets of one attempt and remembers their values for as long as the attempt runs."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._values: dict[str, str] = {}

    def read(self, name: str) -> str:
        """The value of ``name``; the same one all through the attempt. Raises :class:`SecretMissing`."""
        if name not in self._values:
            self._values[name] = self._read(name)
        return self._values[name]

    def masker(self) -> Masker:
        return Masker(tuple(self._values.values()))
