"""The rows of one run, read once for its inspection; a row that cannot be read is a finding, not an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

import django.db
from django.db import connections, models
from django.db.models import Model, QuerySet

from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    ExternalOffer,
    Fanout,
    Interrupt,
    Lease,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Slot,
    Visit,
    Vote,
)
from workflows.stores.failures import StoreFailureKind, classify

#: Columns that hold JSON; "" says that there is nothing.
JSON_COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Run: ("reasons", "held", "closing", "error", "frozen", "fork_request", "audit_hold"),
    Visit: ("error", "retries"),
    Attempt: ("error", "marks", "authorization"),
    Scope: ("error",),
    ScopeVars: ("values",),
    ControlMessage: ("payload",),
    Interrupt: ("form", "choices", "audience", "not_by", "answer"),
    Vote: ("answer",),
    ExternalOffer: ("error",),
}
#: What reading a damaged row, or comparing it with others, may raise. Everything else is no matter of rows.
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, django.db.Error)
#: Events and versions are read in a stream, a few at a time.
STREAMED_AT_ONCE = 500


class RunRows:
    """All rows of a run but its events, versions and payloads, which are many and are streamed.

    ``unreadable`` names what could not be read; the rows it is about are left out of the lists. Raises
    ``Run.DoesNotExist``.
    """

    def __init__(self, run_id: int) -> None:
        self.unreadable: list[str] = []
        found = self._read(Run.objects.filter(pk=run_id))
        if not found and not self.unreadable:
            raise Run.DoesNotExist(f"There is no run {run_id}.")
        if not found:
            return
        self.run: Run = found[0]
        self.lease: Lease | None = next(iter(self._read(Lease.objects.filter(run_id=run_id))), None)
        self.scopes: list[Scope] = self._rows(Scope, "path")
        self.variables: list[ScopeVars] = self._rows(ScopeVars, "path")
        self.visits: list[Visit] = self._rows(Visit, "number")
        self.attempts: list[Attempt] = self._rows(Attempt, "visit", "number")
        self.fanouts: list[Fanout] = self._rows(Fanout, "visit")
        self.questions: list[Interrupt] = self._rows(Interrupt, "visit", "attempt")
        self.votes: list[Vote] = self._rows(Vote, "visit", "attempt", "id")
        self.offers: list[ExternalOffer] = self._rows(ExternalOffer, "visit", "attempt", "number")
        self.controls: list[ControlMessage] = self._rows(ControlMessage, "sequence")
        self.slots: list[Slot] = self._rows(Slot, "id")
        self.visit_by_number = {visit.number: visit for visit in self.visits}
        self.scope_by_path = {scope.path: scope for scope in self.scopes}
        self.attempt_by_place = {(attempt.visit, attempt.number): attempt for attempt in self.attempts}

    def events(self) -> Iterator[Event]:
        """The events in order, a few at a time."""
        yield from self._stream(Event.objects.filter(run=self.run).order_by("sequence"))

    def versions(self) -> Iterator[RowVersion]:
        """The versions in order, a few at a time."""
        yield from self._stream(RowVersion.objects.filter(run=self.run).order_by("revision", "id"))

    def _rows(self, model: type[Model], *order: str) -> list[Any]:
        return self._read(model._default_manager.filter(run=self.run).order_by(*order))

    def _read(self, rows: QuerySet[Any]) -> list[Any]:
        try:
            found = list(rows)
        except DAMAGE as error:
            pass_on_store_failures(error)
            found = list(self._one_by_one(rows))
        return [row for row in found if self._is_readable(row)]

    def _one_by_one(self, rows: QuerySet[Any]) -> Iterator[Any]:
        for key in list(rows.order_by().values_list("pk", flat=True)):
            try:
                yield rows.model._default_manager.get(pk=key)
            except DAMAGE as error:
                pass_on_store_failures(error)
                self.unreadable.append(f"{_table(rows.model)} row {key} cannot be read: {_broken_column(rows, key)}")

    def _is_readable(self, row: Model) -> bool:
        problems = [*_wrong_types(row), *_wrong_json(row)]
        self.unreadable += (f"{_table(type(row))} row {row.pk}: {problem}" for problem in problems)
        return not problems

    def _stream(self, rows: QuerySet[Any]) -> Iterator[Any]:
        for row in rows.iterator(chunk_size=STREAMED_AT_ONCE):
            problems = list(_wrong_types(row))
            if problems:
                raise ValueError(f"{_table(type(row))} row {row.pk}: {problems[0]}")
            yield row


def pass_on_store_failures(error: BaseException) -> None:
    """Raise an error that is about the database and not about what stands in it."""
    if isinstance(error, django.db.Error) and classify(error).kind is not StoreFailureKind.OTHER:
        raise error


def _table(model: type[Model]) -> str:
    return str(model._meta.model_name)


def _broken_column(rows: QuerySet[Any], key: Any) -> str:
    """The first column of a row that cannot be read."""
    for field in rows.model._meta.concrete_fields:
        try:
            list(rows.model._default_manager.filter(pk=key).values_list(field.attname, flat=True))
        except DAMAGE as error:
            pass_on_store_failures(error)
            return f"{field.attname} is not what belongs there"
    return "it changed"


@cache
def _types_of(model: type[Model]) -> tuple[tuple[str, type, bool], ...]:
    kinds: tuple[tuple[type[models.Field[Any, Any]], type], ...] = (
        (models.BooleanField, bool),
        (models.IntegerField, int),
        (models.ForeignKey, int),
        (models.DateTimeField, datetime),
        (models.CharField, str),
        (models.TextField, str),
    )
    return tuple(
        (field.attname, next((wanted for kind, wanted in kinds if isinstance(field, kind)), object), field.null)
        for field in model._meta.concrete_fields
    )


def _wrong_types(row: Model) -> Iterator[str]:
    """SQLite stores any value in any column; PostgreSQL does not."""
    if connections[row._state.db or "default"].vendor != "sqlite":
        return
    for name, wanted, may_be_null in _types_of(type(row)):
        value = getattr(row, name)
        if value is None and not may_be_null:
            yield f"{name} is missing, or cannot be read"
        elif value is not None and type(value) is not wanted and not isinstance(value, wanted):
            yield f"{name} is {str(value)[:80]!r}, which is not of its type"


def _wrong_json(row: Model) -> Iterator[str]:
    for name in JSON_COLUMNS.get(type(row), ()):
        text = getattr(row, name)
        try:
            if text:
                json.loads(text)
        except (ValueError, RecursionError):
            yield f"{name} is not JSON: {text[:80]!r}"


def dense(numbers: list[int], what: str) -> Iterator[str]:
    """Numbers of one kind go from 1 to their count, each once."""
    found = sorted(numbers)
    if found == list(range(1, len(found) + 1)):
        return
    if len(found) <= 20:
        yield f"{what} are numbered {found} instead of 1 to {len(found)}"
        return
    missing = sorted(set(range(1, found[-1] + 1)) - set(found))
    doubled = len(found) - len(set(found))
    yield f"{what} are not numbered from 1 on: {len(missing)} are missing ({few(missing)}), {doubled} are double"


def few(numbers: list[int]) -> str:
    """The first numbers of a list as text."""
    return ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
