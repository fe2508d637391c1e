"""The driver: holds the lease of one run and takes it from decision to decision until it ends or parks.

Decide from memory, commit, then start the effects that the commit admitted; their results come back through a queue.
A transaction that met somebody else's change writes nothing: the driver reads where the run stands and decides again.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from django.utils import timezone

from workflows.clock import unix_ms
from workflows.definitions.parameters import for_expressions
from workflows.definitions.plan import Plan
from workflows.engine import consequences, limits, recovery, scheduler, signals
from workflows.engine.contract import Kinds, Result
from workflows.engine.deliveries import Deliveries
from workflows.engine.draft import Draft
from workflows.engine.effects import Effects
from workflows.engine.heartbeat import Beat, Heartbeat
from workflows.engine.memory import Memory, identity_of, read_plan
from workflows.engine.observing import GuardedObserver, Observer, SilentObserver
from workflows.engine.patience import patiently
from workflows.engine.pool import Delivery
from workflows.engine.scheduler import Decision
from workflows.errors import Refusal
from workflows.facts import ControlRow
from workflows.ledger import leases
from workflows.ledger.advance import advance
from workflows.ledger.listeners import listeners
from workflows.log_context import marked
from workflows.models import Run
from workflows.statuses import RunStatus

logger = logging.getLogger(__name__)

#: Wall time a chain of pure steps may take before it is cut into another transaction, in seconds.
CHAIN_S = 0.05
#: How long a result waits for those of attempts that began together with its own, in seconds: for each next one, and
#: altogether. A transaction for several results costs little more than one for a single result.
GATHER_NEXT_S, GATHER_S = 0.001, 0.005


class Left(Enum):
    """Why a driver stopped driving."""

    ENDED = "ended"
    PARKED = "parked"
    HANDED_BACK = "handed back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``linger_ms``: a run that waits no longer than this keeps its lease meanwhile. ``max_visits``: hand the run
    back after that many visits made here."""

    ttl_ms: int
    poll_ms: int = 1_000
    poison_limit: int = 5
    grace_ms: int = 10_000
    linger_ms: int = 1_000
    engine_versions: frozenset[int] = frozenset({1})
    max_visits: int | None = None


class Driver:
    """Drives runs, one after the other, under one worker's name. ``stopping`` says when to hand a run back."""

    def __init__(
        self,
        *,
        owner: str,
        kinds: Kinds,
        effects: Effects,
        heartbeat: Heartbeat,
        settings: Settings,
        stopping: Callable[[], bool],
        observer: Observer | None = None,
    ) -> None:
        self.owner = owner
        self.kinds = kinds
        self.effects = effects
        self.heartbeat = heartbeat
        self.settings = settings
        self.stopping = stopping
        self.observer = GuardedObserver(observer or SilentObserver())

    def drive(self, run_id: int) -> Left:
        """Drive a run until it ends, parks, or is handed back.

        Raises what ``ledger.leases.acquire`` refuses with, ``plan.corrupt``, and ``lease.lost`` when another worker
        took over; nothing of this driver was written after that.
        """
        with marked(run=run_id):
            return self._drive(run_id)

    def _drive(self, run_id: int) -> Left:
        identity, run = identity_of(run_id)
        plan = read_plan(run.plan)
        identity = replace(identity, params=for_expressions(plan.params, identity.params))
        sent = time.monotonic()
        grant = leases.acquire(
            run_id=run_id,
            owner=self.owner,
            ttl_ms=self.settings.ttl_ms,
            engine_versions=self.settings.engine_versions,
        )
        session = Session(self, run, plan, grant)
        beat = session.beat = Beat(run_id=run_id, epoch=grant.epoch, held_since=sent, on_lost=session.on_lost)
        self.heartbeat.keep(beat)
        try:
            session.open(Memory(identity, epoch=grant.epoch, worker=self.owner, takes_slot=bool(run.concurrency_max)))
            return session.run()
        except Refusal:
            session.leave_late_results()
            raise
        except Exception:
            session.count_internal_error()
            session.leave_late_results()
            raise
        finally:
            self.effects.stop_run(run_id, "shutdown")
            self.heartbeat.drop(beat)
            session.release()
            session.deliveries.close()


