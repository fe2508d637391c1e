"""What this process has counted and not yet written: attempts by kind and result, events by type.

Counting takes a lock for a moment and no database: it stands on the way of every step. ``operations.tallying`` writes
the counts now and then.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from workflows.engine.contract import INTERRUPTED, Result
from workflows.models.tally import TallyKey
from workflows.statuses import AttemptStatus

_lock = threading.Lock()
_counts: Counter[TallyKey] = Counter()


def count_attempt(kind: str, result: Result) -> None:
    """An attempt ended in this process."""
    with _lock:
        _counts["attempt", kind, _status_of(result)] += 1


def count_events(types: Iterable[str]) -> None:
    """These events were committed by a driver of this process."""
    with _lock:
        for type in types:
            _counts["event", type, ""] += 1


def take() -> dict[TallyKey, int]:
    """Everything counted since it was last taken."""
    with _lock:
        taken = dict(_counts)
        _counts.clear()
    return taken


def give_back(counts: Mapping[TallyKey, int]) -> None:
    """What was taken and could not be written."""
    with _lock:
        _counts.update(counts)


def _status_of(result: Result) -> str:
    if result.failure is None:
        return AttemptStatus.SUCCEEDED
    if result.outcome == INTERRUPTED:
        return AttemptStatus.INTERRUPTED
    return AttemptStatus.CANCELLED if result.failure.code == "cancelled" else AttemptStatus.FAILED
