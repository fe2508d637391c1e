"""Workers, and what waits for them: signs of life, what each drives, queues by workflow, lines for places."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet

from workflows.clock import database_now_ms, moment, unix_ms
from workflows.conf import conf
from workflows.models import Lease, Slot, Worker
from workflows.queries.visible import seen_runs
from workflows.statuses import WorkerKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Heartbeats that may be missed before a worker counts as silent.
_MISSED_BEATS = 2
#: A worker that beats and has not looked for work for this long is deaf, in milliseconds.
DEAF_MS = 30_000
#: Runs of a worker, runs of a line, and lines that are named.
MOST_NAMED = 20
MOST_LINES = 100
#: Runnable runs that are counted.
MOST_COUNTED = 1_000


class WorkerState(StrEnum):
    """``deaf``: it beats, and its loop looks for no work. ``silent``: it gives no sign of life. In the order in which
    they ask for attention."""

    DEAF = "deaf"
    SILENT = "silent"
    AT_WORK = "at work"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A process that drives runs. ``runs`` are those it drives that the person sees, ``hidden`` counts the others.
    ``drivers`` None: it did not register, and is known by its leases only."""

    name: str
    kind: str
    pool: str
    drivers: int | None
    code_version: str
    engine_versions: tuple[int, ...]
    since: datetime
    heartbeat_at: datetime
    looked_at: datetime | None
    stopped_at: datetime | None
    state: WorkerState
    runs: tuple[int, ...]
    hidden: int

    @property
    def driven(self) -> int:
        return len(self.runs) + self.hidden

    @property
    def is_silent(self) -> bool:
        return self.state is WorkerState.SILENT

    @property
    def listens(self) -> bool:
        """Whether it takes runs that become runnable now."""
        return self.state is WorkerState.AT_WORK and self.kind != WorkerKind.RUN_WORKFLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """Runs of a workflow that could go on and are driven by nobody; the first has waited ``since`` then."""

    workflow: str
    title: str
    waiting: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """A concurrency key or a group of a ``limit``. ``holders`` and ``waiting`` (place in line, run) are those that the
    person sees; ``hidden_holders`` and ``all_waiting`` count also the others. ``max`` 0: only a rate."""

    kind: str
    name: str
    max: int
    holders: tuple[int, ...]
    hidden_holders: int
    waiting: tuple[tuple[int, int], ...]
    all_waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersPage:
    workers: list[WorkerRow]
    queues: list[QueueRow]
    lines: list[LineRow]

    @property
    def listening(self) -> int:
        return sum(row.listens for row in self.workers)

    @property
    def queued(self) -> int:
        return sum(row.waiting for row in self.queues)

    @property
    def is_more_queued(self) -> bool:
        return self.queued >= MOST_COUNTED


def workers_document(page: WorkersPage) -> dict[str, Any]:
    """The same for programs: moments as ISO 8601, hidden runs as numbers of them."""
    return {
        "listening": page.listening,
        "workers": [_plain(row) | {"runs": list(row.runs), "driven": row.driven} for row in page.workers],
        "queues": [_plain(row) for row in page.queues],
        "lines": [
            _plain(row) | {"waiting": [{"place": place, "run": run} for place, run in row.waiting]}
            for row in page.lines
        ],
    }


def _plain(row: Any) -> dict[str, Any]:
    values = asdict(row)
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def workers_page(user: AbstractUser | AnonymousUser) -> WorkersPage:
    """About ten queries, whatever there is."""
    return WorkersPage(workers=workers(user), queues=queues(user), lines=lines(user))


def workers(user: AbstractUser | AnonymousUser, *, now_ms: int | None = None) -> list[WorkerRow]:
    """Workers with their last sign of life: those that ask for attention first. Three queries."""
    at = database_now_ms() if now_ms is None else now_ms
    leases: dict[str, list[Any]] = defaultdict(list)
    for lease in Lease.objects.filter(expires_ms__gt=at).order_by("run_id"):
        leases[lease.owner].append(lease)
    driven = [lease.run_id for held in leases.values() for lease in held]
    seen = set(seen_runs(user).filter(pk__in=driven).values_list("pk", flat=True))
    registered = list(Worker.objects.order_by("name"))
    known = {row.name for row in registered}
    rows = [_registered(row, leases.get(row.name, ()), seen, at) for row in registered]
    rows += [_unregistered(name, held, seen, at) for name, held in leases.items() if name not in known]
    order = list(WorkerState)
    rows.sort(key=lambda row: (order.index(row.state), row.name))
    return rows


def listening_count(*, now_ms: int | None = None) -> int:
    """Workers that take what becomes runnable now, with those that are known by their leases only. Two queries."""
    at = database_now_ms() if now_ms is None else now_ms
    registered = list(Worker.objects.all())
    listening: int = sum(
        state_of(row, at) is WorkerState.AT_WORK and row.kind != WorkerKind.RUN_WORKFLOW for row in registered
    )
    owners: set[str] = set(Lease.objects.filter(expires_ms__gt=at).values_list("owner", flat=True))
    return listening + len(owners - {row.name for row in registered})


