"""Who wants to know that a run changed: called after commit with the run's id and revision; errors are only logged.

A doorbell, not a message: whoever is called reads the rows. A lost call is made good by the sweep.
"""

from __future__ import annotations

from collections.abc import Callable

from workflows.ledger.transactions import after_commit

Listener = Callable[[int, int], object]

listeners: list[Listener] = []


def announce(run_id: int, revision: int) -> None:
    """Tell every listener once the present ledger transaction is committed."""
    for listener in tuple(listeners):
        after_commit(lambda listener=listener: listener(run_id, revision))  # type: ignore[misc]
