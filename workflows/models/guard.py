"""The guard of the ledger's tables: writes happen inside a ledger transaction or not at all (promise REV.3)."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from django.db import models

#: Set by ``ledger.transactions`` while one of its transactions is open in this thread.
writing: ContextVar[bool] = ContextVar("waypost_ledger_transaction", default=False)


class OutsideLedgerError(RuntimeError):
    """A programming error: a table of the ledger was written outside a ledger transaction."""


def require_ledger_transaction() -> None:
    if not writing.get():
        raise OutsideLedgerError("Tables of the ledger are written by ledger verbs only.")


class GuardedQuerySet(models.QuerySet[Any]):
    """Reads like any queryset; every way to write asks the guard first."""

    def update(self, **values: Any) -> int:
        require_ledger_transaction()
        return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        require_ledger_transaction()
        return super().delete()

    def create(self, **values: Any) -> Any:
        require_ledger_transaction()
        return super().create(**values)

    def bulk_create(self, objs: Iterable[Any], *positional: Any, **options: Any) -> list[Any]:  # type: ignore[override]
        require_ledger_transaction()
        return super().bulk_create(objs, *positional, **options)


class GuardedManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The manager of a table that has no swap of its own."""
