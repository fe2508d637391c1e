"""The hot path: SQL text generated once from the models, on both databases.

This is the one module that holds SQL. ``fence``, ``updates`` and ``inserts`` turn a batch into statements; ``write``
runs them in the open transaction, ``own_transaction`` as a transaction of their own; ``join`` makes one statement of
them (PostgreSQL), whose data-modifying CTEs all hang on the fence. A test shows that each has exactly the effect of
``plain_path``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Field, Model

from workflows.clock import NOW_MS
from workflows.errors import Refusal
from workflows.facts import (
    AttemptRow,
    EventRow,
    FanoutRow,
    InterruptRow,
    PayloadRow,
    RunState,
    ScopeRow,
    VersionRow,
    VisitRow,
    column_names,
)
from workflows.ledger.batch import ATTEMPT_CHANGES, SCOPE_CHANGES, VISIT_CHANGES, Batch
from workflows.ledger.side_rows import has_side_rows, write_side_rows
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    Fanout,
    Interrupt,
    Lease,
    Payload,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Visit,
)

STATE_COLUMNS = column_names(RunState)
#: SQLite allows 32 766 parameters in a statement; far fewer rows than that go into one.
ROWS_PER_STATEMENT = 500
VISIT_NUMBER: tuple[str, ...] = ("run_id", "number")
VISIT_NUMBER_AND_ROUND = (*VISIT_NUMBER, "scope", "step", "round")
#: Rows that a PostgreSQL insert lists one by one: more texts in a sequence of statements, fewer in a joined one, where
#: the texts of all tables multiply.
MOST_LISTED = 8
MOST_LISTED_IN_JOINED = 3


@dataclass(frozen=True, slots=True)
class Statement:
    """``must_change``: how many rows it has to change, or the batch meets a settled attempt; ``attempt`` names it."""

    sql: str
    parameters: Sequence[Any]
    must_change: int = 0
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of an insert: how many rows its text lists (None: they come as arrays), and whether it hangs on the fence of
    the same statement."""

    listed: int | None
    hangs: bool