class Session:
    """One stretch of driving a run under one epoch."""

    memory: Memory
    beat: Beat

    def __init__(self, driver: Driver, driven: Run, plan: Plan, grant: leases.Grant) -> None:
        self.driver = driver
        self.driven = driven
        self.plan = plan
        self.grant = grant
        self.deliveries = Deliveries(grant.run_id)
        self.results: dict[tuple[int, int], Result] = {}
        self.messages: list[ControlRow] = []
        self.running: set[tuple[int, int]] = set()
        self.begun_last: set[tuple[int, int]] = set()
        self.began = time.monotonic()
        self.first = True
        self.released = False
        self.first_visits = 0
        self.leaving_since: float | None = None
        self.has_news = False

    @property
    def run_id(self) -> int:
        return self.grant.run_id

    def open(self, memory: Memory) -> None:
        self.memory = memory
        self.memory.is_occupied = lambda visit: self.driver.effects.still_running(self.run_id, visit)
        listeners.append(self.on_news)
        self.first_visits = memory.visits
        self.messages = memory.pending_controls()

    def on_lost(self) -> None:
        """From the heartbeat's thread: the lease is gone, so nothing that runs may go on."""
        self.driver.effects.abort_run(self.run_id)
        self.deliveries.put(None)

    def on_news(self, run_id: int, revision: int) -> None:
        """Somebody in this process changed a run, after commit and from any thread: no need to wait for the poll."""
        if run_id == self.run_id:
            self.has_news = True
            self.deliveries.put(None)

    def run(self) -> Left:
        if self.grant.crashes >= self.driver.settings.poison_limit:
            return self.poison(self.grant.crashes)
        while True:
            decision = self.decide()
            if decision is None:
                continue
            left = self.left(decision)
            if left is not None:
                return left
            if not decision.draft.is_cut:
                self.wait(decision)

    # ---- deciding and committing ------------------------------------------------------------------------------------

    def decide(self) -> Decision | None:
        """Decide and commit; None when somebody else changed the run in between."""
        self.refuse_when_lost()
        now = timezone.now()
        if due := limits.groups_due(self.plan, self.memory, unix_ms(now)):
            # nothing was given: the database's clock is behind this host's
            self.take_deliveries(0 if consequences.give_turns(due) else limits.TURN_S)
            self.reload()
        deadline = time.monotonic() + CHAIN_S
        self.memory.active_ms = self.grant.active_ms + int((time.monotonic() - self.began) * 1000)
        decision = scheduler.decide(
            self.plan,
            self.memory,
            self.driver.kinds,
            results=self.results,
            messages=self.messages,
            now=now,
            new_id=new_id,
            out_of_time=lambda: time.monotonic() > deadline,
            first=self.first,
            start_nothing=self.is_leaving(),
        )
        if not self.commit(decision):
            return None
        self.first = False
        self.results = {}
        self.messages = signals.pending(self.messages, decision.draft.controls)
        return decision

    def commit(self, decision: Decision) -> bool:
        draft = decision.draft
        release = decision.parks and not self.lingers(decision)
        if draft.is_empty and not release:
            return True
        batch = draft.batch(
            commit_id=new_id(), parks=decision.parks, release=release, wake_at_ms=decision.waits_until_ms
        )
        try:
            advance(batch)
        except Refusal as refusal:
            if refusal.code != "run.conflict":
                raise
            self.reload()
            return False
        self.released = release
        self.absorb(draft)
        return True

    def absorb(self, draft: Draft) -> None:
        self.memory.absorb(draft)
        self.running -= set(self.results)
        for visit in draft.cancelled_visits:
            self.driver.effects.stop_visit(self.run_id, visit, "cancelled")
        if draft.admissions:
            self.refuse_when_lost()
        self.begun_last = {(admission.visit.number, admission.attempt.number) for admission in draft.admissions}
        self.running |= self.begun_last
        for admission in draft.admissions:
            self.driver.effects.start(
                admission, self.plan, self.memory.identity, self.deliveries.put, self.driver.observer.progress
            )
        self.driver.observer.committed(self.run_id, tuple(draft.events), draft.state)
        consequences.carry_out(self.driven, draft)

    def reload(self) -> None:
        """Somebody else changed the run: read it, and what people have said meanwhile. Raises ``run.terminal`` when it
        was abandoned: what runs is stopped then, and what it brought is kept as late."""
        patiently(self.memory.load)
        if self.memory.state.status == RunStatus.ABANDONED:
            raise Refusal("run.terminal", run=self.run_id, status=RunStatus.ABANDONED.value)
        self.messages = patiently(self.memory.pending_controls)

    def lingers(self, decision: Decision) -> bool:
        """Whether to keep the lease over a short wait instead of parking."""
        until = decision.waits_until_ms
        if decision.draft.ended or decision.draft.state.held or until is None or self.is_leaving():
            return False
        return until - unix_ms(timezone.now()) <= self.driver.settings.linger_ms

    def left(self, decision: Decision) -> Left | None:
        if decision.draft.ended:
            return Left.ENDED
        if self.released:
            return Left.PARKED
        return Left.HANDED_BACK if self.is_leaving() and not self.running else None

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def wait(self, decision: Decision) -> None:
        """Until a result is in, a moment has come, a control may have been accepted, or the worker shall leave."""
        poll_s = self.driver.settings.poll_ms / 1000
        polled = time.monotonic()
        while True:
            timeout = min(poll_s, 0.2) if self.leaving_since is not None else poll_s
            if decision.waits_until_ms is not None:
                timeout = min(timeout, max(0.0, decision.waits_until_ms / 1000 - time.time()))
            if self.take_deliveries(timeout):
                return
            self.refuse_when_lost()
            if decision.waits_until_ms is not None and time.time() * 1000 >= decision.waits_until_ms:
                return
            if self.has_news or time.monotonic() - polled >= poll_s:
                self.has_news = False
                polled = time.monotonic()
                if self.poll():
                    return
            if self.is_leaving() and (not self.running or self.stop_after_grace()):
                return

    def take_deliveries(self, timeout: float) -> bool:
        """Take every delivery there is, waiting for the first one; whether a result is in hand."""
        try:
            self.take(self.deliveries.get(timeout))
            until = time.monotonic() + GATHER_S
            while True:
                self.take(self.deliveries.get(self.gather(until)))
        except queue.Empty:
            return bool(self.results)

    def gather(self, until: float) -> float:
        """How long to wait for one more result: not at all when none of the attempts begun last is still out."""
        if not self.results or self.begun_last <= self.results.keys():
            return 0
        return min(GATHER_NEXT_S, max(0.0, until - time.monotonic()))

    def take(self, delivery: Delivery | None) -> None:
        if delivery is None:
            return
        key = self.driver.effects.key_of(delivery)
        if delivery.late or key not in self.running:
            self.deliveries.keep_late(delivery)
        else:
            self.results[key] = delivery.result

    def poll(self) -> bool:
        """Look whether somebody changed the run."""
        row = patiently(lambda: Run.objects.filter(pk=self.run_id).values_list("revision", flat=True).first())
        self.beat.polled_ms = unix_ms(timezone.now())
        if row == self.memory.revision:
            return False
        self.reload()
        return True

    # ---- leaving ----------------------------------------------------------------------------------------------------

    def is_leaving(self) -> bool:
        limit = self.driver.settings.max_visits
        made = self.memory.visits - self.first_visits
        if self.leaving_since is None and (self.driver.stopping() or (limit is not None and made >= limit)):
            self.leaving_since = time.monotonic()
        return self.leaving_since is not None

    def stop_after_grace(self) -> bool:
        """Kill what still runs when its grace is over; never says that waiting is over."""
        assert self.leaving_since is not None
        if self.driver.stopping() and time.monotonic() - self.leaving_since > self.driver.settings.grace_ms / 1000:
            self.driver.effects.stop_run(self.run_id, "shutdown")
        return False

    def refuse_when_lost(self) -> None:
        """Also when the heartbeat has not noticed yet: a process that was frozen and thawed starts no effect."""
        if self.beat.lost.is_set() or time.monotonic() - self.beat.held_since > self.driver.heartbeat.safe_s:
            raise Refusal("lease.lost", run=self.run_id, reason="it could not be renewed in time")

    def leave_late_results(self) -> None:
        """What this driver still has in hand is kept for the person who reconciles; it moves nothing."""
        self.take_deliveries(0)
        for key, result in self.results.items():
            self.deliveries.keep(key, result)

    def release(self) -> None:
        if self.on_news in listeners:
            listeners.remove(self.on_news)
        if not self.released and not self.beat.lost.is_set():
            try:
                leases.release(run_id=self.run_id, epoch=self.grant.epoch)
            except Refusal as refusal:
                logger.warning("The lease on run %s was not released and will end by itself: %s", self.run_id, refusal)

    # ---- poison -----------------------------------------------------------------------------------------------------

    def poison(self, crashes: int) -> Left:
        """Its driver died too often at the same visit: the run fails without closing steps."""
        draft = Draft(self.plan, self.memory, self.driver.kinds, now=timezone.now(), new_id=new_id)
        recovery.poison(draft, crashes)
        advance(draft.batch(commit_id=new_id(), parks=True, release=True, wake_at_ms=None))
        self.released = True
        self.absorb(draft)
        return Left.ENDED

    def count_internal_error(self) -> None:
        """An exception of the engine itself counts like a crash, so that it cannot repeat for ever."""
        logger.exception("Driving run %s failed.", self.run_id)
        try:
            crashes = leases.count_crash(run_id=self.run_id, epoch=self.grant.epoch)
            if crashes >= self.driver.settings.poison_limit:
                self.memory.load()
                self.poison(crashes)
        except Exception:
            logger.exception("The failure of run %s could not be counted.", self.run_id)


def new_id() -> str:
    """A random id: of a dispatch, or of a commit."""
    return uuid.uuid4().hex
