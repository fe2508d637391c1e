"""Writing down what this process has counted, so that metrics can tell it of all workers together."""

from __future__ import annotations

import logging

from workflows.engine import tally
from workflows.errors import Refusal
from workflows.ledger.tallying import add_up

logger = logging.getLogger(__name__)

#: Time between two times that a worker writes its counts, in seconds.
TALLY_S = 10.0


def write_tallies() -> int:
    """Write and forget what was counted here; how much it was. Counts that may have been written already are not
    written again: a metric that shows too little for a moment is better than one that shows what never happened."""
    counts = tally.take()
    if not counts:
        return 0
    try:
        add_up(counts=counts)
    except Refusal as refusal:
        if refusal.code == "store.contended":
            tally.give_back(counts)
        logger.warning("What this worker has counted was not written: %s", refusal)
        return 0
    return sum(counts.values())
