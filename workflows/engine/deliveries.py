"""Deliveries: the results that come to a driver from the pool, and what becomes of those that come after it left."""

from __future__ import annotations

import logging
import queue
import threading

from workflows.engine.contract import INTERRUPTED, Result
from workflows.engine.effects import Effects
from workflows.engine.pool import Delivery
from workflows.ledger.late_results import keep_late_result
from workflows.ledger.transactions import database_thread

logger = logging.getLogger(__name__)


class Deliveries:
    """The queue between the pool's threads and one driver of one run."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self._queue: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False

    def put(self, delivery: Delivery | None) -> None:
        """From any thread. None only wakes the driver. After the driver has left, the result is kept as a late one."""
        with self._lock:
            if not self._closed:
                self._queue.put(delivery)
                return
        if delivery is not None:
            with database_thread():
                self.keep_late(delivery)

    def get(self, timeout: float) -> Delivery | None:
        """The next delivery. Raises ``queue.Empty``."""
        return self._queue.get(timeout=timeout) if timeout > 0 else self._queue.get_nowait()

    def close(self) -> None:
        """The driver leaves: what is here, and what comes, moves nothing any more."""
        with self._lock:
            self._closed = True
        while True:
            try:
                delivery = self._queue.get_nowait()
            except queue.Empty:
                return
            if delivery is not None:
                self.keep_late(delivery)

    def keep_late(self, delivery: Delivery) -> None:
        self.keep(Effects.key_of(delivery), delivery.result)

    def keep(self, key: tuple[int, int], result: Result) -> None:
        """Keep a result on its attempt for the person who reconciles; one that was only killed says nothing."""
        if result.outcome == INTERRUPTED:
            return
        visit, number = key
        try:
            keep_late_result(
                run_id=self.run_id, visit=visit, number=number, outcome=result.outcome, output=result.output
            )
        except Exception:
            logger.exception("A late result of v%s.%s of run %s could not be kept.", visit, number, self.run_id)
