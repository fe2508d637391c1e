"""Adding up what workers have counted."""

from __future__ import annotations

from collections.abc import Mapping

from workflows.ledger.transactions import ledger_transaction
from workflows.models import Tally
from workflows.models.tally import TallyKey


@ledger_transaction
def add_up(*, counts: Mapping[TallyKey, int]) -> None:
    """Add counts to the tallies.

    1. Rows that are missing are made with zero.
    2. Each row is added to, in one order for all workers.

    Raises ``store.contended`` when nothing was added, ``store.unavailable`` when nobody can say.
    """
    Tally.objects.add(counts)
