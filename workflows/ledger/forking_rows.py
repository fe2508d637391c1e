"""The rows of a cut, copied into a fork under their own numbers and marked as inherited (promise FORK.2).

What has not changed since the cut is copied by INSERT … SELECT. The few rows that have are made as they were: visits
and attempts that were open then, scopes that were alive, and what was reopened later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import BooleanField, Exists, F, IntegerField, Model, OuterRef, Q, QuerySet, Value

from workflows.ledger.past import Past, Row, moment_of, tries
from workflows.models import (
    Attempt,
    Event,
    ExternalOffer,
    Fanout,
    Interrupt,
    RowVersion,
    Run,
    Scope,
    ScopeVars,
    Visit,
    Vote,
)
from workflows.models.guard import require_ledger_transaction
from workflows.statuses import OfferStatus, VisitStatus

_MOMENTS = frozenset({"started_at", "ended_at"})


def copy_cut(origin_id: int, revision: int, fork: Run, retries: Mapping[int, str]) -> Past:
    """Copy everything of a run up to ``revision`` into ``fork``, in the open transaction. Returns the cut.

    ``retries`` are the tallies of retries that open visits had, by number. Not copied: lease, messages, places, open
    questions with what was said to them, and of external work all but what is finished.
    """
    changed = _changed_since(origin_id, revision)
    past = Past(origin_id, revision, wanted=lambda table, key: table == "run" or key in changed.get(table, ()))
    _copy(RowVersion, fork, revision__lte=revision, run_id=origin_id)
    _copy(Event, fork, revision__lte=revision, run_id=origin_id)
    _copy(Fanout, fork, revision_created__lte=revision, run_id=origin_id)
    _copy(Interrupt, fork, revision_settled__lte=revision, run_id=origin_id)
    _copy(ExternalOffer, fork, revision_settled__lte=revision, status=OfferStatus.FINISHED, run_id=origin_id)
    _copy_votes(origin_id, revision, fork)
    _copy_scopes(origin_id, revision, fork, past, changed["scope"], changed["scopevars"])
    _copy_visits(fork, past, changed["visit"], changed["attempt"], retries)
    return past


def _changed_since(run_id: int, revision: int) -> dict[str, set[str]]:
    """The rows of the cut that a later revision has changed, by table: their keys in history."""
    changed: dict[str, set[str]] = {name: set() for name in ("run", "scope", "scopevars", "visit", "attempt")}
    later = RowVersion.objects.filter(run_id=run_id, revision__gt=revision)
    for table, key in later.values_list("table", "key").distinct().order_by():
        changed[table].add(key)
    unsettled = {"run_id": run_id, "revision_created__lte": revision}
    is_open = Q(revision_settled__gt=revision) | Q(revision_settled=None)
    visits = Visit.objects.filter(is_open, **unsettled).values_list("number", flat=True)
    attempts = Attempt.objects.filter(is_open, **unsettled).values_list("visit", "number")
    changed["visit"] |= {str(number) for number in visits}
    changed["attempt"] |= {f"{visit}.{number}" for visit, number in attempts}
    paths = set(Scope.objects.filter(**unsettled).values_list("path", flat=True))
    changed["scope"] &= paths
    changed["scopevars"] &= paths
    return changed


def _copy_votes(origin_id: int, revision: int, fork: Run) -> None:
    question = Interrupt.objects.filter(
        run_id=OuterRef("run_id"),
        visit=OuterRef("visit"),
        attempt=OuterRef("attempt"),
        revision_settled__lte=revision,
    )
    votes = Vote.objects.filter(Exists(question), run_id=origin_id, revision_created__lte=revision)
    insert_copies(votes.order_by("pk"), fork)


def _copy_scopes(origin_id: int, revision: int, fork: Run, past: Past, scopes: set[str], variables: set[str]) -> None:
    there = Scope.objects.filter(run_id=origin_id, revision_created__lte=revision)
    insert_copies(there.exclude(path__in=scopes).order_by("pk"), fork)
    order = there.filter(path__in=scopes).order_by("pk").values_list("path", flat=True)
    Scope.objects.bulk_create(Scope(run=fork, **{**past.rows("scope")[path], "inherited": True}) for path in order)
    own = ScopeVars.objects.filter(Exists(there.filter(path=OuterRef("path"))), run_id=origin_id)
    insert_copies(own.exclude(path__in=variables).order_by("pk"), fork)
    ScopeVars.objects.bulk_create(
        ScopeVars(run=fork, path=path, **past.rows("scopevars")[path])
        for path in own.filter(path__in=variables).order_by("pk").values_list("path", flat=True)
        if path in past.rows("scopevars")
    )


def _copy_visits(fork: Run, past: Past, visits: set[str], attempts: set[str], retries: Mapping[int, str]) -> None:
    there = {"run_id": past.run_id, "revision_created__lte": past.revision}
    numbers = {int(key) for key in visits} | {int(key.partition(".")[0]) for key in attempts}
    rows = past.visits(_columns(Visit), number__in=numbers)
    kinds = {row["number"]: row["kind"] for row in rows}
    tried: dict[int, list[Row]] = {number: [] for number in kinds}
    for attempt in past.attempts(_columns(Attempt), kinds, visit__in=kinds):
        tried[attempt["visit"]].append(attempt)
    for row in rows:
        if str(row["number"]) in visits and tried[row["number"]]:
            row["attempts"] = tries(tried[row["number"]])
        if row["status"] == VisitStatus.OPEN:
            row["retries"] = retries.get(row["number"], "")
    insert_copies(Visit.objects.filter(**there).exclude(number__in=kinds).order_by("pk"), fork)
    insert_copies(Attempt.objects.filter(**there).exclude(visit__in=kinds).order_by("pk"), fork)
    Visit.objects.bulk_create(_made(Visit, fork, row) for row in rows)
    Attempt.objects.bulk_create(_made(Attempt, fork, row) for rows in tried.values() for row in rows)


def _columns(model: type[Model]) -> tuple[str, ...]:
    return tuple(f.attname for f in model._meta.concrete_fields if f.attname not in ("id", "run_id", "inherited"))


def _made(model: type[Model], fork: Run, row: Row) -> Any:
    values = {name: moment_of(value) if name in _MOMENTS else value for name, value in row.items()}
    return model(run=fork, inherited=True, **values)


def _copy(model: type[Model], fork: Run, **wanted: Any) -> None:
    insert_copies(model._default_manager.filter(**wanted).order_by("pk"), fork)


def insert_copies(rows: QuerySet[Any], fork: Run) -> None:
    """INSERT … SELECT: the same rows as rows of another run, in their order."""
    require_ledger_transaction()
    connection = connections[DEFAULT_DB_ALIAS]
    fields = [field for field in rows.model._meta.concrete_fields if not field.primary_key]
    taken: dict[str, Any] = {
        "run_id": Value(fork.pk, output_field=IntegerField()),
        "inherited": Value(True, output_field=BooleanField()),
    }
    chosen = {f"copy_of_{field.attname}": taken.get(field.attname, F(field.attname)) for field in fields}
    selected, values = rows.annotate(**chosen).values_list(*chosen).query.get_compiler(connection=connection).as_sql()
    quote = connection.ops.quote_name
    table, columns = quote(rows.model._meta.db_table), ", ".join(quote(str(field.column)) for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({columns}) {selected}", values)  # names of the models
