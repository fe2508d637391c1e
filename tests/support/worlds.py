"""Many runs at once: real drivers take what is runnable until nothing is, as workers do."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.driving import driver_with
from tests.support.kinds import Scripted, kinds_with
from tests.support.plans import publication, publish_run, store_plan
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.engine import consequences
from workflows.engine.contract import EffectContext, Kinds, Result
from workflows.errors import Refusal
from workflows.ledger.publishing import Concurrency, Published, publish
from workflows.ledger.transactions import database_thread
from workflows.models import Run


class Gauge:
    """Counts how many effects run at once, by step; each holds its place for a moment."""

    def __init__(self, result: Result, *, hold_s: float = 0.01) -> None:
        self.result = result
        self.hold_s = hold_s
        self.most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, context: EffectContext) -> Result:
        step = context.step.id
        with self._lock:
            self._now[step] += 1
            self.most[step] = max(self.most[step], self._now[step])
        context.stop.wait(self.hold_s)
        with self._lock:
            self._now[step] -= 1
        return self.result


def frozen_children(*texts: str) -> dict[str, Any]:
    """What is frozen beside a plan whose steps start these workflows."""
    children = {}
    for text in texts:
        frozen = freeze(read_source(text).document)
        plan = compile_plan(frozen.document)
        children[plan.name] = {"plan": store_plan(text).plan_id, "hash": frozen.hash}
    return {"children": children}


def publish_parent(text: str, *children: str, params: Mapping[str, Any] | None = None) -> int:
    """The id of a new run that may start these child workflows."""
    return publish_run(text, params, frozen=frozen_children(*children))


def publish_in_line(text: str, key: str, *, max: int = 1, when_full: str = "queue") -> Published:
    """A new run that needs a slot of a concurrency key."""
    return publish(publication(text, concurrency=Concurrency(key=key, max=max, when_full=when_full)))


def drive_all(
    workspaces: Path, kinds: Kinds | None = None, *, drivers: int = 1, limit_s: float = 30.0, **scripts: Any
) -> None:
    """Drive every runnable run with so many drivers, until all have ended or wait for something else than time."""
    kinds = kinds or kinds_with(Scripted(**scripts))
    deadline = time.monotonic() + limit_s
    errors: list[BaseException] = []

    def work(number: int) -> None:
        with database_thread(), driver_with(kinds, workspaces=workspaces, owner=f"driver {number}") as driver:
            while not is_quiet() and time.monotonic() < deadline:
                for run_id in Run.objects.runnable().order_by("pk").values_list("pk", flat=True):
                    try:
                        driver.drive(run_id)
                    except Refusal as refusal:
                        if refusal.code not in ("lease.held", "run.parked", "run.terminal", "run.queued"):
                            errors.append(refusal)
                threading.Event().wait(0.005)

    if drivers == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(drivers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert time.monotonic() < deadline, "the runs did not come to rest"


def is_quiet() -> bool:
    """Whether no run is runnable, none is driven, and none waits for time to pass."""
    live = Run.objects.live()
    if Run.objects.runnable().exists() or live.filter(lease__expires_ms__gt=0).exists():
        return False
    return not live.filter(wake_at_ms__isnull=False).exclude(Run.objects.lacks_slot()).exists()


def sweep() -> int:
    return consequences.sweep()
