"""Driving: a worker of this process, and the loop that takes one run as far as it goes."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from workflows.conf import KNOWN_ENGINE_VERSIONS, conf
from workflows.engine import consequences
from workflows.engine.driver import Driver, Settings
from workflows.engine.effects import Effects
from workflows.engine.heartbeat import Heartbeat
from workflows.engine.observing import Observer
from workflows.engine.pool import EffectPool
from workflows.engine.supervisor import Supervisor
from workflows.engine.workspaces import Workspaces
from workflows.errors import Refusal
from workflows.functions import autodiscover
from workflows.ledger.slots import holders_of
from workflows.models import Lease, Run
from workflows.operations.tallying import write_tallies
from workflows.statuses import LIVE_STATUSES, RunStatus, WaitsFor
from workflows.steps import KINDS

logger = logging.getLogger(__name__)

#: How often a waiting run is looked at, in seconds: controls and answers come through the database.
LOOK_S = 1.0
#: How often a run that stands in line is looked at, in seconds.
LINE_S = 0.3
#: How often a waiting run repeats what a crash may have left undone between runs, in seconds.
SWEEP_S = 5.0
#: Drawn once per process: a process that gets the number of a dead one is another worker.
_boot_nonce = uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands. ``wake_at_ms`` is the moment (Unix milliseconds) it goes on by itself, if there is one, and
    ``start_at_ms`` the one before which it does not start."""

    status: str
    reasons: str
    held: str
    closing: str
    wake_at_ms: int | None
    start_at_ms: int | None
    visits: int
    has_pending_controls: bool

    @property
    def is_final(self) -> bool:
        return self.status not in LIVE_STATUSES

    def is_due(self, now_ms: int) -> bool:
        """Whether a driver would find something to do."""
        if self.starts_later(now_ms):
            return False
        if self.held and self.status == RunStatus.PAUSED:
            return self.has_pending_controls
        if self.status in (RunStatus.QUEUED, RunStatus.RUNNING):
            return True
        return self.wake_at_ms is not None and self.wake_at_ms <= now_ms

    def starts_later(self, now_ms: int) -> bool:
        """Whether its moment has not come; one that is being ended waits for none."""
        return self.start_at_ms is not None and self.start_at_ms > now_ms and not self.closing

    @property
    def goes_on_at_ms(self) -> int | None:
        """When it goes on by itself, as far as that is known."""
        return self.start_at_ms if self.status == RunStatus.QUEUED else self.wake_at_ms

    @property
    def goes_on_by_itself(self) -> bool:
        """Whether only time has to pass, or others have to give a place back."""
        if self.status == RunStatus.QUEUED:
            return True
        if self.status != RunStatus.WAITING or self.held:
            return False
        return self.wake_at_ms is not None or any(one["cause"] == WaitsFor.SLOT for one in json.loads(self.reasons))


def standing_of(run_id: int) -> Standing:
    """Raises ``run.not_found``."""
    columns = ("status", "reasons", "held", "closing", "wake_at_ms", "start_at_ms", "visits")
    counts = ("controls_accepted", "controls_seen")
    row = Run.objects.filter(pk=run_id).values(*columns, *counts).first()
    if row is None:
        raise Refusal("run.not_found", run=run_id)
    accepted, seen = row.pop("controls_accepted"), row.pop("controls_seen")
    return Standing(**row, has_pending_controls=accepted > seen)


def worker_name() -> str:
    """``host:process:nonce``."""
    return f"{socket.gethostname()}:{os.getpid()}:{_boot_nonce}"


def _draw_nonce() -> None:
    global _boot_nonce
    _boot_nonce = uuid.uuid4().hex[:8]


os.register_at_fork(after_in_child=_draw_nonce)


