"""What the head of a run's page tells: where it stands, who started it, where its time went, whose relative it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from workflows.clock import DatabaseNow, moment, unix_ms
from workflows.conf import conf
from workflows.errors import Refusal
from workflows.models import Lease, Run, Slot
from workflows.queries.why_rows import MISSED_BEATS
from workflows.statuses import SlotKind

#: Relatives that are named; further ones are counted.
MOST_RELATIVES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Where the time of a run went, in milliseconds. ``queued``: before a worker first had it; ``working``: a worker
    drove it; ``waiting``: neither, be it for people, for moments, or for a worker."""

    total: int = 0
    queued: int = 0
    working: int = 0
    waiting: int = 0

    def shares(self) -> list[tuple[str, int, float]]:
        """Name, length and hundredths of the whole of the parts that are not empty."""
        parts = (("queued", self.queued), ("working", self.working), ("waiting", self.waiting))
        return [(name, length, round(length / self.total * 100, 2)) for name, length in parts if length and self.total]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Who holds the lease. ``is_silent``: heartbeats are missing."""

    owner: str
    heartbeat_at: datetime
    until: datetime
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    run: int
    status: str
    workflow: str = ""
    visit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The run that a fork came from. ``is_pruned``: it is not there any more."""

    run: int
    revision: int | None
    is_pruned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    parent: int | None = None
    parent_visit: int | None = None
    root: int | None = None
    children: tuple[Relative, ...] = ()
    forks: tuple[Relative, ...] = ()
    more: bool = False
    origin: Origin | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.parent or self.children or self.forks or self.origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """``newer_version`` is set when the workflow has moved on since; ``place`` is the number of the slot of
    ``concurrency_key``, None while the run stands in line or needs none."""

    run: int
    workflow: str
    workflow_title: str
    title: str
    version: int | None
    plan_hash: str
    newer_version: int | None
    status: str
    is_final: bool
    is_held: bool
    is_closing: bool
    started_by: str
    origin: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    starts_at: datetime | None
    priority: int
    revision: int
    events: int
    visits: int
    epoch: int
    error: dict[str, Any] | None
    error_visit: int | None
    idempotency_key: str
    concurrency_key: str
    concurrency_max: int
    place: int | None
    spent: Spent
    driver: Driver | None
    lineage: Lineage = field(default_factory=Lineage)
    params_digest: str = ""
    output_digest: str | None = None


def run_for_page(run_id: int, user: Any) -> Run:
    """The row with its plan, workflow, lease, and the moment of the database as ``now_ms``. One query. Raises
    ``run.not_found``, also for what the user may not see."""
    rows = Run.objects.visible_to(user).select_related("workflow__current", "plan", "lease")
    rows = rows.defer("plan__source", "workflow__current__source", "workflow__current__document")
    run: Run | None = rows.annotate(now_ms=DatabaseNow()).filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return run


def now_of(run: Run) -> int:
    """The moment of the database, in Unix milliseconds, at which :func:`run_for_page` read the run."""
    return int(vars(run)["now_ms"])


def head_of(run: Run, user: Any) -> Head:
    """The head of a run that :func:`run_for_page` gave; two queries at most."""
    now_ms = now_of(run)
    current = run.workflow.current
    latest = None if current is None else current.version
    is_newer = latest is not None and run.plan.version is not None and latest > run.plan.version
    error = json.loads(run.error) if run.error else None
    return Head(
        run=run.pk,
        workflow=run.workflow.name,
        workflow_title=run.workflow.title,
        title=run.title,
        version=run.plan.version,
        plan_hash=run.plan.hash,
        newer_version=latest if is_newer else None,
        status=run.status,
        is_final=run.is_final,
        is_held=bool(run.held),
        is_closing=bool(run.closing) and not run.is_final,
        started_by=run.started_by,
        origin=run.origin,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        starts_at=moment(run.start_at_ms) if run.start_at_ms is not None else None,
        priority=run.priority,
        revision=run.revision,
        events=run.next_event - 1,
        visits=run.visits,
        epoch=run.lease_epoch,
        error=error,
        error_visit=error.get("visit") if error else None,
        idempotency_key=run.idempotency_key or "",
        concurrency_key=run.concurrency_key,
        concurrency_max=run.concurrency_max,
        place=_place(run),
        spent=spent(run, _lease(run), now_ms),
        driver=_driver(_lease(run), now_ms),
        lineage=_lineage(run, user),
        params_digest=run.params_digest,
        output_digest=run.output_digest,
    )


def spent(run: Run, lease: Lease | None, now_ms: int) -> Spent:
    """Where the time went until now, or until the end. A live lease works until its last heartbeat at least."""
    begun = unix_ms(run.created_at)
    end = unix_ms(run.ended_at) if run.ended_at is not None else now_ms
    total = max(end - begun, 0)
    first = unix_ms(run.started_at) if run.started_at is not None else end
    queued = min(max(first - begun, 0), total)
    working = max(run.active_ms, lease.active_ms if lease is not None else 0)
    if lease is not None and lease.expires_ms:
        working = lease.active_ms + max(min(now_ms, lease.expires_ms) - lease.acquired_ms, 0)
    working = max(min(working, total - queued), 0)
    return Spent(total=total, queued=queued, working=working, waiting=total - queued - working)


def _lease(run: Run) -> Lease | None:
    found: Lease | None = getattr(run, "lease", None)
    return found


def _driver(lease: Lease | None, now_ms: int) -> Driver | None:
    if lease is None or lease.expires_ms <= now_ms:
        return None
    return Driver(
        owner=lease.owner,
        heartbeat_at=moment(lease.heartbeat_ms),
        until=moment(lease.expires_ms),
        is_silent=timedelta(milliseconds=now_ms - lease.heartbeat_ms)
        > timedelta(milliseconds=conf().heartbeat_ms * MISSED_BEATS),
    )


def _place(run: Run) -> int | None:
    if not run.concurrency_max or run.is_final:
        return None
    slots = Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY)
    number: int | None = slots.values_list("number", flat=True).first()
    return number


def _lineage(run: Run, user: Any) -> Lineage:
    """Relatives that the user may see; the run it was forked from is told to be gone only if it is."""
    wanted = Q(parent_run=run) | Q(fork_of=run)
    if run.fork_of_id:
        wanted |= Q(pk=run.fork_of_id)
    columns = ("pk", "status", "parent_run", "parent_visit", "fork_of", "workflow__name")
    rows = list(Run.objects.visible_to(user).filter(wanted).order_by("-pk").values(*columns)[: MOST_RELATIVES * 2 + 1])
    return Lineage(
        parent=run.parent_run_id,
        parent_visit=run.parent_visit,
        root=run.root_run_id if run.root_run_id != run.parent_run_id else None,
        children=_relatives(row for row in rows if row["parent_run"] == run.pk),
        forks=_relatives(row for row in rows if row["fork_of"] == run.pk),
        more=len(rows) > MOST_RELATIVES * 2,
        origin=_origin(run, {row["pk"] for row in rows}),
    )


def _origin(run: Run, seen: set[int]) -> Origin | None:
    if not run.fork_of_id:
        return None
    is_there = run.fork_of_id in seen or Run.objects.filter(pk=run.fork_of_id).exists()
    return Origin(run=run.fork_of_id, revision=run.fork_revision, is_pruned=not is_there)


def _relatives(rows: Iterable[dict[str, Any]]) -> tuple[Relative, ...]:
    return tuple(
        Relative(run=row["pk"], status=row["status"], workflow=row["workflow__name"], visit=row["parent_visit"])
        for row in list(rows)[:MOST_RELATIVES]
    )