def state_of(row: Worker, now_ms: int) -> WorkerState:
    """What a worker says of itself at a moment."""
    if row.stopped_ms is not None:
        return WorkerState.STOPPED
    if _is_silent(row.beat_ms, now_ms):
        return WorkerState.SILENT
    if row.is_stopping:
        return WorkerState.STOPPING
    return WorkerState.DEAF if row.beat_ms - row.polled_ms > DEAF_MS else WorkerState.AT_WORK


def _is_silent(beat_ms: int, now_ms: int) -> bool:
    return now_ms - beat_ms > conf().heartbeat_ms * _MISSED_BEATS


def _registered(row: Worker, held: Iterable[Any], seen: set[int], now_ms: int) -> WorkerRow:
    runs = [lease.run_id for lease in held]
    visible = [run for run in runs if run in seen]
    return WorkerRow(
        name=row.name,
        kind=row.kind,
        pool=row.pool,
        drivers=row.drivers,
        code_version=row.code_version,
        engine_versions=tuple(json.loads(row.engine_versions)),
        since=moment(row.started_ms),
        heartbeat_at=moment(row.beat_ms),
        looked_at=moment(row.polled_ms) if row.kind != WorkerKind.RUN_WORKFLOW else None,
        stopped_at=moment(row.stopped_ms) if row.stopped_ms is not None else None,
        state=state_of(row, now_ms),
        runs=tuple(visible),
        hidden=len(runs) - len(visible),
    )


def _unregistered(name: str, held: list[Any], seen: set[int], now_ms: int) -> WorkerRow:
    """A process that is known by its leases: it drives one tree of runs, and began a moment ago."""
    runs = [lease.run_id for lease in held]
    visible = [run for run in runs if run in seen]
    beat_ms = max(lease.heartbeat_ms for lease in held)
    return WorkerRow(
        name=name,
        kind="",
        pool="",
        drivers=None,
        code_version="",
        engine_versions=(),
        since=moment(min(lease.acquired_ms for lease in held)),
        heartbeat_at=moment(beat_ms),
        looked_at=None,
        stopped_at=None,
        state=WorkerState.SILENT if _is_silent(beat_ms, now_ms) else WorkerState.AT_WORK,
        runs=tuple(visible),
        hidden=len(runs) - len(visible),
    )


def queues(user: AbstractUser | AnonymousUser, *, now_ms: int | None = None) -> list[QueueRow]:
    """How many runs of each workflow could go on, the longest queue first; counted up to ``MOST_COUNTED`` in all."""
    at = database_now_ms() if now_ms is None else now_ms
    waiting: QuerySet[Any] = seen_runs(user).runnable(at).order_by()
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    columns = ("workflow__name", "workflow__title", "created_at", "wake_at_ms")
    for name, title, created_at, wake_at_ms in waiting.values_list(*columns)[:MOST_COUNTED]:
        found[name, title].append(max(unix_ms(created_at), wake_at_ms or 0))
    rows = [
        QueueRow(workflow=name, title=title, waiting=len(moments), since=moment(min(moments)))
        for (name, title), moments in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.waiting, row.workflow))


def lines(user: AbstractUser | AnonymousUser) -> list[LineRow]:
    """Concurrency keys and limits with somebody in them, those with the longest line first.

    A key may tell of a hidden workflow, so only those are shown of which the person sees a run.
    """
    groups: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    seen_slots = Slot.objects.filter(run__in=seen_runs(user).values("pk"))
    names = seen_slots.values_list("name", flat=True).distinct()[: MOST_LINES * 2]
    for slot in Slot.objects.filter(name__in=list(names)).order_by("id"):
        groups[slot.kind, slot.name].append(slot)
    everybody = {slot.run_id for slots in groups.values() for slot in slots}
    seen: set[int] = set(seen_runs(user).filter(pk__in=everybody).values_list("pk", flat=True))
    shown = [key for key, slots in groups.items() if any(slot.run_id in seen for slot in slots)]
    rows = [_line(kind, name, groups[kind, name], seen) for kind, name in shown]
    return sorted(rows, key=lambda row: (-row.all_waiting, row.kind, row.name))[:MOST_LINES]


def _line(kind: str, name: str, slots: list[Slot], seen: set[int]) -> LineRow:
    holding = list(dict.fromkeys(slot.run_id for slot in slots if slot.number is not None))
    waiting = [slot.run_id for slot in slots if slot.number is None]
    holders = tuple(run for run in holding if run in seen)
    return LineRow(
        kind=kind,
        name=name,
        max=max(slot.max for slot in slots),
        holders=holders[:MOST_NAMED],
        hidden_holders=len(holding) - len(holders),
        waiting=tuple((place, run) for place, run in enumerate(waiting, start=1) if run in seen)[:MOST_NAMED],
        all_waiting=len(waiting),
    )
