"""What a person should know before a run is started: whether a worker would take it, and who is before it in line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Max

from workflows.clock import moment
from workflows.definitions.parameters import for_expressions
from workflows.definitions.plan import Plan
from workflows.expressions import BadExpression
from workflows.jsonvalue import decode, text_of
from workflows.models import Lease, Payload, Run, Slot, Worker, Workflow
from workflows.queries.workers import listening_count
from workflows.statuses import SlotKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Parameters larger than this are not put into a form.
MOST_PREFILLED = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """``listening``: workers that take what becomes runnable now. ``waiting_since``: the oldest moment at which a
    runnable run began to wait; ``last_seen``: the latest sign of any worker."""

    listening: int
    waiting: int
    waiting_since: datetime | None
    last_seen: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The line of a concurrency key. ``holders`` are the runs with a slot that a user may see, ``hidden`` counts the
    others; ``ahead`` stand in line already."""

    key: str
    max: int
    when_full: str
    holders: tuple[int, ...]
    hidden: int
    ahead: int

    @property
    def is_full(self) -> bool:
        return len(self.holders) + self.hidden >= self.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """The parameters of an earlier run; ``values`` None: they are too large for a form."""

    run: int
    title: str
    version: int | None
    values: dict[str, Any] | None


#: Runnable runs that are counted.
_MOST_COUNTED = 100


def workers_now() -> Workers:
    """Signs of workers. Seven queries."""
    waiting = Run.objects.runnable()
    first = waiting.order_by("pk").values_list("created_at", "wake_at_ms").first()
    signs = (Lease.objects.aggregate(seen=Max("heartbeat_ms")), Worker.objects.aggregate(seen=Max("beat_ms")))
    seen = max((sign["seen"] or 0 for sign in signs), default=0)
    return Workers(
        listening=listening_count(),
        waiting=waiting.order_by()[:_MOST_COUNTED].count() if first is not None else 0,
        waiting_since=_since(*first) if first is not None else None,
        last_seen=moment(seen) if seen else None,
    )


def _since(created_at: datetime, wake_at_ms: int | None) -> datetime:
    """Since when a run could go on: since it was made, or since it was woken."""
    woken = moment(wake_at_ms) if wake_at_ms else created_at
    return max(created_at, woken)


def concurrency_line(plan: Plan, values: Mapping[str, Any], user: AbstractUser | AnonymousUser) -> Line | None:
    """The line that a run with these checked ``values`` would stand in; None when there is none, or its key cannot be
    told yet. Three queries."""
    if plan.concurrency is None:
        return None
    names = {
        "params": for_expressions(plan.params, values),
        "run": {"workflow": plan.name, "started_by": user.get_username()},
    }
    try:
        key = text_of(plan.concurrency.key.evaluate(names))
    except (BadExpression, ValueError):
        return None
    slots = Slot.objects.filter(kind=SlotKind.CONCURRENCY, name=key)
    holding = list(slots.filter(number__isnull=False).order_by("number").values_list("run_id", flat=True))
    seen = set(Run.objects.visible_to(user).filter(pk__in=holding).values_list("pk", flat=True))
    return Line(
        key=key,
        max=plan.concurrency.max,
        when_full=plan.concurrency.when_full,
        holders=tuple(run for run in holding if run in seen),
        hidden=len([run for run in holding if run not in seen]),
        ahead=slots.filter(number__isnull=True).count(),
    )


def earlier_runs(workflow: Workflow, *, limit: int = 5) -> list[Run]:
    """The newest runs of a workflow, for who wants to start one like them."""
    rows = Run.objects.filter(workflow=workflow).order_by("-pk").only("title", "status", "created_at", "started_by")
    return list(rows[:limit])


def prefill_of(run: Run) -> Prefill:
    """What a run was started with. Two queries; a large payload is not read."""
    rows = Payload.objects.filter(digest=run.params_digest)
    size: int = rows.values_list("size", flat=True).first() or 0
    values = decode(rows.values_list("text", flat=True).get()) if 0 < size <= MOST_PREFILLED else None
    return Prefill(run=run.pk, title=run.title, version=run.plan.version, values=values)
