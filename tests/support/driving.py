"""The real driver in this process, with scripted effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.kinds import kinds_with
from workflows.engine.contract import Kinds
from workflows.engine.driver import Driver, Left, Settings
from workflows.engine.effects import Effects
from workflows.engine.heartbeat import Heartbeat
from workflows.engine.observing import Observer
from workflows.engine.pool import EffectPool
from workflows.engine.supervisor import Supervisor
from workflows.engine.workspaces import Workspaces


@contextmanager
def driver_with(
    kinds: Kinds | None = None,
    *,
    workspaces: Path,
    owner: str = "driver",
    stopping: Callable[[], bool] = lambda: False,
    observer: Observer | None = None,
    **settings: Any,
) -> Iterator[Driver]:
    """A driver and its effects, closed at the end. Polls every 20 ms so that nobody waits for a control."""
    kinds = kinds or kinds_with()
    pool, supervisor = EffectPool(4, abandon_seconds=1.0), Supervisor()
    heartbeat = Heartbeat(ttl_ms=60_000, interval_ms=15_000, on_alive=supervisor.extend)
    try:
        yield Driver(
            owner=owner,
            kinds=kinds,
            effects=Effects(kinds, pool=pool, supervisor=supervisor, workspaces=Workspaces(workspaces)),
            heartbeat=heartbeat,
            settings=Settings(**{"ttl_ms": 60_000, "poll_ms": 20, **settings}),
            stopping=stopping,
            observer=observer,
        )
    finally:
        pool.stop_all("shutdown")
        pool.close(wait_seconds=3)
        supervisor.close()


def drive(run_id: int, workspaces: Path, kinds: Kinds | None = None, **options: Any) -> Left:
    """Drive a run until it ends or parks."""
    with driver_with(kinds, workspaces=workspaces, **options) as driver:
        return driver.drive(run_id)
