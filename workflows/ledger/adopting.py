"""Adopting: a fork that takes the result of a child run which its origin has started (promise FORK.6).

The attempt that waits was copied with its dispatch id, which is the invocation key of the child. The child stays the
origin's: it is cancelled with the origin and never with the fork.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from workflows.ledger.children import tell_of_end
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Run
from workflows.statuses import LIVE_STATUSES, AttemptStatus


def lineage(run_id: int) -> list[int]:
    """A run and those it was forked from, the nearest first; a pruned one is named and leads no further."""
    found = [run_id]
    while True:
        origin = Run.objects.filter(pk=found[-1]).values_list("fork_of_id", flat=True).first()
        if origin is None or origin in found:
            return found
        found.append(origin)


def children_of_origins(run_id: int, keys: Collection[str]) -> QuerySet[Any]:
    """The child runs with these invocation keys that the run or one it was forked from has started."""
    children: QuerySet[Any] = Run.objects.filter(parent_run_id__in=lineage(run_id), invocation_key__in=keys)
    return children


def forks_waiting_for(child_id: int) -> list[int]:
    """The live forks, at any distance, that wait for the end of a child run."""
    child = Run.objects.filter(pk=child_id, parent_run__isnull=False).first()
    found: list[int] = []
    level = [] if child is None else [child.parent_run_id]
    while child is not None and level:
        level = list(Run.objects.filter(fork_of_id__in=level).values_list("pk", flat=True))
        waiting = Attempt.objects.filter(
            run_id__in=level,
            visit=child.parent_visit,
            dispatch_id=child.invocation_key,
            status=AttemptStatus.PAUSED,
            run__status__in=LIVE_STATUSES,
        )
        found += waiting.order_by("run").values_list("run_id", flat=True)
    own = Run.objects.filter(parent_run_id__in=found, invocation_key=child.invocation_key) if child else []
    with_own = {one.parent_run_id for one in own}
    return [run for run in found if run not in with_own]


@ledger_transaction
def hear_of_adopted(*, run_id: int, child_id: int, now: datetime) -> bool:
    """Tell a fork that the child of its origin has ended; False when it does not wait for it (any more). Idempotent."""
    fork = Run.objects.lock(run_id)
    child = Run.objects.filter(pk=child_id).first()
    return child is not None and child.is_final and tell_of_end(fork, child, now)


def unheard_adopted() -> list[tuple[int, int]]:
    """Forks that wait for a child of an origin which has ended: (fork, child), for the sweep."""
    forks = Run.objects.filter(fork_of__isnull=False, status__in=LIVE_STATUSES)
    found = []
    for fork in forks.order_by("pk").values_list("pk", flat=True):
        waiting = Attempt.objects.filter(run_id=fork, inherited=True, status=AttemptStatus.PAUSED)
        keys = list(waiting.values_list("dispatch_id", flat=True))
        if keys:
            ended = children_of_origins(fork, keys).exclude(status__in=LIVE_STATUSES)
            found += [(fork, child) for child in ended.values_list("pk", flat=True)]
    return found
