"""What is known about a run: the rows a decision is made from, as plain values.

Attribute names equal column names, so the ledger writes these values without translation. The scheduler reads them
through :class:`Facts` and never changes one; a decision makes new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from workflows.definitions.plan import Plan

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The columns of a run that its driver decides about. Texts hold canonical JSON, "" where there is nothing."""

    status: str
    reasons: str = "[]"
    held: str = ""
    closing: str = ""
    output_digest: str | None = None
    error: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What never changes during a run."""

    id: int
    workflow: str
    started_by: str
    created_at: datetime
    params: Mapping[str, Any]
    frozen: Mapping[str, Any]
    engine_version: int = 1
    depth: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    path: str
    kind: str
    section: str
    phase: str
    step: str = ""
    visit: int | None = None
    last_step: str = ""
    waits_for: str = ""
    wake_at_ms: int | None = None
    parent_visit: int | None = None
    index: int | None = None
    key: str = ""
    input_digest: str | None = None
    stopping: str = ""
    outcome: str = ""
    output_digest: str | None = None
    error: str = ""
    revision_created: int = 1
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRow:
    number: int
    scope: str
    step: str
    round: int | None
    kind: str
    access: str
    status: str
    revision_created: int
    started_at: datetime
    outcome: str = ""
    output_digest: str | None = None
    detail_digest: str | None = None
    error: str = ""
    exit_code: int | None = None
    attempts: int = 0
    retries: str = ""
    reopened: int = 0
    revision_settled: int | None = None
    ended_at: datetime | None = None
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    visit: int
    number: int
    dispatch_id: str
    input_hash: str
    status: str
    epoch: int
    worker: str
    revision_created: int
    started_at: datetime
    outcome: str = ""
    output_digest: str | None = None
    late_outcome: str = ""
    late_output_digest: str | None = None
    error: str = ""
    log_digest: str | None = None
    digest: str = ""
    marks: str = "[]"
    authorization: str = ""
    revision_settled: int | None = None
    ended_at: datetime | None = None
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FanoutRow:
    visit: int
    total: int
    items_digest: str
    revision_created: int
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptRow:
    visit: int
    attempt: int
    kind: str
    ask: str
    asked_at: datetime
    revision_created: int
    status: str = "open"
    shown_digest: str | None = None
    form: str = "[]"
    choices: str = "[]"
    audience: str = "{}"
    not_by: str = "[]"
    quorum: int = 1
    deadline_ms: int | None = None
    remind_ms: int | None = None
    answer: str = ""
    answered_by: str = ""
    answered_at: datetime | None = None
    revision_settled: int | None = None
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """The latest offer of work to other programs, as the run that waits for it sees it."""

    visit: int
    attempt: int
    number: int
    queue: str
    lease_ms: int
    offered_ms: int
    revision_created: int
    status: str = "open"
    input_digest: str | None = None
    timeout_ms: int | None = None
    outcome: str = ""
    output_digest: str | None = None
    error: str = ""
    reason: str = ""
    ended_ms: int | None = None
    revision_settled: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRow:
    """A child run as its parent sees it. ``is_own`` False: a fork takes the result of its origin's child."""

    run_id: int
    status: str
    error: str
    output_digest: str | None
    is_own: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FanoutCounts:
    """How the items of a fan-out stand. Items without a scope have not started."""

    started: int = 0
    ok: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def ended(self) -> int:
        return self.ok + self.failed + self.cancelled

    @property
    def live(self) -> int:
        return self.started - self.ended


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    sequence: int
    revision: int
    type: str
    at: datetime
    actor: str = ""
    visit: int | None = None
    attempt: int | None = None
    payload: str = "{}"
    inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    revision: int
    table: str
    key: str
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadRow:
    digest: str
    text: str
    size: int
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRow:
    """A control message that is waiting to be carried out."""

    sequence: int
    request_id: str
    kind: str
    payload: str
    sender: str


