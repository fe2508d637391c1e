"""The crew: several drivers of one process that share its effect pool, for one tree of runs or for all runs.

Runs are rows; whoever finds a runnable one tries to take its lease, and the compare-and-swap decides. So any number
of processes may do this at once.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from django.db.models import Q, Sum

from workflows.clock import DatabaseNow, database_now_ms, moment
from workflows.engine import consequences
from workflows.engine.memory import read_plan
from workflows.engine.patience import patiently
from workflows.errors import Refusal
from workflows.ledger import children
from workflows.ledger.transactions import database_thread
from workflows.models import Lease, Run
from workflows.operations.driving import Standing, Worker, standing_of
from workflows.operations.duties import Duties
from workflows.operations.picking import Picker
from workflows.operations.runs import live_below
from workflows.statuses import BLOCKING_CAUSES, RunStatus, WaitsFor

logger = logging.getLogger(__name__)

#: Runs of one tree that are driven at once.
TREE_DRIVERS = 4
#: Refusals that say that somebody else was faster, or that there is nothing to do.
PASSED_BY = frozenset(
    {"lease.held", "lease.lost", "run.later", "run.parked", "run.terminal", "run.queued", "run.unknown_engine"}
)
#: Of these, those that say that another worker takes the same runs.
_TAKEN = frozenset({"lease.held", "lease.lost"})
SWEEP_S = 5.0
#: Time between two looks at the duties of a worker that drives all runs, in seconds.
DUTIES_LOOK_S = 0.5
#: For how long runs that the picker proposed are taken without asking it again, in seconds, and how many more than
#: there are free drivers, for each driver.
PROPOSALS_S, PROPOSALS_AHEAD = 0.25, 2
#: Of how many times as many runs a worker chooses after it met others at the same one.
CROWD = 4
#: Visits after which a run is handed back, so that others get a turn when all drivers are busy.
STRETCH_VISITS = 1_000
#: Time between two looks for runnable runs, in seconds: in one tree, and in an empty queue at first and at most.
TREE_LOOK_S = 0.05
LEAST_IDLE_S, MOST_IDLE_S = 0.05, 1.0
AFTER_FAILURE_S = 0.2
#: What a waiting run does not get over by itself.
_MOVED_BY_OTHERS = BLOCKING_CAUSES | {WaitsFor.CHILD, WaitsFor.PEOPLE}


def drive_tree(
    worker: Worker, run_id: int, *, max_visits: int | None = None, on_idle: Callable[[], None] = lambda: None
) -> Standing:
    """Take a run and its child runs as far as they go. ``max_visits``: stop after so many visits of all of them, which
    are then driven one after the other; ``on_idle`` is called now and then while runs with child runs wait.

    Raises what ``Worker.drive`` raises.
    """
    if not has_children(run_id):
        return worker.drive(run_id, max_visits=max_visits)
    refuse_when_held(run_id)
    drivers = TREE_DRIVERS if max_visits is None else 1
    crew = Crew(worker, drivers=drivers, root_id=run_id, on_idle=on_idle, max_visits=max_visits)
    crew.work(until=lambda: bool(crew.given_up) or crew.visits_left() == 0 or patiently(lambda: is_stuck(run_id)))
    for error in crew.given_up.values():
        raise error
    return standing_of(run_id)


def has_children(run_id: int) -> bool:
    """Whether a run may have child runs: by its plan, or because it has some."""
    run = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return any(step.kind == "workflow" for step in read_plan(run.plan).steps.values())


def refuse_when_held(run_id: int) -> None:
    """Say at once who drives the run, instead of waiting beside them."""
    lease = Lease.objects.get(run_id=run_id)
    if lease.expires_ms > database_now_ms():
        expires_at = moment(lease.expires_ms).isoformat("T", "seconds")
        raise Refusal("lease.held", run=run_id, holder=lease.owner, expires_at=expires_at)


def is_stuck(root_id: int) -> bool:
    """Whether no run of a tree can go on by itself: all have ended, or wait for people, operators or each other."""
    tree = tree_of(root_id)
    for status, reasons, held in Run.objects.live().filter(tree).values_list("status", "reasons", "held"):
        if status in (RunStatus.QUEUED, RunStatus.RUNNING):
            return False
        causes = {reason["cause"] for reason in json.loads(reasons)}
        if status == RunStatus.WAITING and not held and causes - _MOVED_BY_OTHERS:
            return False
    # in this order: whoever hears of an ended child is woken by the same transaction
    if children.unheard_children(root_id):
        return False
    driven = Lease.objects.filter(run_id__in=Run.objects.filter(tree).values("pk"), expires_ms__gt=DatabaseNow())
    return not (driven.exists() or Run.objects.runnable().filter(tree).exists())


def tree_of(root_id: int) -> Q:
    """A run and its child runs at any depth; those of a run that is a child itself are found level by level."""
    is_child = Run.objects.filter(pk=root_id, root_run__isnull=False).exists()
    return Q(pk__in=[root_id, *live_below(root_id)]) if is_child else Q(pk=root_id) | Q(root_run_id=root_id)


def visits_of_tree(root_id: int) -> int:
    """Visits that a run and its child runs have made."""
    return int(Run.objects.filter(tree_of(root_id)).aggregate(made=Sum("visits"))["made"] or 0)


class Crew:
    """Up to ``drivers`` runs at once. ``root_id`` None: all runs of the database. ``max_visits`` bounds the visits of a
    tree, with one driver: several would not know of each other's."""

    def __init__(
        self,
        worker: Worker,
        *,
        drivers: int,
        root_id: int | None = None,
        on_idle: Callable[[], None] = lambda: None,
        on_look: Callable[[], None] = lambda: None,
        max_visits: int | None = None,
    ) -> None:
        self.worker = worker
        self.on_idle = on_idle
        self.on_look = on_look
        self.root_id = root_id
        self.drivers = drivers
        self._threads = ThreadPoolExecutor(max_workers=drivers, thread_name_prefix="waypost-driver")
        self._driven: dict[int, Future[None]] = {}
        self.failures: dict[int, int] = {}
        self.given_up: dict[int, Exception] = {}
        self._proposals: list[int] = []
        self._proposed_until = 0.0
        self._has_met_others = False
        self._swept = 0.0
        self._duties = Duties()
        self.idle_s = LEAST_IDLE_S
        self._news = threading.Event()
        self._last_visit = None if max_visits is None or root_id is None else visits_of_tree(root_id) + max_visits

    def visits_left(self) -> int | None:
        """How many visits the tree may still make here; None: any number."""
        if self._last_visit is None or self.root_id is None:
            return None
        root_id = self.root_id
        return max(0, self._last_visit - patiently(lambda: visits_of_tree(root_id)))

    def work(self, until: Callable[[], bool]) -> None:
        """Pick and drive runs until ``until`` says so while none is at work here, or the worker shall stop; then wait
        for those at work."""
        try:
            while not self.worker.stopping() and (self.is_driving() or not until()):
                self.on_look()
                started = self.take_runs()
                self.sweep()
                if started:
                    self.idle_s = LEAST_IDLE_S
                else:
                    self.on_idle()
                    self._news.wait(timeout=self._pause_s())
                self._news.clear()
        finally:
            self._threads.shutdown(wait=True)

    def is_driving(self) -> bool:
        """Whether a run is being driven here: what follows from its commits is not done before that ends."""
        return any(not future.done() for future in list(self._driven.values()))

    def take_runs(self) -> int:
        """Start driving runnable runs while there are free drivers; how many were started."""
        self._driven = {run: future for run, future in self._driven.items() if not future.done()}
        free = self.drivers - len(self._driven)
        if free <= 0 or self.visits_left() == 0:
            return 0
        chosen = self._proposed(free) if self.root_id is None else self._in_tree(free)
        for run in chosen:
            future = self._threads.submit(self._drive, run)
            self._driven[run] = future
            future.add_done_callback(lambda _: self._news.set())
        return len(chosen)

    def _in_tree(self, count: int) -> list[int]:
        """Runnable runs of the tree, the most urgent first: priority, then who has waited longest."""
        assert self.root_id is not None
        runs = Run.objects.runnable().filter(tree_of(self.root_id))
        runs = runs.filter(engine_version__in=self.worker.settings.engine_versions)
        rows = runs.order_by("-priority", "wake_at_ms", "pk").values_list("pk", flat=True)
        known = len(self._driven) + len(self.given_up)
        found = patiently(lambda: list(rows[: count + known]))
        return [run for run in found if not self._knows(run)][:count]

    def _proposed(self, count: int) -> list[int]:
        """Runs whose turn it is, of all runs."""
        if time.monotonic() > self._proposed_until:
            self._proposals = []
        self._proposals = [run for run in self._proposals if not self._knows(run)]
        if len(self._proposals) < count:
            self._proposals = patiently(lambda: self._pick(count + self.drivers * PROPOSALS_AHEAD))
            self._proposed_until = time.monotonic() + PROPOSALS_S
        chosen, self._proposals = self._proposals[:count], self._proposals[count:]
        return chosen

    def _pick(self, count: int) -> list[int]:
        crowd, self._has_met_others = CROWD if self._has_met_others else 1, False
        skip = [*self._driven, *self.given_up]
        return Picker(engine_versions=self.worker.settings.engine_versions, skip=skip).pick(count, crowd=crowd)

    def _knows(self, run_id: int) -> bool:
        return run_id in self._driven or run_id in self.given_up

    def sweep(self) -> None:
        """Now and then repeat what a crash may have left undone between runs."""
        if time.monotonic() - self._swept < (SWEEP_S if self.root_id is not None else DUTIES_LOOK_S):
            return
        self._swept = time.monotonic()
        if self.root_id is None:
            self._duties.perform()
            return
        try:
            consequences.sweep(self.root_id)
            self.worker.end_cancelled_holders(self.root_id)
        except Exception:
            logger.exception("The sweep failed; it is repeated.")

    def _drive(self, run_id: int) -> None:
        with database_thread():
            try:
                most = STRETCH_VISITS if self.root_id is None else self.visits_left()
                self.worker.drive_stretch(run_id, max_visits=most)
                self.failures.pop(run_id, None)
            except Refusal as refusal:
                self._has_met_others |= refusal.code in _TAKEN
                if refusal.code == "store.contended":
                    time.sleep(AFTER_FAILURE_S)
                elif refusal.code not in PASSED_BY:
                    logger.error("Run %s: %s", run_id, refusal)
                    self._count_failure(run_id, refusal)
            except Exception as error:
                # the driver has logged and counted it: the run is taken again, until it is poisoned
                self._count_failure(run_id, error)

    def _count_failure(self, run_id: int, error: Exception) -> None:
        """A run that cannot be driven is left alone after a while, or it would be tried without end."""
        self.failures[run_id] = self.failures.get(run_id, 0) + 1
        if self.failures[run_id] > self.worker.settings.poison_limit:
            self.given_up[run_id] = error
        time.sleep(AFTER_FAILURE_S)

    def _pause_s(self) -> float:
        """Until the next look. In one tree a timer may be short; the queue of all runs is looked at less and less
        often while it is empty."""
        if self.root_id is not None:
            return TREE_LOOK_S
        self.idle_s = min(self.idle_s * 2, MOST_IDLE_S)
        return self.idle_s
