"""The heartbeat of a worker: renews its leases from a thread and a connection of its own (promise LEASE 5–8)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.transactions import database_thread
from workflows.log_context import marked

logger = logging.getLogger(__name__)

#: How long before a lease can end its worker must have stopped, in milliseconds.
MARGIN_MS = 10_000


@dataclass(slots=True, eq=False, kw_only=True)
class Beat:
    """One lease that is kept alive. ``lost`` is set when it is gone, or may be before anybody can say.

    ``held_since`` is the monotonic moment before the last successful renewal was sent: from there the lease lives for
    its TTL at least, whatever the clocks say.
    """

    run_id: int
    epoch: int
    held_since: float
    on_lost: Callable[[], None]
    lost: threading.Event = field(default_factory=threading.Event)
    polled_ms: int | None = None


class Heartbeat:
    """Renews every lease it was given each ``interval_ms``; ``on_alive(seconds)`` hears for how long that lasts."""

    def __init__(self, *, ttl_ms: int, interval_ms: int, on_alive: Callable[[float], None]) -> None:
        self.ttl_ms = ttl_ms
        self.interval_s = interval_ms / 1000
        self.safe_s = (ttl_ms - min(MARGIN_MS, ttl_ms // 4)) / 1000
        self._on_alive = on_alive
        self._beats: dict[int, Beat] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def keep(self, beat: Beat) -> None:
        """Keep this lease alive until it is dropped or lost."""
        with self._changed:
            self._beats[beat.run_id] = beat
            self._on_alive(self.safe_s)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="waypost-heartbeat", daemon=True)
                self._thread.start()

    def drop(self, beat: Beat) -> None:
        with self._changed:
            if self._beats.get(beat.run_id) is beat:
                del self._beats[beat.run_id]
            self._changed.notify_all()

    def _run(self) -> None:
        with database_thread():
            while True:
                with self._changed:
                    self._changed.wait(timeout=self.interval_s)
                    beats = list(self._beats.values())
                    if not beats:
                        self._thread = None
                        return
                self._renew_all(beats)

    def _renew_all(self, beats: list[Beat]) -> None:
        for beat in beats:
            sent = time.monotonic()
            if sent - beat.held_since < self.interval_s * 0.9 or beat.lost.is_set():
                continue
            try:
                renewed = leases.renew(
                    run_id=beat.run_id, epoch=beat.epoch, ttl_ms=self.ttl_ms, polled_ms=beat.polled_ms
                )
            except Refusal as refusal:
                with marked(run=beat.run_id):
                    logger.warning("The lease on run %s could not be renewed: %s", beat.run_id, refusal)
                renewed = None
            if renewed:
                beat.held_since = sent
            elif renewed is False:
                self._lose(beat)
        self._judge(beats)

    def _judge(self, beats: list[Beat]) -> None:
        """A lease that was not renewed in time counts as lost before it can end."""
        now = time.monotonic()
        for beat in beats:
            if now - beat.held_since > self.safe_s:
                self._lose(beat)
        held = [beat.held_since for beat in beats if not beat.lost.is_set()]
        if held:
            self._on_alive(min(held) + self.safe_s - now)

    def _lose(self, beat: Beat) -> None:
        if not beat.lost.is_set():
            with marked(run=beat.run_id):
                logger.warning("The lease on run %s is lost; what runs of it is stopped.", beat.run_id)
                beat.lost.set()
                beat.on_lost()
