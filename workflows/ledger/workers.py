"""What workers tell of themselves. Only people look at it: who may drive a run is decided by leases (LEASE.10)."""

from __future__ import annotations

import json

from workflows.clock import database_now_ms
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Worker

#: How long a worker that stopped, and one that fell silent, are still shown, in milliseconds.
STOPPED_STAYS_MS = 10 * 60_000
SILENT_STAYS_MS = 24 * 3_600_000


@ledger_transaction
def register(
    *,
    name: str,
    kind: str,
    pool: str,
    drivers: int,
    engine_versions: frozenset[int],
    code_version: str,
    now_ms: int | None = None,
) -> None:
    """A process says that it drives runs from now on. Said again under the same name it changes nothing but the
    signs of life. ``now_ms`` is the database clock unless a test passes it."""
    at = database_now_ms() if now_ms is None else now_ms
    Worker.objects.bulk_create(
        [
            Worker(
                name=name,
                kind=kind,
                pool=pool,
                drivers=drivers,
                engine_versions=json.dumps(sorted(engine_versions)),
                code_version=code_version,
                started_ms=at,
                beat_ms=at,
                polled_ms=at,
            )
        ],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["beat_ms", "polled_ms"],
    )


@ledger_transaction
def beat(*, name: str, polled_ago_ms: int = 0, is_stopping: bool = False, now_ms: int | None = None) -> bool:
    """A sign of life from the heartbeat thread; ``polled_ago_ms``: how long ago its loop looked for work.

    False when the row is gone: the worker was silent for so long that it was removed, and registers anew.
    """
    at = database_now_ms() if now_ms is None else now_ms
    return bool(Worker.objects.beat(name, now_ms=at, polled_ms=at - polled_ago_ms, is_stopping=is_stopping))


@ledger_transaction
def stop(*, name: str, now_ms: int | None = None) -> bool:
    """The process has handed everything back and ends. False when it is not registered."""
    return bool(Worker.objects.stop(name, now_ms=database_now_ms() if now_ms is None else now_ms))


@ledger_transaction
def forget(*, now_ms: int | None = None) -> int:
    """Remove the rows of workers that stopped a while ago and of the long silent; how many. A row says nothing about
    runs, so none of them is touched."""
    at = database_now_ms() if now_ms is None else now_ms
    return int(Worker.objects.forget(silent_before_ms=at - SILENT_STAYS_MS, stopped_before_ms=at - STOPPED_STAYS_MS))
