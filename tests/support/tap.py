"""A tap on the database driver's connection: sees every statement, can count, stop, or fail one of them.

It sits below Django and below the hot path, so it sees what is sent, whoever sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

OnStatement = Callable[[str], None]


class Injected(Exception):
    """The failure that a test put in."""


class _Cursor:
    def __init__(self, real: Any, on_statement: OnStatement) -> None:
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_on_statement", on_statement)

    def execute(self, sql: Any, *words: Any, **options: Any) -> Any:
        self._on_statement(str(sql))
        self._real.execute(sql, *words, **options)
        return self

    def executemany(self, sql: Any, *words: Any, **options: Any) -> Any:
        self._on_statement(str(sql))
        self._real.executemany(sql, *words, **options)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._real)

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self._real.close()


class _Connection:
    def __init__(self, real: Any, on_statement: OnStatement, on_commit: Callable[[], None] | None) -> None:
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_on_statement", on_statement)
        object.__setattr__(self, "_on_commit", on_commit)

    def commit(self) -> None:
        if self._on_commit is not None:
            self._on_commit()
        self._real.commit()

    def cursor(self, *words: Any, **options: Any) -> Any:
        return _Cursor(self._real.cursor(*words, **options), self._on_statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


@contextmanager
def tap(on_statement: OnStatement, *, on_commit: Callable[[], None] | None = None) -> Iterator[None]:
    """Call ``on_statement`` with the text of every statement that this thread's connection is about to send.

    ``on_commit`` is called before a COMMIT and must not raise: Django would think that the transaction goes on.
    """
    connection.ensure_connection()
    real = connection.connection
    tapped = connection.connection = _Connection(real, on_statement, on_commit)
    try:
        yield
    finally:
        # a verb that lost its connection has another one now, which nobody taps
        if connection.connection is tapped:
            connection.connection = real


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that this thread's connection sends."""
    seen: list[str] = []
    with tap(seen.append):
        yield seen


@contextmanager
def failing_at(number: int) -> Iterator[list[str]]:
    """Fail the statement with this number, counted from 1, instead of sending it."""
    seen: list[str] = []

    def count(sql: str) -> None:
        seen.append(sql)
        if len(seen) == number:
            raise Injected(sql)

    with tap(count):
        yield seen
