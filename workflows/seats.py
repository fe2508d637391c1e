"""Seats: how many requests may wait in this process at once, whatever they wait for.

Each takes a thread of the web server, which keeps more threads than there are seats: requests that wait never keep
others from being answered.
"""

from __future__ import annotations

import threading

from workflows.conf import conf


class Seats:
    """The seats of one process; their number is ``api_waiting_limit``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = 0

    def take(self) -> bool:
        """Whether there was one. Whoever got one gives it back with ``leave``."""
        with self._lock:
            is_free = self._taken < conf().api_waiting_limit
            self._taken += is_free
        return is_free

    def leave(self) -> None:
        with self._lock:
            self._taken -= 1


SEATS = Seats()
