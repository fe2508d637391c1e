"""A draft: one decision in the making.

The scheduler reads facts at revision r through a draft and records in it what shall be written. Nothing else changes:
a draft whose transaction is rolled back is thrown away, and memory is as it was. After the commit the driver's facts
absorb it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workflows.definitions.plan import Plan, StepPlan
from workflows.engine.contract import Effect, Kinds
from workflows.engine.paths import visit_path
from workflows.facts import (
    AttemptRow,
    ControlRow,
    EventRow,
    Facts,
    FanoutCounts,
    FanoutRow,
    InterruptRow,
    OfferRow,
    PayloadRow,
    RunState,
    ScopeRow,
    VersionRow,
    VisitRow,
    changed,
    column_names,
)
from workflows.jsonvalue import Stored, canonical, store
from workflows.ledger.batch import SCOPE_CHANGES, Batch, SlotWish
from workflows.ledger.children import ChildPublication
from workflows.ledger.records import compact
from workflows.statuses import FINAL_STATUSES, AttemptStatus, RunStatus, ScopePhase

#: A blocked or ended run gives its concurrency slot back (PUB.5).
_WITHOUT_SLOT = frozenset({*FINAL_STATUSES, RunStatus.BLOCKED})
_SCOPE_COLUMNS = column_names(ScopeRow)
_STATE_COLUMNS = column_names(RunState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An attempt to start once the transaction that admits it is committed."""

    attempt: AttemptRow
    visit: VisitRow
    step: StepPlan
    effect: Effect
    scope: ScopeRow