@cache
def column_names(row: type) -> tuple[str, ...]:
    """The columns of a row class, in a fixed order."""
    return tuple(field.name for field in fields(row))


def changed(row: Row, **changes: Any) -> Row:
    """A copy of a row with other values in some columns.

    ``dataclasses.replace`` does the same at nearly twice the cost, and every step changes several rows; the classes of
    this module check nothing when they are made.
    """
    kind: Any = type(row)
    copy: Row = object.__new__(kind)
    for name, read, write in _slots(kind):
        write(copy, changes.pop(name) if name in changes else read(row))
    if changes:
        raise TypeError(f"{kind.__name__} has no {', '.join(sorted(changes))}")
    return copy


@cache
def _slots(kind: Any) -> tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], None]], ...]:
    """Name, reader and writer of each column; a frozen class guards its writers only by ``__setattr__``."""
    slots = [(name, getattr(kind, name)) for name in column_names(kind)]
    return tuple((name, slot.__get__, slot.__set__) for name, slot in slots)


class Facts(Protocol):
    """What the scheduler may look at. Reading never changes anything; a miss is filled from the rows."""

    identity: RunIdentity
    state: RunState
    revision: int
    next_event: int
    visits: int
    epoch: int
    worker: str
    active_ms: int
    takes_slot: bool

    def scopes(self) -> Mapping[str, ScopeRow]:
        """The scopes that have not ended, by path."""
        ...

    def variables(self, path: str) -> Mapping[str, Any]: ...

    def visit(self, number: int) -> VisitRow:
        """A visit that is open, or was when its scope was last at it."""
        ...

    def attempts(self, visit: int) -> tuple[AttemptRow, ...]:
        """All attempts of an open visit, in order."""
        ...

    def settled(self, scope: str, step: str) -> VisitRow | None:
        """The latest settled visit of a step in a scope."""
        ...

    def refused(self, scope: str, step: str) -> VisitRow | None:
        """The latest refused entry of a step in a scope."""
        ...

    def payload(self, digest: str) -> Any:
        """The value of a payload."""
        ...

    def fanout(self, visit: int) -> FanoutRow:
        """What an open map or parallel visit runs over."""
        ...

    def counts(self, visit: int) -> FanoutCounts:
        """How the items of an open map or parallel visit stand."""
        ...

    def visits_below(self, visit: int) -> int:
        """How many visits the bodies of an open map visit have made; counted only for maps with a budget of visits."""
        ...

    def output_bytes(self, visit: int) -> int:
        """How long the outputs of the items that have ended are in sum, as canonical text."""
        ...

    def ended_items(self, visit: int) -> Mapping[int, ScopeRow]:
        """The scopes of the items that have ended, by index."""
        ...

    def interrupt(self, visit: int) -> InterruptRow | None:
        """The latest question of an open visit."""
        ...

    def offer(self, visit: int) -> OfferRow | None:
        """The latest offer of the work of an open visit to other programs."""
        ...

    def workspace_uses(self) -> Mapping[int, str]:
        """How the running effects use the workspace, by visit; those that do not are left out."""
        ...

    def gate_order(self, path: str) -> int:
        """The place of a scope among those that wait for the workspace; the same number for all others."""
        ...

    def child(self, dispatch_id: str) -> ChildRow | None:
        """The child run of an attempt; None while it has not been published."""
        ...

    def count_children(self) -> int:
        """How many child runs there are."""
        ...

    def place(self, scope: str) -> str:
        """Whether a scope stands in line for a limit slot: "", ``waiting``, or ``given``."""
        ...

    def turn_ms(self, scope: str) -> int | None:
        """When the rate of a limit lets a scope go on that is the first of its line; None: something else does."""
        ...

    def plan(self, plan_id: int) -> Plan:
        """A plan that was frozen beside this run's: that of a child workflow. Raises ``plan.corrupt``."""
        ...

    def is_occupied(self, visit: int) -> bool:
        """Whether a function of this visit was settled without it and still runs in this process."""
        ...
