"""A batch: everything that one driver transaction writes, as rows that are ready to be stored.

Made by the engine from a decision, written by ``ledger.advance``. Two writers exist and are tested to have the same
effect: the managers (``ledger.plain_path``) and generated SQL (``ledger.hot_path``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.facts import (
    AttemptRow,
    EventRow,
    FanoutRow,
    InterruptRow,
    OfferRow,
    PayloadRow,
    RunState,
    ScopeRow,
    VersionRow,
    VisitRow,
)
from workflows.ledger.children import ChildPublication


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows to insert and rows to update, of one run, under one epoch, decided at revision ``expected``.

    ``attempts_settled`` are attempts whose present row is ``running`` under ``epoch``; ``attempts_closed`` belonged to
    another epoch or are interrupted already. ``state`` is None when the run's state stays as it is. ``controls`` are
    the sequences of the control messages that this batch carries out. With ``release`` the lease ends with the
    transaction. ``commit_id`` is random: it tells after a lost reply whether the transaction was committed.
    """

    run_id: int
    epoch: int
    expected: int
    revision: int
    next_event: int
    visits: int
    commit_id: str
    state: RunState | None = None
    wake_at_ms: int | None = None
    parks: bool = False
    release: bool = False
    payloads: tuple[PayloadRow, ...] = ()
    visits_new: tuple[VisitRow, ...] = ()
    visits_changed: tuple[VisitRow, ...] = ()
    attempts_settled: tuple[AttemptRow, ...] = ()
    attempts_closed: tuple[AttemptRow, ...] = ()
    attempts_new: tuple[AttemptRow, ...] = ()
    scopes_new: tuple[ScopeRow, ...] = ()
    scopes_changed: tuple[ScopeRow, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    variables_new: Mapping[str, str] = field(default_factory=dict)
    fanouts: tuple[FanoutRow, ...] = ()
    interrupts_new: tuple[InterruptRow, ...] = ()
    interrupts_closed: tuple[InterruptRow, ...] = ()
    offers: tuple[OfferRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    versions: tuple[VersionRow, ...] = ()
    children: tuple[ChildPublication, ...] = ()
    slots_wanted: tuple[SlotWish, ...] = ()
    slots_freed: tuple[str, ...] = ()
    slots_used: tuple[str, ...] = ()
    frees_run_slot: bool = False
    controls: tuple[int, ...] = ()
    controls_at: Any = None

    @property
    def variables_rows(self) -> tuple[VariablesRow, ...]:
        """The rows of ``variables_new``."""
        return tuple(VariablesRow(path, values) for path, values in self.variables_new.items())


@dataclass(frozen=True, slots=True)
class SlotWish:
    """A scope that stands in line for a place of a limit group. ``max`` 0: any number; ``starts`` in ``per_ms``."""

    scope: str
    group: str
    max: int
    entered_ms: int
    starts: int | None = None
    per_ms: int | None = None


@dataclass(frozen=True, slots=True)
class VariablesRow:
    path: str
    values: str


#: The columns that change after the insert, per table.
VISIT_CHANGES = (
    "status",
    "outcome",
    "output_digest",
    "detail_digest",
    "error",
    "exit_code",
    "attempts",
    "retries",
    "access",
    "revision_settled",
    "ended_at",
)
ATTEMPT_CHANGES = (
    "status",
    "outcome",
    "output_digest",
    "late_outcome",
    "late_output_digest",
    "error",
    "log_digest",
    "digest",
    "marks",
    "revision_settled",
    "ended_at",
)
SCOPE_CHANGES = (
    "section",
    "phase",
    "step",
    "visit",
    "last_step",
    "waits_for",
    "wake_at_ms",
    "stopping",
    "outcome",
    "output_digest",
    "error",
)