class Worker:
    """What one process needs to drive runs. ``stopping`` says when to hand back; ``pause`` sleeps at most so many
    seconds, less when the worker shall stop."""

    def __init__(
        self, *, stopping: Callable[[], bool], pause: Callable[[float], None], observer: Observer | None = None
    ) -> None:
        autodiscover()
        settings = conf()
        self.stopping = stopping
        self.pause = pause
        self.observer = observer
        self._swept = time.monotonic()
        self.supervisor = Supervisor()
        self.pool = EffectPool(settings.effect_threads)
        self.effects = Effects(
            KINDS,
            pool=self.pool,
            supervisor=self.supervisor,
            workspaces=Workspaces(settings.workspace_root),
        )
        self.heartbeat = Heartbeat(
            ttl_ms=settings.lease_ttl_ms, interval_ms=settings.heartbeat_ms, on_alive=self.supervisor.extend
        )
        self.settings = Settings(
            ttl_ms=settings.lease_ttl_ms,
            poll_ms=settings.control_poll_ms,
            poison_limit=settings.poison_limit,
            grace_ms=settings.shutdown_grace_ms,
            engine_versions=KNOWN_ENGINE_VERSIONS,
        )

    def drive(self, run_id: int, *, max_visits: int | None = None) -> Standing:
        """Take a run as far as it goes: to its end, to people or an operator, or until the worker shall stop.

        While only time has to pass the run is parked and this waits. ``max_visits``: stop after so many visits.
        Raises what the driver raises: ``lease.held``, ``lease.lost``, ``plan.corrupt``, ``run.unknown_engine``.
        """
        standing = standing_of(run_id)
        last_visit = None if max_visits is None else standing.visits + max_visits
        failures = 0
        while not standing.is_final and not self.stopping():
            if last_visit is not None and standing.visits >= last_visit:
                break
            if standing.is_due(_now_ms()):
                failures = self._drive_once(
                    run_id, failures, None if last_visit is None else last_visit - standing.visits
                )
            elif standing.goes_on_by_itself:
                self.pause(_seconds_until(standing.goes_on_at_ms))
                self._sweep(run_id)
            else:
                break
            standing = standing_of(run_id)
        return standing

    def _sweep(self, run_id: int) -> None:
        """Now and then, while a run waits here: what it waits for may hang on a run that nobody drives."""
        if time.monotonic() - self._swept >= SWEEP_S:
            self._swept = time.monotonic()
            consequences.sweep(run_id)

    def _drive_once(self, run_id: int, failures: int, max_visits: int | None) -> int:
        """One stretch of driving. Returns the failures of the engine in a row, which its driver has counted."""
        try:
            self._driver(max_visits).drive(run_id)
        except Refusal as refusal:
            if refusal.code == "run.terminal":
                return 0
            if refusal.code == "run.queued":
                if not self.end_cancelled_holders(run_id):
                    self.pause(LINE_S)  # in line for a slot: whoever gives one back passes it on
                consequences.sweep(run_id)
            elif refusal.code in ("run.parked", "run.later"):
                self.pause(0.05)  # the database's clock is behind this host's
            else:
                raise
        except Exception:
            if failures >= self.settings.poison_limit:
                raise
            self.pause(0.1)
            return failures + 1
        return 0

    def drive_stretch(self, run_id: int, *, max_visits: int | None = None) -> None:
        """Drive a run until it ends, parks or is handed back. Raises what the driver raises."""
        self._driver(max_visits).drive(run_id)

    def end_cancelled_holders(self, run_id: int) -> int:
        """Bring to their end the runs that hold the slots this one waits for, are cancelled, and are driven by nobody:
        with ``cancel_oldest`` they give way to it. How many were driven."""
        run = Run.objects.filter(pk=run_id, concurrency_max__gt=0).first()
        if run is None:
            return 0
        driven = 0
        for holder in Run.objects.live().filter(pk__in=holders_of(run.concurrency_key)).exclude(closing=""):
            if holder.pk == run_id or Lease.objects.is_live(holder.pk):
                continue
            try:
                self.drive_stretch(holder.pk)
                driven += 1
            except Refusal as refusal:
                logger.info("Run %s still holds its slot: %s", holder.pk, refusal)
        return driven

    def _driver(self, max_visits: int | None) -> Driver:
        return Driver(
            owner=worker_name(),
            kinds=KINDS,
            effects=self.effects,
            heartbeat=self.heartbeat,
            settings=replace(self.settings, max_visits=max_visits),
            stopping=self.stopping,
            observer=self.observer,
        )

    def stop_effects(self) -> None:
        """End what runs now, without waiting for the grace period to pass."""
        self.pool.stop_all("shutdown")

    def close(self) -> None:
        """End the threads and the supervisor process; a function that does not return is left behind."""
        write_tallies()
        self.pool.close()
        self.supervisor.close()


def carry_out_cancel(run_id: int) -> bool:
    """Bring a cancelled run without closing steps to its end, if nobody else does; whether it has ended."""
    worker = Worker(stopping=lambda: False, pause=time.sleep)
    try:
        return worker.drive(run_id).is_final
    except Refusal as refusal:
        if refusal.code not in ("lease.held", "lease.lost"):
            raise
        return False
    finally:
        worker.close()


def _now_ms() -> int:
    return int(time.time() * 1000)


def _seconds_until(moment_ms: int | None) -> float:
    if moment_ms is None:
        return LOOK_S
    return min(LOOK_S, max(0.005, (moment_ms - _now_ms()) / 1000))