class Draft:
    """See the module. ``now`` is the moment of the decision, ``new_id`` makes dispatch ids."""

    def __init__(
        self,
        plan: Plan,
        facts: Facts,
        kinds: Kinds,
        *,
        now: datetime,
        new_id: Callable[[], str],
        visit_limit: int = 200,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> None:
        self.plan = plan
        self.facts = facts
        self.kinds = kinds
        self.now = now
        self.now_ms = int(now.timestamp() * 1000)
        self.new_id = new_id
        self.visit_limit = visit_limit
        self.out_of_time = out_of_time
        self.state = facts.state
        self.revision = facts.revision
        self.next_event = facts.next_event
        self.visit_count = facts.visits
        self.scopes: dict[str, ScopeRow] = dict(facts.scopes())
        self.ended_scopes: dict[str, ScopeRow] = {}
        self.scopes_new: dict[str, None] = {}
        self.scopes_changed: dict[str, None] = {}
        self.changed_variables: dict[str, Mapping[str, Any]] = {}
        self.variables_new: set[str] = set()
        self.fanouts: dict[int, FanoutRow] = {}
        self.fanout_counts: dict[int, FanoutCounts] = {}
        self.interrupts: dict[int, InterruptRow] = {}
        self.offers: dict[int, OfferRow] = {}
        self.pending_joins: list[int] = []
        self.gated: dict[str, None] = {}
        self.signals: list[ControlRow] = []
        self.children: list[ChildPublication] = []
        self.child_cancels: list[int] = []
        self.slots_wanted: dict[str, SlotWish] = {}
        self.slots_freed: dict[str, str] = {}
        self.visit_rows: dict[int, VisitRow] = {}
        self.visits_new: set[int] = set()
        self.attempt_rows: dict[tuple[int, int], AttemptRow] = {}
        self.attempts_new: set[tuple[int, int]] = set()
        self.attempts_settled: set[tuple[int, int]] = set()
        self.latest_settled: dict[tuple[str, str], VisitRow] = {}
        self.latest_refused: dict[tuple[str, str], VisitRow] = {}
        self.events: list[EventRow] = []
        self.versions: dict[tuple[int, str, str], dict[str, Any]] = {}
        self.payloads: dict[str, PayloadRow] = {}
        self.values: dict[str, Any] = {}
        self.admissions: list[Admission] = []
        self.cancelled_visits: list[int] = []
        self.controls: list[int] = []
        self.ended = False

    # ---- reading through the draft ----------------------------------------------------------------------------------

    def variables(self, path: str) -> Mapping[str, Any]:
        changed = self.changed_variables.get(path)
        return self.facts.variables(path) if changed is None else changed

    def visit(self, number: int) -> VisitRow:
        row = self.visit_rows.get(number)
        return self.facts.visit(number) if row is None else row

    def attempts(self, visit: int) -> tuple[AttemptRow, ...]:
        known = () if visit in self.visits_new else self.facts.attempts(visit)
        rows = {row.number: row for row in known}
        rows.update({number: row for (owner, number), row in self.attempt_rows.items() if owner == visit})
        return tuple(rows[number] for number in sorted(rows))

    def settled(self, scope: str, step: str) -> VisitRow | None:
        row = self.latest_settled.get((scope, step))
        return self.facts.settled(scope, step) if row is None else row

    def refused(self, scope: str, step: str) -> VisitRow | None:
        row = self.latest_refused.get((scope, step))
        return self.facts.refused(scope, step) if row is None else row

    def fanout(self, visit: int) -> FanoutRow:
        row = self.fanouts.get(visit)
        return self.facts.fanout(visit) if row is None else row

    def counts(self, visit: int) -> FanoutCounts:
        known = self.fanout_counts.get(visit)
        return self.facts.counts(visit) if known is None else known

    def ended_items(self, visit: int) -> dict[int, ScopeRow]:
        """The ended scopes of a fan-out by index, in no particular order."""
        items = {} if visit in self.fanouts else dict(self.facts.ended_items(visit))
        for row in self.ended_scopes.values():
            if row.parent_visit == visit and row.index is not None:
                items[row.index] = row
        return items

    def visits_below(self, visit: int) -> int:
        """Visits made in the bodies of an open map."""
        number = self.visit(visit)
        prefix = f"{visit_path(number.scope, number.step, number.round or 1)}["
        new = sum(1 for row in self.visits_new if self.visit_rows[row].scope.startswith(prefix))
        return new + (0 if visit in self.fanouts else self.facts.visits_below(visit))

    def interrupt(self, visit: int) -> InterruptRow | None:
        row = self.interrupts.get(visit)
        return self.facts.interrupt(visit) if row is None else row

    def parent(self, scope: ScopeRow) -> ScopeRow | None:
        """The scope in which the visit stands whose body this scope is; None for the root."""
        if scope.parent_visit is None:
            return None
        return self.scopes[self.visit(scope.parent_visit).scope]

    def payload(self, digest: str) -> Any:
        return self.values[digest] if digest in self.values else self.facts.payload(digest)

    @property
    def closing(self) -> dict[str, Any]:
        """``{}`` until the main steps have ended; then status, error and what the closing steps left."""
        return json.loads(self.state.closing) if self.state.closing else {}

    @property
    def slots_used(self) -> dict[str, Mapping[str, Any]]:
        """The scopes on whose places attempts begin, with the limits of their steps."""
        visits = [self.visit(number) for number, _ in self.attempts_new]
        limits = {visit.scope: self.plan.steps[visit.step].limit for visit in visits}
        return {scope: limit for scope, limit in limits.items() if limit is not None}

    @property
    def is_cut(self) -> bool:
        """Whether this transaction is long enough: the rest of a chain of pure steps goes into the next one."""
        return len(self.visits_new) >= self.visit_limit or self.out_of_time()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be decided in this transaction."""
        return self.ended or self.is_cut

    # ---- recording --------------------------------------------------------------------------------------------------

    def begin_revision(self) -> int:
        """Number the next logical change."""
        self.revision += 1
        return self.revision

    def event(self, type: str, *, visit: int | None = None, attempt: int | None = None, **payload: Any) -> None:
        self.events.append(
            EventRow(
                sequence=self.next_event,
                revision=self.revision,
                type=type,
                at=self.now,
                visit=visit,
                attempt=attempt,
                payload=compact(payload) if payload else "{}",
            )
        )
        self.next_event += 1

    def keep(self, value: Any, *, limit: int | None = None) -> str | None:
        """Store a value as a payload; None for null. Raises ``NotStorable``."""
        return None if value is None else self.keep_stored(store(value, limit=limit), value)

    def keep_stored(self, stored: Stored | None, value: Any = ...) -> str | None:
        if stored is None:
            return None
        if stored.digest not in self.payloads:
            self.payloads[stored.digest] = PayloadRow(digest=stored.digest, text=stored.text, size=stored.size)
            self.values[stored.digest] = stored.value() if value is ... else value
        return stored.digest

    def keep_log(self, text: str) -> str | None:
        """Store an attempt's log; None for an empty one."""
        return self.keep_stored(store(text), text) if text else None

    def set_state(self, **changes: Any) -> None:
        """Change the run's state in the present revision."""
        before, self.state = self.state, changed(self.state, **changes)
        new = {name: value for name in changes if (value := getattr(self.state, name)) != getattr(before, name)}
        if new:
            self._version("run", "", new)

    def put_scope(self, row: ScopeRow) -> ScopeRow:
        before = self.scopes.get(row.path)
        if before is None:
            self.scopes_new[row.path] = None
            new = {name: getattr(row, name) for name in _SCOPE_COLUMNS}
        else:
            new = {name: value for name in SCOPE_CHANGES if (value := getattr(row, name)) != getattr(before, name)}
            if not new:
                return row
            if row.path not in self.scopes_new:
                self.scopes_changed[row.path] = None
        if row.phase == ScopePhase.ENDED:
            self.scopes.pop(row.path, None)
            self.ended_scopes[row.path] = row
        else:
            self.scopes[row.path] = row
        self._version("scope", row.path, new)
        return row

    def change_scope(self, row: ScopeRow, **changes: Any) -> ScopeRow:
        return self.put_scope(changed(row, **changes))

    def set_variables(self, path: str, values: Mapping[str, Any]) -> None:
        if path in self.scopes_new and path not in self.changed_variables:
            self.variables_new.add(path)
        self.changed_variables[path] = values
        self._version("scopevars", path, {"values": canonical(dict(values))})

    def add_visit(self, row: VisitRow) -> VisitRow:
        self.visit_count += 1
        self.visits_new.add(row.number)
        self._index_visit(row)
        return row

    def settle_visit(self, row: VisitRow, **changes: Any) -> VisitRow:
        """Close an open visit in the present revision."""
        changes |= {"status": "settled", "revision_settled": self.revision, "ended_at": self.now}
        row = changed(row, **changes)
        if row.reopened:
            self._version("visit", str(row.number), changes)
        self._index_visit(row)
        return row

    def change_visit(self, row: VisitRow, **changes: Any) -> VisitRow:
        """Change an open visit in the present revision."""
        row = changed(row, **changes)
        if row.reopened:
            self._version("visit", str(row.number), changes)
        self._index_visit(row)
        return row

    def _index_visit(self, row: VisitRow) -> None:
        self.visit_rows[row.number] = row
        if row.status == "settled":
            self.latest_settled[row.scope, row.step] = row
        elif row.status == "refused":
            self.latest_refused[row.scope, row.step] = row

    def add_attempt(self, row: AttemptRow) -> AttemptRow:
        key = (row.visit, row.number)
        self.attempts_new.add(key)
        self.attempt_rows[key] = row
        return row

    def close_attempt(self, row: AttemptRow, *, versioned: bool = False, **changes: Any) -> AttemptRow:
        """End an attempt in the present revision. ``versioned``: it may change again, or has changed before."""
        before = row
        row = changed(row, revision_settled=self.revision, ended_at=self.now, **changes)
        key = (row.visit, row.number)
        if before.status == AttemptStatus.RUNNING and before.epoch == self.facts.epoch:
            self.attempts_settled.add(key)
        self.attempt_rows[key] = row
        if versioned:
            columns = {name: getattr(row, name) for name in ("revision_settled", "ended_at", *changes)}
            self._version("attempt", f"{row.visit}.{row.number}", columns)
        return row

    def _version(self, table: str, key: str, changed: Mapping[str, Any]) -> None:
        self.versions.setdefault((self.revision, table, key), {}).update(changed)

    # ---- the result -------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.revision == self.facts.revision and not self.controls

    def live_scopes(self) -> list[ScopeRow]:
        return list(self.scopes.values())

    def scope_row(self, path: str) -> ScopeRow:
        """A scope this draft has written, ended or not."""
        return self.ended_scopes[path] if path in self.ended_scopes else self.scopes[path]

    def batch(self, *, commit_id: str, parks: bool, release: bool, wake_at_ms: int | None) -> Batch:
        """The rows to write. ``parks``: the run ends or waits, so the moment to wake it at is written; with
        ``release`` its lease ends in the same transaction."""
        settled: list[AttemptRow] = []
        closed: list[AttemptRow] = []
        new: list[AttemptRow] = []
        for key, row in self.attempt_rows.items():
            (new if key in self.attempts_new else settled if key in self.attempts_settled else closed).append(row)
        return Batch(
            run_id=self.facts.identity.id,
            epoch=self.facts.epoch,
            expected=self.facts.revision,
            revision=self.revision,
            next_event=self.next_event,
            visits=self.visit_count,
            commit_id=commit_id,
            state=self.state if self.state is not self.facts.state else None,
            wake_at_ms=wake_at_ms,
            parks=parks,
            release=release,
            payloads=tuple(self.payloads.values()),
            visits_new=tuple(row for number, row in self.visit_rows.items() if number in self.visits_new),
            visits_changed=tuple(row for number, row in self.visit_rows.items() if number not in self.visits_new),
            attempts_settled=tuple(settled),
            attempts_closed=tuple(closed),
            attempts_new=tuple(new),
            scopes_new=tuple(self.scope_row(path) for path in self.scopes_new),
            scopes_changed=tuple(self.scope_row(path) for path in self.scopes_changed),
            variables=self._variable_texts(new=False),
            variables_new=self._variable_texts(new=True),
            fanouts=tuple(self.fanouts.values()),
            interrupts_new=tuple(row for row in self.interrupts.values() if self._is_new(row)),
            interrupts_closed=tuple(row for row in self.interrupts.values() if not self._is_new(row)),
            offers=tuple(self.offers.values()),
            events=tuple(self.events),
            versions=tuple(
                VersionRow(revision=revision, table=table, key=key, row=compact(changed))
                for (revision, table, key), changed in self.versions.items()
            ),
            children=tuple(self.children),
            slots_wanted=tuple(self.slots_wanted.values()),
            slots_freed=tuple(self.slots_freed),
            slots_used=tuple(self.slots_used),
            frees_run_slot=self.facts.takes_slot and self.state.status in _WITHOUT_SLOT,
            controls=tuple(self.controls),
            controls_at=self.now,
        )

    def _is_new(self, row: InterruptRow) -> bool:
        return row.revision_created > self.facts.revision

    def _variable_texts(self, *, new: bool) -> dict[str, str]:
        return {
            path: canonical(dict(values))
            for path, values in self.changed_variables.items()
            if (path in self.variables_new) == new
        }
