"""Rows of a run as they were once a revision was committed (promises REV 1, 2).

Rows that are written once and settled once carry the revisions of both; what they hold after ``revision_settled`` is
left away. Rows that change more often are merged from their versions. Reads only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from workflows.ledger.records import compact
from workflows.models import Attempt, Event, RowVersion, Visit
from workflows.statuses import AttemptStatus, VisitStatus

Row = dict[str, Any]

UNSETTLED_VISIT: Mapping[str, Any] = {
    "status": VisitStatus.OPEN.value,
    "outcome": "",
    "output_digest": None,
    "detail_digest": None,
    "error": "",
    "exit_code": None,
    "reopened": 0,
    "revision_settled": None,
    "ended_at": None,
}
UNSETTLED_ATTEMPT: Mapping[str, Any] = {
    "status": AttemptStatus.RUNNING.value,
    "outcome": "",
    "output_digest": None,
    "late_outcome": "",
    "late_output_digest": None,
    "error": "",
    "log_digest": None,
    "digest": "",
    "marks": "[]",
    "authorization": "",
    "revision_settled": None,
    "ended_at": None,
}
#: Attempts of these kinds wait outside of every worker until they are settled.
PAUSED_KINDS = frozenset({"approval", "external", "question", "workflow"})
#: What an attempt counts as a try of its visit by.
_TRIED = frozenset({AttemptStatus.SUCCEEDED, AttemptStatus.FAILED, AttemptStatus.CANCELLED})


#: Revision, table, key and the columns that changed.
Version = tuple[int, str, str, Row]


def versions_of(run_id: int, *, wanted: Callable[[str, str], bool] | None = None) -> Iterator[Version]:
    """The versions of the rows of a run, the oldest first. ``wanted`` (table, key) chooses whose."""
    rows = RowVersion.objects.filter(run_id=run_id).order_by("revision", "pk")
    for at, table, key, text in rows.values_list("revision", "table", "key", "row"):
        if wanted is not None and not wanted(table, key):
            continue
        changed: Row = json.loads(text)
        changed.pop("inherited", None)  # how a row came into its run is no part of its history
        yield at, table, key, changed


class Past:
    """What the rows of a run held at ``revision``. ``wanted`` (table, key) chooses whose versions are looked at;
    ``versions`` are those that were read already, for several moments of one run."""

    def __init__(
        self,
        run_id: int,
        revision: int,
        *,
        wanted: Callable[[str, str], bool] | None = None,
        versions: Iterable[Version] | None = None,
    ) -> None:
        self.run_id = run_id
        self.revision = revision
        self._merged: dict[str, dict[str, Row]] = defaultdict(dict)
        self._changing: dict[tuple[str, str], set[str]] = defaultdict(set)
        for at, table, key, changed in versions_of(run_id, wanted=wanted) if versions is None else versions:
            self._changing[table, key].update(changed)
            if at <= revision:
                self._merged[table].setdefault(key, {}).update(changed)

    @property
    def state(self) -> Row:
        """The columns of the run's state."""
        return self._merged["run"][""]

    def rows(self, table: str) -> Mapping[str, Row]:
        """The merged versions of a table, by key."""
        return self._merged[table]

    def visits(self, names: Iterable[str], **wanted: Any) -> list[Row]:
        """The visits that there were, in order, with these columns among others."""
        rows = Visit.objects.filter(run_id=self.run_id, revision_created__lte=self.revision, **wanted)
        columns = {"number", "kind", "revision_settled", *names}
        return [self.visit(row) for row in rows.order_by("number").values(*sorted(columns))]

    def visit(self, row: Row) -> Row:
        """A visit, given its present row."""
        return self._as_was("visit", str(row["number"]), row, UNSETTLED_VISIT)

    def attempts(self, names: Iterable[str], kinds: Mapping[int, str], **wanted: Any) -> list[Row]:
        """The attempts that there were, in order. ``kinds`` are the kinds of the visits by number."""
        rows = Attempt.objects.filter(run_id=self.run_id, revision_created__lte=self.revision, **wanted)
        columns = {"visit", "number", "revision_settled", "marks", *names}
        ordered = rows.order_by("visit", "number").values(*sorted(columns))
        return [self.attempt(row, kinds[row["visit"]]) for row in ordered]

    def attempt(self, row: Row, kind: str) -> Row:
        """An attempt of a visit of ``kind``, given its present row."""
        unsettled = dict(UNSETTLED_ATTEMPT)
        if kind in PAUSED_KINDS:
            unsettled["status"] = AttemptStatus.PAUSED.value
        key = f"{row['visit']}.{row['number']}"
        was = self._as_was("attempt", key, row, unsettled)
        if _is_settled(row, self.revision) and "marks" not in self._merged["attempt"].get(key, {}):
            # a late result is the one thing that marks an attempt after its settlement
            was["marks"] = compact([mark for mark in json.loads(row["marks"]) if not self._is_late(key, mark)])
        return was

    def _is_late(self, key: str, mark: str) -> bool:
        return mark == "late" and "marks" in self._changing.get(("attempt", key), ())

    def _as_was(self, table: str, key: str, row: Row, unsettled: Mapping[str, Any]) -> Row:
        """``row`` with its columns of the revision: unsettled before its settlement, versions over that."""
        was = dict(row)
        if not _is_settled(row, self.revision):
            was.update((name, value) for name, value in unsettled.items() if name in row)
        for name in self._changing.get((table, key), ()):
            if name in unsettled and name in row:
                was[name] = unsettled[name]
        was.update((name, value) for name, value in self._merged[table].get(key, {}).items() if name in row)
        return was

    def moment(self) -> datetime:
        """When the revision was made."""
        events = Event.objects.filter(run_id=self.run_id, revision__lte=self.revision)
        at: datetime = events.order_by("-sequence").values_list("at", flat=True)[0]
        return at


def _is_settled(row: Row, revision: int) -> bool:
    return row["revision_settled"] is not None and row["revision_settled"] <= revision


def tries(attempts: Iterable[Row]) -> int:
    """How many tries a visit with these attempts counts: those that came to an end of their own."""
    return sum(1 for attempt in attempts if attempt["status"] in _TRIED)


def moment_of(value: datetime | str | None) -> datetime | None:
    """Moments of rows are datetimes, those of versions texts."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value
