"""Duties: what any worker does now and then for everybody, beside driving runs.

Each duty is idempotent and may be done by any number of workers at once: the compare-and-swap of what it does decides
who does it. A duty that fails is logged and done again later; the others go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from workflows.engine import consequences
from workflows.ledger import workers
from workflows.operations import bulk, external, firing
from workflows.operations.notifications import tell_missed, tell_news
from workflows.operations.notifications_sending import COURIER
from workflows.operations.sessions import forget_ended
from workflows.operations.tallying import TALLY_S, write_tallies

logger = logging.getLogger(__name__)

#: How long a worker goes on with bulk actions before it looks at other duties, in seconds.
BULK_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """``every_s``: seconds between two times one worker does it. ``do`` may take a few seconds, and raise."""

    name: str
    every_s: float
    do: Callable[[], object]


def all_duties() -> tuple[Duty, ...]:
    """Every duty, in the order they are done."""
    return (
        Duty(name="consequences", every_s=5.0, do=consequences.sweep),
        Duty(name="external work", every_s=5.0, do=external.offer_again),
        Duty(name="bulk actions", every_s=5.0, do=carry_on_bulk_actions),
        Duty(name="schedules", every_s=2.0, do=firing.tick),
        Duty(name="timetables", every_s=3600.0, do=firing.keep_up),
        Duty(name="notifications", every_s=2.0, do=tell_news),
        Duty(name="missed notifications", every_s=300.0, do=tell_missed),
        Duty(name="deliveries", every_s=1.0, do=COURIER.look),
        Duty(name="old sessions", every_s=3600.0, do=forget_ended),
        Duty(name="silent workers", every_s=60.0, do=workers.forget),
        Duty(name="tallies", every_s=TALLY_S, do=write_tallies),
    )


def carry_on_bulk_actions() -> None:
    """Go on with bulk actions whose maker's process ended before they did."""
    for action in bulk.unfinished():
        bulk.carry_on(action, seconds=BULK_S)


class Duties:
    """The duties of one worker, with the time each was done last."""

    def __init__(self, duties: tuple[Duty, ...] | None = None) -> None:
        self._duties = all_duties() if duties is None else duties
        self._done: dict[str, float] = {}

    def perform(self, *, now: float | None = None) -> int:
        """Do what is due; how many duties were done without an error. ``now``: monotonic seconds."""
        moment = time.monotonic() if now is None else now
        done = 0
        for duty in self._duties:
            if moment - self._done.get(duty.name, float("-inf")) < duty.every_s:
                continue
            self._done[duty.name] = moment
            try:
                duty.do()
                done += 1
            except Exception:
                logger.exception("The duty %r failed; it is done again.", duty.name)
        return done
