"""One life: what a driver process does with a run, from its start to its end or to the driver's own death.

Every life does the same. The first one starts the run, the later ones find it by its key; each drives it and its child
runs, does what people do (answer, send signals, cancel, reconcile from the effect's own log), and goes on until all
have ended. It drives one run at a time, so that two lives come by the same moments in the same order.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from django.utils import timezone

from tests.crashes import effects, ends, people
from tests.crashes.family import FORK, Family, Member, keys_of
from tests.crashes.moments import Point, Watch, unwatched, watch_ledger
from tests.crashes.scenarios import Cancelled, Scenario
from tests.support.hand import expire
from workflows.clock import database_now_ms
from workflows.engine import consequences
from workflows.engine.driver import Settings
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import ControlMessage, Lease, Visit
from workflows.operations.driving import Standing, Worker, standing_of
from workflows.operations.forking import ForkWish, fork
from workflows.operations.people import Actor
from workflows.operations.runs import Start, cancel, start
from workflows.statuses import LIVE_STATUSES, ControlKind
from workflows.steps import KINDS

#: How long a life waits for the lease of the one before, and for the end of its effects, in seconds.
PATIENCE_S = 30.0
#: Even a wait whose end has passed already parks the run.
PARK_ALWAYS_MS = -3_600_000
#: Refusals after which a driver tries again: somebody else holds the run, or held it when this one was too slow.
_TRY_AGAIN = frozenset({"lease.held", "lease.lost", "run.parked", "store.contended"})
#: Refusals that say that there is nothing to drive yet, or any more.
_NOTHING_TO_DRIVE = frozenset({"run.queued", "run.terminal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A life to live. ``dies_of`` is the signal at ``dies_at``: SIGKILL, or SIGSTOP to freeze there. ``lingers``: the
    driver keeps its lease over short waits instead of parking the run. Not ``is_first``: the life before is dead, so
    nobody waits for the end of its leases."""

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
        self.scenario = order.scenario
        self.watch = watch
        self.worker = worker
        self.family = Family(order.scenario, order.key)
        self.decisions: list[tuple[str, str]] = []

    def live(self) -> dict[str, Any]:
        """The report of a life that came to its end; a killed one leaves none."""
        left = [] if self.order.is_first else wait_for_quiet(self.order.log)
        found = None if self.order.is_first else self._look()
        run_id = self._start()
        self._begin(run_id)
        self._drive()
        members = self.family.members()
        return {
            "found": found,
            "left": left,
            "points": [asdict(point) for point in self.watch.points],
            "decisions": self.decisions,
            "end": ends.end_of(run_id),
            "others": {member.label: ends.end_of(member.run_id) for member in members if member.label},
            "problems": ends.problems_of(members),
            "runs": sum(1 for member in members if member.label == ""),
        }

    # ---- beginning --------------------------------------------------------------------------------------------------

    def _look(self) -> dict[str, Any]:
        members = self.family.members()
        found = ends.found_after_death(members, effects.read_log(self.order.log))
        with unwatched():
            for member in members:
                if Lease.objects.is_live(member.run_id):
                    expire(member.run_id)
        return found

    def _start(self) -> int:
        run_id = 0
        for label, key in keys_of(self.scenario, self.order.key).items():
            wish = Start(
                definition=self.scenario.definition_for(self.order.key),
                actor=Actor(name=self.scenario.started_by, recorded=self.scenario.started_by),
                given=self.scenario.params_for(self.order.key, label),
                key=key,
            )
            run_id = start(wish).run_id
        return run_id

    def _begin(self, run_id: int) -> None:
        """What happens before the run is driven for the first time."""
        label_of = self.family.label_of
        self.worker.effects.kinds = effects.recorded_kinds(KINDS, self.watch, self.order.log, label_of)
        linger_ms = Settings(ttl_ms=1).linger_ms if self.order.lingers else PARK_ALWAYS_MS
        self.worker.settings = replace(self.worker.settings, linger_ms=linger_ms)
        if self.order.is_first:
            wait_for_lease(run_id)
        root = next(member for member in self.family.members() if member.run_id == run_id)
        if self.scenario.cancelled is Cancelled.AT_ITS_START:
            self._cancel(root)
        elif self.scenario.cancelled is Cancelled.WHILE_DRIVEN and not is_cancelled(run_id):
            self._cancel_while_driven(root)
        while people.send_one(self.scenario, root, ahead=True):
            pass

    def _cancel_while_driven(self, root: Member) -> None:
        """The cancel is accepted while a driver holds the lease, which dies before it has heard of it."""
        ttl_ms, versions = self.worker.settings.ttl_ms, self.worker.settings.engine_versions
        try:
            leases.acquire(run_id=root.run_id, owner="another", ttl_ms=ttl_ms, engine_versions=versions)
        except Refusal as refusal:
            if refusal.code not in _NOTHING_TO_DRIVE | {"lease.held"}:
                raise
        self._cancel(root)
        with unwatched():
            expire(root.run_id)

    def _cancel(self, root: Member) -> bool:
        if is_cancelled(root.run_id):
            return False
        cancel(root.run_id, actor=people.person(self.scenario.started_by), request_id=self.order.key)
        return True

    # ---- driving ----------------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        while (live := [member for member in self.family.members() if not member.is_final]) or self._fork():
            if live and not (self._drive_what_is_due(live) or self._sweep(live) or self._attend(live)):
                self._let_time_pass(live)

    def _drive_what_is_due(self, live: list[Member]) -> bool:
        """Drive each run that has something to do; whether there was one."""
        driven = False
        for member in live:
            if standing_of(member.run_id).is_due(database_now_ms()):
                driven |= self._drive_on(member.run_id)
        return driven

    def _drive_on(self, run_id: int) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.worker.drive_stretch(run_id)
            except Refusal as refusal:
                if refusal.code in _NOTHING_TO_DRIVE:
                    return False
                if refusal.code not in _TRY_AGAIN or time.monotonic() > deadline:
                    raise
            else:
                return True
            time.sleep(0.02)

    def _sweep(self, live: list[Member]) -> bool:
        """What every crew repeats now and then."""
        if not self.scenario.has_others:
            return False
        return sum(consequences.sweep(root) for root in sorted({member.root_id for member in live})) > 0

    def _let_time_pass(self, live: list[Member]) -> None:
        standings = [standing_of(member.run_id) for member in live]
        if any(one.status not in LIVE_STATUSES for one in standings):
            return  # another worker ended it meanwhile
        moments = [one.wake_at_ms for one in standings if not one.held and one.wake_at_ms is not None]
        if not moments and not any(_stands_in_line(one) for one in standings):
            raise RuntimeError(f"Nothing goes on: {standings}")
        left_s = (min(moments) - database_now_ms()) / 1000 if moments else 0.0
        if left_s > PATIENCE_S:
            raise RuntimeError(f"Nothing goes on for {left_s:.0f} s: {standings}")
        time.sleep(max(0.001, left_s))

    def _fork(self) -> bool:
        """Fork the run when all have ended; whether there is one to be driven now."""
        members = {member.label: member for member in self.family.members()}
        if not self.scenario.fork or FORK in members:
            return False
        actor = people.person(self.scenario.started_by)
        wish = ForkWish(
            run_id=members[""].run_id, actor=actor, begin_with=self.scenario.fork, request_id=self.order.key
        )
        return fork(wish).created

    # ---- what people do ---------------------------------------------------------------------------------------------

    def _attend(self, live: list[Member]) -> bool:
        """Do one thing that the runs wait for people to do; whether there was one."""
        acts: list[Callable[[Member], bool]] = [self._reconcile_one]
        if self.scenario.cancelled is Cancelled.WHILE_IT_ASKS:
            acts.append(self._cancel_at_a_question)
        else:
            acts.append(lambda member: people.answer_one(self.scenario, member))
            acts.append(lambda member: people.send_one(self.scenario, member))
        return any(act(member) for act in acts for member in live)

    def _cancel_at_a_question(self, member: Member) -> bool:
        if not people.open_questions(member):
            return False
        return self._cancel(next(one for one in self.family.members() if one.run_id == member.root_id))

    def _reconcile_one(self, member: Member) -> bool:
        for visit in ends.undecided(member.run_id)[:1]:
            self._reconcile(member, visit)
            return True
        return False

    def _reconcile(self, member: Member, visit: Visit) -> None:
        key = ends.key_of_visit(member, visit)
        done = effects.read_log(self.order.log).done.get(key)
        if done is None:
            told = Reconciliation(decision="did_not", actor="kit", reason="its log does not show it")
        else:
            result = done[-1].result(member.plan.steps[visit.step])
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
        reconcile(run_id=member.run_id, visit=visit.number, reconciliation=told, now=timezone.now())
        self.decisions.append((key, told.decision))


class Lives:
    """The lives of one process, one after the other."""

    def __init__(self) -> None:
        self.worker = Worker(stopping=lambda: False, pause=time.sleep)

    def live(self, order: Order) -> dict[str, Any]:
        """Live a life. From now on this process is watched, and good for nothing but lives."""
        watch = Watch(order.dies_at, order.dies_of)
        watch_ledger(watch)
        effects.record_processes()
        return Life(order, watch, self.worker).live()

    def close(self) -> None:
        """End every thread and process of these lives."""
        self.worker.pool.close(wait_seconds=5)
        self.worker.supervisor.close()
        deadline = time.monotonic() + 5
        while threading.active_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)  # the heartbeat's thread ends by itself


def is_cancelled(run_id: int) -> bool:
    return bool(ControlMessage.objects.filter(run_id=run_id, kind=ControlKind.CANCEL).exists())


def _stands_in_line(standing: Standing) -> bool:
    return standing.status == "queued" or (standing.goes_on_by_itself and standing.wake_at_ms is None)


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
