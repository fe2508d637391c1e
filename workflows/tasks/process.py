"""What one Celery process keeps: its worker, made after the fork, its registration, and the thread that sweeps.

Two facts are shared by a Celery worker's main process and its children, in memory that is mapped before the fork: that
it shall stop, and when its main loop, which takes the messages, last came round. A main process that has lost its
broker comes round no more; its children still beat, and are told apart by that.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator

from workflows.errors import Refusal
from workflows.ledger.transactions import database_thread
from workflows.operations.crew import CROWD, PASSED_BY, STRETCH_VISITS
from workflows.operations.driving import Worker, standing_of
from workflows.operations.duties import Duties
from workflows.operations.picking import Picker, runnable_count
from workflows.operations.workers import Registration
from workflows.statuses import WorkerKind
from workflows.tasks.doorbell import DOORBELL
from workflows.tasks.queue import waiting_messages

logger = logging.getLogger(__name__)

#: Time between two sweeps of all processes of one Celery worker, in seconds.
SWEEP_S = 2.0
#: Messages that the sweep keeps in the queue at most.
MOST_RUNG = 200
#: Runs that are tried for one message, when other workers are faster.
TRIES = 4
#: A message may also name a run that is gone.
_PASSED_BY = PASSED_BY | {"run.not_found"}


class Shared:
    """Numbers that a main process and its children see alike: moments of the monotonic clock, 0 for never."""

    _FORMAT = struct.Struct("ddd")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self._FORMAT.size)

    def __getitem__(self, place: int) -> float:
        return float(self._FORMAT.unpack(self._memory[: self._FORMAT.size])[place])

    def __setitem__(self, place: int, moment: float) -> None:
        struct.pack_into("d", self._memory, place * 8, moment)


STOPPING, LOOKED, SWEPT = 0, 1, 2
SHARED = Shared()


def shall_stop() -> bool:
    return SHARED[STOPPING] > 0


class Process:
    """One process that answers messages. Made after the fork; threads and connections are its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._duties = Duties()
        self._failures: dict[int, int] = {}
        self._over = threading.Event()
        self._registration = Registration(
            kind=WorkerKind.CELERY,
            drivers=1,
            is_stopping=shall_stop,
            last_look=lambda: SHARED[LOOKED],
            after_s=0.05,  # from its thread: a process that begins is waited for
        )
        self._sweeper = threading.Thread(target=self._sweep, name="waypost-sweep", daemon=True)

    def start(self) -> None:
        self._registration.__enter__()
        self._sweeper.start()

    def close(self) -> None:
        """Say goodbye; what was driven has been handed back before."""
        self._over.set()
        self._sweeper.join(timeout=5.0)
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None
        self._registration.close()
        DOORBELL.flush()

    # ---- answering a message ----------------------------------------------------------------------------------------

    def answer(self, hint: int) -> int | None:
        """Drive one run for a while: the one whose turn it is, which need not be the one of the message. Returns its
        number, None when there is nothing to drive. A run that could go on after its stretch rings again."""
        worker = self._own_worker()
        for run_id in self._proposals(worker, hint):
            if shall_stop():
                return None
            if self._drive(worker, run_id):
                if not shall_stop() and standing_of(run_id).is_due(int(time.time() * 1000)):
                    DOORBELL.ring(run_id)
                return run_id
        return None

    def _own_worker(self) -> Worker:
        with self._lock:
            if self._worker is None:
                self._worker = Worker(stopping=shall_stop, pause=time.sleep)
            return self._worker

    def _proposals(self, worker: Worker, hint: int) -> Iterator[int]:
        """The run whose turn it is; when another worker was faster some of those that follow, at last the hint."""
        skip = self._given_up(worker)
        for count, crowd in ((1, 1), (TRIES, CROWD)):
            found = Picker(engine_versions=worker.settings.engine_versions, skip=skip).pick(count, crowd=crowd)
            yield from found
            if not found:
                break
            skip += found
        if hint > 0 and hint not in skip:
            yield hint

    def _given_up(self, worker: Worker) -> list[int]:
        return [run for run, failures in self._failures.items() if failures > worker.settings.poison_limit]

    def _drive(self, worker: Worker, run_id: int) -> bool:
        """Whether it was ours for a while."""
        try:
            worker.drive_stretch(run_id, max_visits=STRETCH_VISITS)
        except Refusal as refusal:
            if refusal.code in _PASSED_BY:
                return refusal.code == "lease.lost"
            logger.error("Run %s: %s", run_id, refusal)
            self._failures[run_id] = self._failures.get(run_id, 0) + 1
        except Exception:
            # the driver has logged and counted it: the run is taken again, until it is poisoned
            self._failures[run_id] = self._failures.get(run_id, 0) + 1
        else:
            self._failures.pop(run_id, None)
        return True

    # ---- sweeping ---------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        with database_thread():
            while not self._over.wait(timeout=SWEEP_S / 4):
                if shall_stop() or time.monotonic() - SHARED[SWEPT] < SWEEP_S:
                    continue
                SHARED[SWEPT] = time.monotonic()
                try:
                    self._duties.perform()
                    self.ring_for_the_forgotten()
                except Exception as error:
                    logger.warning("The sweep failed (%s); it is done again.", error)

    def ring_for_the_forgotten(self) -> int:
        """As many messages as there are runs that could go on, or as the queue still takes; how many were sent.

        Messages name no run that only they stand for, so their number is all that matters: what lies in the queue
        already counts, and a broker that lost everything is filled again.
        """
        wanted = runnable_count(most=MOST_RUNG)
        if not wanted:
            return 0
        missing = wanted - waiting_messages()
        return sum(DOORBELL.ring(-number) for number in range(1, missing + 1))


_process: Process | None = None


def own_process() -> Process:
    """The one of this process, made and started when it is first asked for."""
    global _process
    if _process is None or _process.pid != os.getpid():
        _process = Process()
        _process.start()
    return _process


def end_process() -> None:
    """Close the one of this process, if there is one."""
    global _process
    if _process is not None and _process.pid == os.getpid():
        _process.close()
    _process = None
