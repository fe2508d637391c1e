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
from typing import Any

from django.db.models import Q, QuerySet

from workflows.clock import database_now_ms, moment
from workflows.engine import consequences
from workflows.engine.memory import read_plan
from workflows.engine.patience import patiently
from workflows.errors import Refusal
from workflows.ledger import children
from workflows.ledger.transactions import database_thread
from workflows.models import Lease, Run
from workflows.operations.driving import Standing, Worker, standing_of
from workflows.statuses import RunStatus, WaitsFor

logger = logging.getLogger(__name__)

#: Runs of one tree that are driven at once.
TREE_DRIVERS = 4
#: Refusals that say that somebody else was faster, or that there is nothing to do.
_PASSED_BY = frozenset({"lease.held", "lease.lost", "run.parked", "run.terminal", "run.queued", "run.unknown_engine"})
SWEEP_S = 5.0


def drive_tree(worker: Worker, run_id: int, *, max_visits: int | None = None) -> Standing:
    """Take a run and its child runs as far as they go. ``max_visits`` counts the visits of a run without children.

    Raises what ``Worker.drive`` raises.
    """
    if not has_children(run_id):
        return worker.drive(run_id, max_visits=max_visits)
    refuse_when_held(run_id)
    crew = Crew(worker, drivers=TREE_DRIVERS, root_id=run_id)
    crew.work(until=lambda: bool(crew.given_up) or patiently(lambda: is_stuck(run_id)))
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
    tree = Run.objects.live().filter(Q(pk=root_id) | Q(root_run_id=root_id))
    for status, reasons, held in tree.values_list("status", "reasons", "held"):
        if status in (RunStatus.QUEUED, RunStatus.RUNNING):
            return False
        causes = {reason["cause"] for reason in json.loads(reasons)}
        if status == RunStatus.WAITING and not held and causes - {WaitsFor.CHILD}:
            return False
    woken = Run.objects.runnable().filter(Q(pk=root_id) | Q(root_run_id=root_id))
    return not (woken.exists() or children.unheard_children(root_id))


class Crew:
    """Up to ``drivers`` runs at once. ``root_id`` None: all runs of the database."""

    def __init__(self, worker: Worker, *, drivers: int, root_id: int | None = None) -> None:
        self.worker = worker
        self.root_id = root_id
        self.drivers = drivers
        self._threads = ThreadPoolExecutor(max_workers=drivers, thread_name_prefix="waypost-driver")
        self._driven: dict[int, Future[None]] = {}
        self.failures: dict[int, int] = {}
        self.given_up: dict[int, Exception] = {}
        self._swept = 0.0
        self._news = threading.Event()

    def work(self, until: Callable[[], bool]) -> None:
        """Pick and drive runs until ``until`` says so or the worker shall stop; then wait for those at work."""
        try:
            while not self.worker.stopping() and not until():
                started = self.take_runs()
                self.sweep()
                if not started:
                    self._news.wait(timeout=self._pause_s())
                self._news.clear()
        finally:
            self._threads.shutdown(wait=True)

    def take_runs(self) -> int:
        """Start driving runnable runs while there are free drivers; how many were started."""
        self._driven = {run: future for run, future in self._driven.items() if not future.done()}
        free = self.drivers - len(self._driven)
        if free <= 0:
            return 0
        known = len(self._driven) + len(self.given_up)
        runs = patiently(lambda: list(self.candidates()[: free + known]))
        chosen = [run for run in runs if run not in self._driven and run not in self.given_up][:free]
        for run in chosen:
            future = self._threads.submit(self._drive, run)
            self._driven[run] = future
            future.add_done_callback(lambda _: self._news.set())
        return len(chosen)

    def candidates(self) -> QuerySet[Any, int]:
        """Ids of runnable runs, the most urgent first: priority, then who has waited longest."""
        runs = Run.objects.runnable().filter(engine_version__in=self.worker.settings.engine_versions)
        if self.root_id is not None:
            runs = runs.filter(Q(pk=self.root_id) | Q(root_run_id=self.root_id))
        return runs.order_by("-priority", "wake_at_ms", "pk").values_list("pk", flat=True)

    def sweep(self) -> None:
        """Now and then repeat what a crash may have left undone between runs."""
        if time.monotonic() - self._swept < SWEEP_S:
            return
        self._swept = time.monotonic()
        try:
            consequences.sweep(self.root_id)
        except Exception:
            logger.exception("The sweep failed; it is repeated.")

    def _drive(self, run_id: int) -> None:
        with database_thread():
            try:
                self.worker.drive_stretch(run_id)
            except Refusal as refusal:
                if refusal.code not in _PASSED_BY:
                    logger.error("Run %s: %s", run_id, refusal)
                    time.sleep(0.2)
            except Exception as error:
                # the driver has logged and counted it: the run is taken again, until it is poisoned
                self.failures[run_id] = self.failures.get(run_id, 0) + 1
                if self.failures[run_id] > self.worker.settings.poison_limit:
                    self.given_up[run_id] = error
                time.sleep(0.2)

    def _pause_s(self) -> float:
        """Until the next look: soon in one tree, where a timer may be short; calmer in a queue of all runs."""
        return 0.05 if self.root_id is not None else 0.25