class Writer:
    """Statement texts and parameter conversion for one database vendor."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.vendor = connection.vendor
        self.mark = "?" if self.vendor == "sqlite" else "%s"
        self.now = NOW_MS[self.vendor]
        self.quote = connection.ops.quote_name
        # most moments of a batch are the same one
        self.adapt = lru_cache(maxsize=64)(connection.ops.adapt_datetimefield_value)
        self.type_of: Callable[[Field[Any, Any]], str] = lambda field: field.db_type(connection) or "text"

    @cache  # noqa: B019  # one writer per vendor lives as long as the process
    def reader(self, model: type[Model], names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
        """A function from a row to the parameters of ``names``; only moments need conversion."""
        get = attrgetter(*names) if len(names) > 1 else _single(names[0])
        moments = [i for i, name in enumerate(names) if isinstance(field_of(model, name), DateTimeField)]
        if not moments or self.vendor != "sqlite":
            return get

        def read(row: Any) -> tuple[Any, ...]:
            values = list(get(row))
            for i in moments:
                if values[i] is not None:
                    values[i] = self.adapt(values[i])
            return tuple(values)

        return read

    @cache  # noqa: B019
    def insert_text(self, model: type[Model], names: tuple[str, ...], rows: int, owned: bool, lenient: bool) -> str:
        table, columns = self.quote(model._meta.db_table), self.columns(model, names, owned)
        row = "(" + ", ".join([self.mark] * (len(names) + owned)) + ")"
        text = f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}"
        return text + " ON CONFLICT DO NOTHING" if lenient else text

    @cache  # noqa: B019
    def selecting_insert_text(
        self, model: type[Model], names: tuple[str, ...], shape: Shape, owned: bool, lenient: bool
    ) -> str:
        """PostgreSQL: an insert with few texts, however many rows there are, so that it stays prepared.

        Many rows come as one array per column, a few are listed. With ``shape.hangs``
        nothing is inserted unless the fence of the same statement let the transaction through.
        """
        table, columns = self.quote(model._meta.db_table), self.columns(model, names, owned)
        types = [self.bare_type_of(field_of(model, name)) for name in names]
        run = ["%s::bigint"] * owned
        if shape.listed is not None:
            values = ", ".join(run + [f"%s::{kind}" for kind in types])
            select = f"SELECT {values}" + (" FROM fence" if shape.hangs else "")
            text = f"INSERT INTO {table} ({columns}) {' UNION ALL '.join([select] * shape.listed)}"
        else:
            arrays = ", ".join(f"%s::{kind}[]" for kind in types)
            source = f"unnest({arrays}) AS given" + (", fence" if shape.hangs else "")
            text = f"INSERT INTO {table} ({columns}) SELECT {', '.join([*run, 'given.*'])} FROM {source}"
        return text + " ON CONFLICT DO NOTHING" if lenient else text

    def bare_type_of(self, field: Field[Any, Any]) -> str:
        """The type without its length: a cast to varchar(n) would cut a long text silently."""
        return self.type_of(field).partition("(")[0]

    def columns(self, model: type[Model], names: tuple[str, ...], owned: bool) -> str:
        listed = [self.quote(column_of(model, name)) for name in names]
        return ", ".join(["run_id"] * owned + listed)

    @cache  # noqa: B019
    def update_text(self, model: type[Model], names: tuple[str, ...], keys: tuple[str, ...]) -> str:
        table = self.quote(model._meta.db_table)
        changes = ", ".join(f"{self.quote(column_of(model, name))} = {self.mark}" for name in names)
        guard = " AND ".join(f"{self.quote(column_of(model, key))} = {self.mark}" for key in keys)
        return f"UPDATE {table} SET {changes} WHERE {guard}"

    @cache  # noqa: B019
    def fence_text(self, names: tuple[str, ...], counted: bool) -> str:
        run, lease = self.quote(Run._meta.db_table), self.quote(Lease._meta.db_table)
        changes = [f"{self.quote(column_of(Run, name))} = {self.mark}" for name in names]
        if counted:
            changes.append(f"controls_seen = controls_seen + {self.mark}")
        return (
            f"UPDATE {run} SET {', '.join(changes)} "
            f"WHERE id = {self.mark} AND lease_epoch = {self.mark} AND revision = {self.mark} "
            f"AND EXISTS (SELECT 1 FROM {lease} WHERE run_id = {self.mark} AND epoch = {self.mark} "
            f"AND expires_ms > {self.now})"
        )

    @cache  # noqa: B019
    def release_text(self) -> str:
        lease = self.quote(Lease._meta.db_table)
        return (
            f"UPDATE {lease} SET expires_ms = 0, owner = '', active_ms = active_ms + {self.now} - acquired_ms "
            f"WHERE run_id = {self.mark} AND epoch = {self.mark}"
        )

    @cache  # noqa: B019
    def active_text(self) -> str:
        run, lease = self.quote(Run._meta.db_table), self.quote(Lease._meta.db_table)
        return (
            f"UPDATE {run} SET active_ms = (SELECT active_ms FROM {lease} WHERE run_id = {self.mark}) "
            f"WHERE id = {self.mark}"
        )


def field_of(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def column_of(model: type[Model], name: str) -> str:
    column = field_of(model, name).column
    assert column is not None
    return column


def _single(name: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda row: (getattr(row, name),)


_writers: dict[str, Writer] = {}


def writer_for(connection: BaseDatabaseWrapper) -> Writer:
    writer = _writers.get(connection.vendor)
    if writer is None:
        writer = _writers[connection.vendor] = Writer(connection)
    return writer


def fence(writer: Writer, batch: Batch) -> Statement:
    """Lock, fence and number in one statement (docs/architecture.md)."""
    names: list[str] = ["revision", "next_event", "visits", "last_commit"]
    values: list[Any] = [batch.revision, batch.next_event, batch.visits, batch.commit_id]
    if batch.parks:
        names.append("wake_at_ms")
        values.append(batch.wake_at_ms)
    if batch.state is not None:
        names.extend(STATE_COLUMNS)
        values.extend(writer.reader(Run, STATE_COLUMNS)(batch.state))
    if batch.controls:
        values.append(len(batch.controls))
    values.extend([batch.run_id, batch.epoch, batch.expected, batch.run_id, batch.epoch])
    return Statement(writer.fence_text(tuple(names), bool(batch.controls)), values, must_change=1)


_INSERTS: tuple[tuple[str, type[Model], tuple[str, ...], bool, bool], ...] = (
    ("payloads", Payload, column_names(PayloadRow), False, True),
    ("visits_new", Visit, column_names(VisitRow), True, False),
    ("attempts_new", Attempt, column_names(AttemptRow), True, False),
    ("scopes_new", Scope, column_names(ScopeRow), True, False),
    ("variables_rows", ScopeVars, ("path", "values"), True, False),
    ("fanouts", Fanout, column_names(FanoutRow), True, False),
    ("interrupts_new", Interrupt, column_names(InterruptRow), True, False),
    ("events", Event, column_names(EventRow), True, False),
    ("versions", RowVersion, column_names(VersionRow), True, False),
)


def updates(writer: Writer, batch: Batch) -> Iterator[Statement]:
    run = batch.run_id
    for row in batch.attempts_settled:
        keys = ("run_id", "visit", "number", "epoch", "dispatch_id", "status")
        values = writer.reader(Attempt, ATTEMPT_CHANGES)(row)
        guard = (run, row.visit, row.number, batch.epoch, row.dispatch_id, "running")
        text = writer.update_text(Attempt, ATTEMPT_CHANGES, keys)
        yield Statement(text, (*values, *guard), must_change=1, attempt=f"v{row.visit}.{row.number}")
    for row in batch.attempts_closed:
        values = writer.reader(Attempt, ATTEMPT_CHANGES)(row)
        text = writer.update_text(Attempt, ATTEMPT_CHANGES, ("run_id", "visit", "number"))
        yield Statement(text, (*values, run, row.visit, row.number))
    for visit in batch.visits_changed:
        # The number alone names the visit. While the table is empty PostgreSQL may settle for the index on scope, step
        # and round, and would go through all visits of the run by it for as long as the plan is kept.
        named = VISIT_NUMBER if visit.round is None else VISIT_NUMBER_AND_ROUND
        guard = (run, *(getattr(visit, key) for key in named[1:]))
        text = writer.update_text(Visit, VISIT_CHANGES, named)
        yield Statement(text, (*writer.reader(Visit, VISIT_CHANGES)(visit), *guard))
    for scope in batch.scopes_changed:
        text = writer.update_text(Scope, SCOPE_CHANGES, ("run_id", "path"))
        yield Statement(text, (*writer.reader(Scope, SCOPE_CHANGES)(scope), run, scope.path))
    for path, variables in batch.variables.items():
        yield Statement(writer.update_text(ScopeVars, ("values",), ("run_id", "path")), (variables, run, path))
    for interrupt in batch.interrupts_closed:
        names = ("status", "revision_settled")
        text = writer.update_text(Interrupt, names, ("run_id", "visit", "status"))
        yield Statement(text, (interrupt.status, interrupt.revision_settled, run, interrupt.visit, "open"))
    for sequence in batch.controls:
        names = ("consumed_by", "consumed_at")
        moment = writer.adapt(batch.controls_at) if writer.vendor == "sqlite" else batch.controls_at
        text = writer.update_text(ControlMessage, names, ("run_id", "sequence"))
        yield Statement(text, ("driver", moment, run, sequence))


def inserts(writer: Writer, batch: Batch, *, hanging: bool = False) -> Iterator[Statement]:
    make = selecting_inserts if writer.vendor == "postgresql" else listing_inserts
    for attribute, model, names, owned, lenient in _INSERTS:
        if rows := getattr(batch, attribute):
            yield from make(writer, batch, rows, Target(model, names, owned, lenient), hanging)


@dataclass(frozen=True, slots=True)
class Target:
    """``owned``: its rows begin with the run. ``lenient``: a row that is there already is left as it is."""

    model: type[Model]
    names: tuple[str, ...]
    owned: bool
    lenient: bool


def listing_inserts(
    writer: Writer, batch: Batch, rows: Sequence[Any], into: Target, hanging: bool
) -> Iterator[Statement]:
    read = writer.reader(into.model, into.names)
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        part = rows[start : start + ROWS_PER_STATEMENT]
        parameters: list[Any] = []
        for row in part:
            if into.owned:
                parameters.append(batch.run_id)
            parameters.extend(read(row))
        yield Statement(writer.insert_text(into.model, into.names, len(part), into.owned, into.lenient), parameters)


def selecting_inserts(
    writer: Writer, batch: Batch, rows: Sequence[Any], into: Target, hanging: bool
) -> Iterator[Statement]:
    read = writer.reader(into.model, into.names)
    run = [batch.run_id] if into.owned else []
    parameters: list[Any] = []
    if len(rows) <= (MOST_LISTED_IN_JOINED if hanging else MOST_LISTED):
        shape = Shape(len(rows), hanging)
        for row in rows:
            parameters.extend(run)
            parameters.extend(read(row))
    else:
        shape = Shape(None, hanging)
        parameters.extend(run)
        parameters.extend(map(array_text, zip(*map(read, rows), strict=True)))
    yield Statement(writer.selecting_insert_text(into.model, into.names, shape, into.owned, into.lenient), parameters)


def write(connection: BaseDatabaseWrapper, batch: Batch) -> None:
    """Write a batch in the open transaction. Raises ``lease.lost``, ``run.conflict``, ``attempt.conflict``."""
    writer = writer_for(connection)
    # the driver's own cursor: Django's would rewrite the placeholders of every statement anew
    with connection.wrap_database_errors:
        cursor = connection.connection.cursor()
        try:
            first = fence(writer, batch)
            if cursor.execute(first.sql, first.parameters).rowcount != 1:
                raise Run.objects.why_fenced_off(run_id=batch.run_id, epoch=batch.epoch)
            for statement in updates(writer, batch):
                changed = cursor.execute(statement.sql, statement.parameters).rowcount
                if statement.must_change and changed != statement.must_change:
                    raise Refusal("attempt.conflict", run=batch.run_id, attempt=statement.attempt)
            for statement in (*inserts(writer, batch), *releases(writer, batch)):
                cursor.execute(statement.sql, statement.parameters)
        finally:
            cursor.close()
    if has_side_rows(batch):
        write_side_rows(batch)


def array_text(values: Sequence[Any]) -> str:
    """The values of a column as the text of a PostgreSQL array: its driver takes four times as long for a list.

    >>> array_text([1, None, True, 'say "x"'])
    '{1,NULL,t,"say \\\\"x\\\\""}'
    """
    return "{" + ",".join(map(_element_text, values)) + "}"


def _element_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value) if isinstance(value, int) else f'"{value.isoformat()}"'


def releases(writer: Writer, batch: Batch) -> Iterator[Statement]:
    """The end of the lease, and its active time copied to the run."""
    if batch.release:
        yield Statement(writer.release_text(), (batch.run_id, batch.epoch))
        yield Statement(writer.active_text(), (batch.run_id, batch.run_id))


def join(first: Statement, rest: Sequence[Statement]) -> str:
    parts = [f"fence AS ({first.sql} RETURNING id)"]
    for number, statement in enumerate(rest):
        sql = statement.sql
        if sql.startswith("UPDATE"):
            sql += " AND EXISTS (SELECT 1 FROM fence)"
        parts.append(f"part{number} AS ({sql})")
    return f"WITH {', '.join(parts)} SELECT count(*) FROM fence"
