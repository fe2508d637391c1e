"""The picker: which runs a worker should take next. It only proposes; ``ledger.leases.acquire`` decides who gets one.

Order: priority; then the workflow of which the fewest runs are driven; then who has waited longest: since it was made,
woken, or handed back. So a workflow with
a thousand runs in the queue does not keep another one's only run waiting.

Its cost does not grow with the queue: each workflow shows the head of its own queue through an index, and only the
workflows that win are asked for more. The rows are read without locks: the claim locks the run for about a
millisecond, so there is nothing that skipping locked rows would save. Workers that look at the same instant propose the
same runs; ``crowd`` spreads them.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Subquery

from workflows.clock import database_now_ms, unix_ms
from workflows.conf import KNOWN_ENGINE_VERSIONS
from workflows.models import Lease, Run, Workflow
from workflows.statuses import RunStatus

_PARKED = (RunStatus.WAITING, RunStatus.PAUSED, RunStatus.BLOCKED)
#: Parked runs of dead owners that are looked at in one go.
_MOST_ORPHANS = 200


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Place:
    """Where a run stands in the queue of its workflow; smaller is earlier."""

    urgency: int
    since_ms: int
    run: int


class Picker:
    """Proposes runs of ``engine_versions``, of one moment (Unix ms; the database clock unless a test passes it)."""

    def __init__(
        self, *, engine_versions: frozenset[int], skip: Collection[int] = (), now_ms: int | None = None
    ) -> None:
        self._now_ms = database_now_ms() if now_ms is None else now_ms
        self._ready = self._without_owner().filter(engine_version__in=sorted(engine_versions)).exclude(pk__in=skip)
        self._orphans: dict[int, list[_Place]] = {}

    def pick(self, count: int, *, crowd: int = 1) -> list[int]:
        """Up to ``count`` runs, the first one first. ``crowd`` > 1: as many times more are looked at, and ``count`` of
        them chosen at random, so that workers which look at the same instant meet less often."""
        if crowd <= 1 or count <= 0:
            return self._in_turn(count)
        found = self._in_turn(count * crowd)
        chosen = sorted(random.sample(range(len(found)), min(count, len(found))))  # spreads workers
        return [found[place] for place in chosen]

    def count(self, most: int) -> int:
        """How many runs could be picked, counted up to ``most``."""
        woken = self._ready.filter(status__in=_PARKED, wake_at_ms__lte=self._now_ms)
        parts = [self._ready.filter(status=status) for status in (RunStatus.QUEUED, RunStatus.RUNNING)]
        found: int = sum(rows.order_by()[:most].count() for rows in (*parts, woken))
        found += sum(len(orphans) for orphans in self._read_orphans().values())
        return min(found, most)

    def _in_turn(self, count: int) -> list[int]:
        queues = {workflow: [place] for workflow, place in self._heads()}
        driven = self._driven() if len(queues) > 1 else Counter()
        # a line whose queue is empty stands for the runs that its workflow has not been asked for yet: none of them
        # comes before the one that was picked last
        lines = [(queue[0].urgency, driven[workflow], queue[0], workflow) for workflow, queue in queues.items()]
        heapq.heapify(lines)
        picked: list[int] = []
        asked: set[int] = set()
        while lines and len(picked) < count:
            _, _, place, workflow = heapq.heappop(lines)
            queue = queues[workflow]
            if queue:
                picked.append(place.run)
                driven[workflow] += 1
                del queue[0]
            elif workflow not in asked:
                asked.add(workflow)
                queue[:] = [other for other in self._queue_of(workflow, count) if other.run != place.run]
            if queue:
                place = queue[0]
            if queue or workflow not in asked:
                heapq.heappush(lines, (place.urgency, driven[workflow], place, workflow))
        return picked

    def _heads(self) -> Iterator[tuple[int, _Place]]:
        """The first run of each workflow that has one."""
        firsts = [Subquery(rows.values("pk")[:1]) for rows in self._queues(OuterRef("pk"))]
        rows = Workflow.objects.order_by().values_list("pk", *firsts)
        heads = [(workflow, run) for workflow, *runs in rows for run in runs if run is not None]
        places = self._places(self._ready.filter(pk__in=[run for _, run in heads]))
        found = {workflow: list(orphans) for workflow, orphans in self._read_orphans().items()}
        for workflow, run in heads:
            if run in places:
                found.setdefault(workflow, []).append(places[run])
        for workflow, queue in found.items():
            yield workflow, min(queue)

    def _queue_of(self, workflow: int, count: int) -> list[_Place]:
        """The first runs of one workflow, in order."""
        found = {place.run: place for place in self._orphans.get(workflow, ())}
        for rows in self._queues(workflow):
            found |= self._places(rows[:count])
        return sorted(found.values())

    def _queues(self, workflow: Any) -> list[Any]:
        """Runs that have not begun, in the order of an index; those that were handed back; parked ones that were woken.
        The latter two are few."""
        ours = self._ready.filter(workflow=workflow)
        handed_back = ours.filter(status=RunStatus.RUNNING)
        woken = ours.filter(status__in=_PARKED, wake_at_ms__lte=self._now_ms)
        return [
            ours.filter(status=RunStatus.QUEUED).order_by("-priority", "pk"),
            handed_back.order_by("-priority", "lease__heartbeat_ms", "pk"),
            woken.order_by("-priority", "wake_at_ms", "pk"),
        ]

    def _read_orphans(self) -> dict[int, list[_Place]]:
        """Parked runs whose driver died before it gave its lease back, by workflow."""
        dead = Lease.objects.filter(
            expires_ms__gt=0, expires_ms__lte=self._now_ms, run__status__in=_PARKED
        ).values_list("run_id", flat=True)
        runs = list(dead[:_MOST_ORPHANS])
        self._orphans = {}
        if runs:
            rows = self._ready.filter(pk__in=runs)
            places = self._places(rows)
            for run, workflow in rows.values_list("pk", "workflow"):
                if run in places:
                    self._orphans.setdefault(workflow, []).append(places[run])
        return self._orphans

    def _places(self, rows: Any) -> dict[int, _Place]:
        moments = ("start_at_ms", "wake_at_ms", "lease__heartbeat_ms")
        columns = rows.values_list("pk", "priority", "created_at", *moments)
        return {
            run: _Place(urgency=-priority, since_ms=max(unix_ms(created_at), *(since or 0 for since in later)), run=run)
            for run, priority, created_at, *later in columns
        }

    def _driven(self) -> Counter[int]:
        """How many runs of each workflow are driven. Counted here: grouped, SQLite would begin with the runs."""
        live = Lease.objects.filter(expires_ms__gt=self._now_ms)
        return Counter(live.values_list("run__workflow", flat=True))

    def _without_owner(self) -> Any:
        """Runs without a live lease, with the slot they need, whose moment has come."""
        leased = Exists(Lease.objects.filter(run_id=OuterRef("pk"), expires_ms__gt=self._now_ms))
        runs = Run.objects.filter(~leased)
        return runs.exclude(Run.objects.lacks_slot()).exclude(Run.objects.starts_later(self._now_ms))


def runnable_count(*, most: int) -> int:
    """Runs that could go on and are driven by nobody, counted up to ``most``."""
    return Picker(engine_versions=KNOWN_ENGINE_VERSIONS).count(most)
