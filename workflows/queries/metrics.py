"""What can be measured of an installation, read from its tables: a constant number of statements (promise OBS.4).

Every number is of the whole installation, whichever process is asked. Labels are bounded: names of workflows to the
``MOST_WORKFLOWS`` with the most runs, everything else by lists of the code. Keys, groups and people are no labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q

from workflows.clock import database_now_ms, unix_ms
from workflows.conf import conf
from workflows.models import Delivery, ExternalOffer, Interrupt, Lease, Run, Schedule, Slot, Tally, Worker, Workflow
from workflows.queries.workers import WorkerState, state_of
from workflows.statuses import (
    DeliveryStatus,
    InterruptKind,
    InterruptStatus,
    OfferStatus,
    RunStatus,
    SlotKind,
    WorkerKind,
)

#: Workflows that have a label of their own. The rest is added up under ``OTHERS``, which is no name of a workflow.
MOST_WORKFLOWS = 200
OTHERS = "(others)"
#: Heartbeats that may be missed before the holder of a lease counts as silent.
MISSED_BEATS = 2

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One name of the metrics. ``labels`` name the values in each sample; a counter only grows."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    metric: Metric
    samples: tuple[Sample, ...]


RUNS = Metric(name="waypost_runs", help="Runs by workflow and status.", labels=("workflow", "status"))
RUNNABLE = Metric(name="waypost_runs_runnable", help="Runs that a worker may take now.", labels=("workflow",))
RUNNABLE_AGE = Metric(
    name="waypost_runs_runnable_oldest_seconds", help="How long the run that waits longest could have been taken."
)
STALLED = Metric(
    name="waypost_runs_stalled",
    help="Runs whose worker is gone and that nobody has taken over, or whose worker is silent.",
    labels=("why",),
)
LEASES = Metric(name="waypost_leases_live", help="Runs that are being driven.")
WORKERS = Metric(
    name="waypost_workers",
    help="Processes that drive runs, by what they say of themselves.",
    labels=("kind", "state"),
)
QUESTIONS = Metric(name="waypost_questions_open", help="Questions that wait for people.", labels=("kind",))
QUESTION_AGE = Metric(
    name="waypost_question_oldest_seconds", help="How long the oldest open question has waited.", labels=("kind",)
)
SLOTS = Metric(
    name="waypost_slots",
    help="Places of concurrency keys and limits that are taken, and those that wait for one.",
    labels=("kind", "state"),
)
SLOT_AGE = Metric(
    name="waypost_slot_waiting_oldest_seconds", help="How long the first in line has waited.", labels=("kind",)
)
OFFERS = Metric(name="waypost_external_offers", help="Work offered to other programs.", labels=("status",))
DELIVERIES = Metric(name="waypost_deliveries_waiting", help="Notifications that are not delivered yet.")
DELIVERY_AGE = Metric(
    name="waypost_delivery_oldest_seconds", help="How long the oldest notification that is not delivered has waited."
)
SCHEDULE_LATE = Metric(
    name="waypost_schedule_late_seconds", help="How late the schedule is that should have started a run first."
)
ATTEMPTS = Metric(
    name="waypost_attempts",
    help="Attempts that workers made and that have ended, by the kind of their step.",
    labels=("kind", "result"),
    is_counter=True,
)
EVENTS = Metric(name="waypost_events", help="Events that drivers have committed.", labels=("type",), is_counter=True)

METRICS = (
    *(RUNS, RUNNABLE, RUNNABLE_AGE, STALLED, LEASES, WORKERS, QUESTIONS, QUESTION_AGE, SLOTS, SLOT_AGE, OFFERS),
    *(DELIVERIES, DELIVERY_AGE, SCHEDULE_LATE, ATTEMPTS, EVENTS),
)


def measure(*, now_ms: int | None = None) -> list[Measured]:
    """Everything, as it is now. Reads only. ``now_ms``: Unix milliseconds, by default of the database."""
    now_ms = database_now_ms() if now_ms is None else now_ms
    found: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}
    for part in _PARTS:
        for metric, samples in part(now_ms):
            found[metric.name].extend(samples)
    return [Measured(metric=metric, samples=tuple(found[metric.name])) for metric in METRICS]


Part = Iterable[tuple[Metric, Iterable[Sample]]]


# ---- runs ------------------------------------------------------------------------------------------------------------


def _runs(now_ms: int) -> Part:
    """Runs are counted by the id of their workflow: the database reads no names, and no rows where an index will do."""
    rows = list(Run.objects.order_by().values_list("workflow_id", "status").annotate(runs=Count("*")))
    names = _labels({workflow: count for workflow, _, count in rows})
    counts: Counter[tuple[str, ...]] = Counter()
    for workflow, status, count in rows:
        counts[names[workflow], status] += count
    yield RUNS, _sorted(counts)
    runnable = Run.objects.runnable(now_ms).order_by().values_list("workflow_id")
    untouched = Q(status=RunStatus.QUEUED, wake_at_ms=None)
    waiting = list(
        runnable.annotate(
            runs=Count("pk"),
            woken=Min("wake_at_ms"),
            made=Min("created_at", filter=untouched & Q(start_at_ms=None)),
            begins=Min("start_at_ms", filter=untouched),
            orphaned=Min("lease__expires_ms", filter=Q(lease__expires_ms__gt=0)),
        )
    )
    lengths: Counter[tuple[str, ...]] = Counter()
    for workflow, count, *_ in waiting:
        lengths[(names.get(workflow, OTHERS),)] += count
    yield RUNNABLE, _sorted(lengths)
    since = [_earliest(woken, _ms(made), begins, orphaned) for _, _, woken, made, begins, orphaned in waiting]
    yield RUNNABLE_AGE, [((), _age(now_ms, _earliest(*since)))]


def _labels(sizes: dict[int, int]) -> dict[int, str]:
    """The label of each workflow: its name, for those with the most runs."""
    largest = sorted(sizes, key=lambda workflow: (-sizes[workflow], workflow))[:MOST_WORKFLOWS]
    names = dict(Workflow.objects.filter(pk__in=largest).values_list("pk", "name"))
    return {workflow: names.get(workflow, OTHERS) for workflow in sizes}


def _leases(now_ms: int) -> Part:
    silent_ms = now_ms - (MISSED_BEATS + 1) * conf().heartbeat_ms
    held = Q(expires_ms__gt=now_ms)
    counts = Lease.objects.filter(expires_ms__gt=0).aggregate(
        live=Count("pk", filter=held),
        silent=Count("pk", filter=held & Q(heartbeat_ms__lt=silent_ms)),
        ended=Count("pk", filter=~held),
    )
    yield LEASES, [((), counts["live"])]
    yield STALLED, [(("lease_ended",), counts["ended"]), (("silent_worker",), counts["silent"])]


def _workers(now_ms: int) -> Part:
    """Every kind and state, also those that nobody is in; rows of workers that ended are removed after a while."""
    counts: Counter[tuple[str, ...]] = Counter(
        {(kind.value, state.value): 0 for kind in WorkerKind for state in WorkerState}
    )
    counts.update((row.kind, state_of(row, now_ms).value) for row in Worker.objects.all())
    yield WORKERS, _sorted(counts)


# ---- what waits ------------------------------------------------------------------------------------------------------


def _questions(now_ms: int) -> Part:
    rows = Interrupt.objects.filter(status=InterruptStatus.OPEN).order_by()
    found = {kind: (count, asked) for kind, count, asked in _grouped(rows, "kind", oldest=Min("asked_at"))}
    kinds = [(kind.value, *found.get(kind, (0, None))) for kind in InterruptKind]
    yield QUESTIONS, [((kind,), count) for kind, count, _ in kinds]
    yield QUESTION_AGE, [((kind,), _age(now_ms, _ms(asked))) for kind, _, asked in kinds]


def _slots(now_ms: int) -> Part:
    rows = _grouped(
        Slot.objects.order_by(),
        "kind",
        taken=Count("pk", filter=Q(number__isnull=False)),
        oldest=Min("entered_ms", filter=Q(number=None)),
    )
    found = {kind: (taken, count - taken, entered) for kind, count, taken, entered in rows}
    kinds = [(kind.value, *found.get(kind, (0, 0, None))) for kind in SlotKind]
    yield (
        SLOTS,
        [
            sample
            for kind, taken, waiting, _ in kinds
            for sample in (((kind, "taken"), taken), ((kind, "waiting"), waiting))
        ],
    )
    yield SLOT_AGE, [((kind,), _age(now_ms, entered)) for kind, _, _, entered in kinds]


def _offers(now_ms: int) -> Part:
    unfinished = (OfferStatus.OPEN, OfferStatus.RESERVED)
    found = dict(_grouped(ExternalOffer.objects.filter(status__in=unfinished).order_by(), "status"))
    yield OFFERS, [((status.value,), found.get(status, 0)) for status in unfinished]


def _deliveries(now_ms: int) -> Part:
    waiting = Delivery.objects.filter(status=DeliveryStatus.WAITING).aggregate(
        count=Count("pk"), oldest=Min("created_at")
    )
    yield DELIVERIES, [((), waiting["count"])]
    yield DELIVERY_AGE, [((), _age(now_ms, _ms(waiting["oldest"])))]


def _schedules(now_ms: int) -> Part:
    current = Schedule.objects.filter(removed_at=None, paused_at=None)
    yield SCHEDULE_LATE, [((), _age(now_ms, _ms(current.aggregate(next=Min("next_at"))["next"])))]


# ---- what has happened -----------------------------------------------------------------------------------------------


def _tallies(now_ms: int) -> Part:
    rows = list(Tally.objects.order_by("what", "kind", "result").values_list("what", "kind", "result", "count"))
    yield ATTEMPTS, [((kind, result), count) for what, kind, result, count in rows if what == "attempt"]
    yield EVENTS, [((kind,), count) for what, kind, _, count in rows if what == "event"]


_PARTS: tuple[Callable[[int], Part], ...] = (
    *(_runs, _leases, _workers, _questions, _slots, _offers, _deliveries, _schedules, _tallies),
)


def _grouped(rows: Any, by: str, **aggregates: Any) -> list[tuple[Any, ...]]:
    """``(value, count, *aggregates)`` of each value of a column."""
    return list(rows.values_list(by).annotate(rows=Count("pk"), **aggregates))


def _sorted(counts: Counter[tuple[str, ...]]) -> list[Sample]:
    return sorted(counts.items())


def _ms(at: datetime | None) -> int | None:
    return None if at is None else unix_ms(at)


def _earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _age(now_ms: int, since_ms: int | None) -> float:
    """Seconds since a moment; 0 when there is none, or it has not come."""
    return 0.0 if since_ms is None else max(0.0, (now_ms - since_ms) / 1000)
