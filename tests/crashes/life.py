"""One life: what a driver process does with a run, from its start to its end or to the driver's own death.

Every life does the same. The first one starts the run, the later ones find it by its key; each drives it, reconciles
what is parked with what the effect's own log shows, and goes on until the run has ended.
"""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from tests.crashes import effects, ends
from tests.crashes.moments import Point, Watch, watch_ledger
from tests.crashes.scenarios import Scenario
from workflows.engine.driver import Settings
from workflows.engine.effects import visit_path
from workflows.errors import Refusal
from workflows.ledger.inspection import inspect_run
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Lease, Run, Visit
from workflows.operations.driving import Standing, Worker
from workflows.operations.people import Actor
from workflows.operations.runs import Start, cancel, start
from workflows.steps import KINDS

#: How long a life waits for the lease of the one before, and for the end of its effects, in seconds.
PATIENCE_S = 30.0
#: Even a wait whose end has passed already parks the run.
PARK_ALWAYS_MS = -3_600_000
#: Refusals after which a driver tries again: somebody else holds the run, or held it when this one was too slow.
_TRY_AGAIN = frozenset({"lease.held", "lease.lost", "run.parked", "store.contended"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A life to live. ``dies_of`` is the signal at ``dies_at``: SIGKILL, or SIGSTOP to freeze there. ``lingers``: the
    driver keeps its lease over short waits instead of parking the run."""

    scenario: Scenario
    key: str
    log: Path
    dies_at: Point | None = None
    dies_of: int = signal.SIGKILL
    is_first: bool = True
    lingers: bool = True


class Life:
    """A life in this process, with the worker that all lives of the process share."""

    def __init__(self, order: Order, watch: Watch, worker: Worker) -> None:
        self.order = order
        self.watch = watch
        self.worker = worker
        self.decisions: list[tuple[str, str]] = []

    def live(self) -> dict[str, Any]:
        """The report of a life that came to its end; a killed one leaves none."""
        left = [] if self.order.is_first else wait_for_quiet(self.order.log)
        found = None if self.order.is_first else self._look()
        run_id = self._start()
        if self.order.scenario.is_cancelled:
            cancel(run_id, actor=self._actor, request_id=self.order.key)
        wait_for_lease(run_id)
        self._drive(run_id)
        return {
            "found": found,
            "left": left,
            "points": [asdict(point) for point in self.watch.points],
            "decisions": self.decisions,
            "end": ends.end_of(run_id),
            "problems": inspect_run(run_id),
            "runs": Run.objects.filter(idempotency_key=self.order.key).count(),
        }

    def _look(self) -> dict[str, Any]:
        run_id = Run.objects.filter(idempotency_key=self.order.key).values_list("pk", flat=True).first()
        plan = self.order.scenario.definition.plan
        return ends.found_after_death(run_id, plan, effects.read_log(self.order.log))

    def _start(self) -> int:
        scenario = self.order.scenario
        wish = Start(
            definition=scenario.definition,
            actor=self._actor,
            given=scenario.params,
            key=self.order.key,
        )
        return start(wish).run_id

    @property
    def _actor(self) -> Actor:
        person = self.order.scenario.started_by
        return Actor(name=person, recorded=person)

    def _drive(self, run_id: int) -> None:
        self.worker.effects.kinds = effects.recorded_kinds(KINDS, self.watch, self.order.log)
        linger_ms = Settings(ttl_ms=1).linger_ms if self.order.lingers else PARK_ALWAYS_MS
        self.worker.settings = replace(self.worker.settings, linger_ms=linger_ms)
        while not (standing := self._drive_on(run_id)).is_final:
            if not self._attend(run_id):
                raise RuntimeError(f"The run stands still: {standing}")

    def _drive_on(self, run_id: int) -> Standing:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.worker.drive(run_id)
            except Refusal as refusal:
                if refusal.code not in _TRY_AGAIN or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _attend(self, run_id: int) -> int:
        """Do what the run waits for people to do; how many things there were."""
        parked = ends.undecided(run_id)
        for visit in parked:
            self._reconcile(run_id, visit)
        return len(parked)

    def _reconcile(self, run_id: int, visit: Visit) -> None:
        key = effects.key_of(visit_path(visit.scope, visit.step, visit.round or 1), visit.attempts + 1)
        done = effects.read_log(self.order.log).done.get(key)
        if done is None:
            told = Reconciliation(decision="did_not", actor="kit", reason="its log does not show it")
        else:
            result = done[-1].result(self.order.scenario.definition.plan.steps[visit.step])
            failure = result.failure
            told = Reconciliation(
                decision="happened",
                actor="kit",
                reason="its log shows it",
                outcome=result.outcome,
                output=result.output,
                failure={"code": failure.code, "message": failure.message} if failure else None,
                exit_code=result.exit_code,
            )
        reconcile(run_id=run_id, visit=visit.number, reconciliation=told, now=timezone.now())
        self.decisions.append((key, told.decision))


class Lives:
    """The lives of one process, one after the other."""

    def __init__(self) -> None:
        self._worker = Worker(stopping=lambda: False, pause=time.sleep)

    def live(self, order: Order) -> dict[str, Any]:
        """Live a life. From now on this process is watched, and good for nothing but lives."""
        watch = Watch(order.dies_at, order.dies_of)
        watch_ledger(watch)
        effects.record_processes()
        return Life(order, watch, self._worker).live()

    def close(self) -> None:
        """End every thread and process of these lives."""
        self._worker.pool.close(wait_seconds=5)
        self._worker.supervisor.close()
        deadline = time.monotonic() + 5
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)  # the heartbeat's thread ends by itself


def wait_for_quiet(log: Path, seconds: float = 5.0) -> list[int]:
    """Wait until the supervisor of the dead driver has ended its effects; the processes that live on."""
    end = time.monotonic() + seconds
    processes = effects.read_log(log).processes
    while left := [process for process in processes if is_alive(process)]:
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return left


def wait_for_lease(run_id: int) -> None:
    """Wait for the end of a dead driver's lease."""
    deadline = time.monotonic() + PATIENCE_S
    while Lease.objects.is_live(run_id) and time.monotonic() < deadline:
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that only waits to be collected by its parent does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return process != 0 and state not in "ZX"
