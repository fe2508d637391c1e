"""How the applied migrations of a database compare with the code: current, old, newer or inconsistent (MIG.1).

Compared are the names of this application's migrations in the order they were applied, with the order the code has
them in. A shorter list on either side is fine as long as it is the beginning of the longer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from workflows.errors import Refusal

APP = "workflows"


class SchemaState(Enum):
    """CURRENT: run. OLD: migrate first. NEWER: run, apply nothing. INCONSISTENT: refuse."""

    CURRENT = "current"
    OLD = "old"
    NEWER = "newer"
    INCONSISTENT = "inconsistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReport:
    """What was found. ``missing`` are migrations to apply (``app.name``), ``unknown`` those this code does not have.

    ``position`` (from 1), ``found`` and ``expected`` say where an inconsistent history leaves the code's.
    """

    state: SchemaState
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    is_empty: bool = False
    position: int | None = None
    found: str = ""
    expected: str = ""

    def describe(self) -> str:
        """One sentence for people."""
        match self.state:
            case SchemaState.CURRENT:
                return "All migrations are applied."
            case SchemaState.OLD:
                return f"{len(self.missing)} migration(s) are not applied yet: {_shorten(self.missing)}."
            case SchemaState.NEWER:
                return (
                    f"The database was migrated by a newer version of Waypost (it has {_shorten(self.unknown)}); "
                    "nothing is applied."
                )
            case SchemaState.INCONSISTENT:
                return self.as_refusal().message

    def as_refusal(self) -> Refusal:
        """Why a process must not go on: ``schema.behind`` for OLD, ``schema.inconsistent`` for INCONSISTENT."""
        if self.state is SchemaState.INCONSISTENT:
            return Refusal("schema.inconsistent", position=self.position, found=self.found, expected=self.expected)
        return Refusal("schema.behind", state="empty" if self.is_empty else "old", detail=self.describe())


def compare(*, applied: Sequence[str], known: Sequence[str]) -> SchemaReport:
    """Compare names in order of application with the names of the code, in the code's order.

    >>> compare(applied=["0001"], known=["0001", "0002"]).state
    <SchemaState.OLD: 'old'>
    >>> compare(applied=["0001", "0003"], known=["0001", "0002"]).position
    2
    """
    for position, (found, expected) in enumerate(zip_longest(applied, known), start=1):
        if found == expected:
            continue
        if found is None:
            missing = tuple(f"{APP}.{name}" for name in known[position - 1 :])
            return SchemaReport(state=SchemaState.OLD, missing=missing, is_empty=not applied)
        if expected is None:
            return SchemaReport(state=SchemaState.NEWER, unknown=tuple(applied[position - 1 :]))
        return SchemaReport(state=SchemaState.INCONSISTENT, position=position, found=found, expected=expected)
    return SchemaReport(state=SchemaState.CURRENT)


def schema_state(using: str = DEFAULT_DB_ALIAS) -> SchemaReport:
    """The state of the database ``using``. An app of Django that lacks migrations makes a current schema old.

    Raises errors of the database as they are; see ``failures.store_failures_as_refusals``.
    """
    connection = connections[using]
    recorder = MigrationRecorder(connection)
    rows: list[tuple[str, str]] = []
    if recorder.has_table():
        rows = list(recorder.migration_qs.order_by("id").values_list("app", "name"))
    loader = MigrationLoader(None)
    report = compare(applied=[name for app, name in rows if app == APP], known=_known(loader))
    if report.state not in (SchemaState.CURRENT, SchemaState.OLD):
        return report
    others = {(app, name) for app, name in loader.graph.nodes if app != APP} - set(rows)
    missing = (*report.missing, *sorted(f"{app}.{name}" for app, name in others))
    if not missing:
        return report
    return SchemaReport(state=SchemaState.OLD, missing=missing, is_empty=not rows)


def _known(loader: MigrationLoader) -> list[str]:
    """This application's migrations in the order in which Django applies them."""
    ordered: list[str] = []
    for leaf in loader.graph.leaf_nodes(APP):
        for app, name in loader.graph.forwards_plan(leaf):
            if app == APP and name not in ordered:
                ordered.append(name)
    return ordered


def _shorten(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
