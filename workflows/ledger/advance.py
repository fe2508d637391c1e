"""Advance: the one transaction of a driver. Settlements, pure visits, admissions, parking and ending ride in it.

1. The fence locks the run, checks epoch, lease and the revision the decision came from, and numbers the revisions.
2. Attempts that ended are settled, each from ``running`` under this epoch.
3. Visits, scopes, variables, new attempts, events and row versions are written.
4. A batch that parks or ends the run releases the lease and leaves the moment to wake at.

Ways to lose, each with nothing written: ``lease.lost`` (another epoch, or the lease has ended), ``run.conflict`` (a
control or an answer was committed since the decision: read it, decide again), ``attempt.conflict`` (an attempt is not
running any more), ``store.contended``, ``store.unavailable``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from workflows.ledger import hot_path, own_transaction, plain_path
from workflows.ledger.batch import Batch
from workflows.ledger.transactions import run_ledger_transaction, run_single_statement
from workflows.models import Run


def advance(batch: Batch) -> None:
    """Write a batch (see the module)."""
    connection = connections[DEFAULT_DB_ALIAS]
    if not own_transaction.is_possible(connection, batch):
        _in_transaction(lambda: hot_path.write(connection, batch), batch)
        return
    passed = run_single_statement(
        lambda: own_transaction.write(connection, batch),
        verb="advance",
        already_mine=lambda: was_committed(batch) or None,
    )
    if not passed:
        raise Run.objects.why_fenced_off(run_id=batch.run_id, epoch=batch.epoch)


def advance_plainly(batch: Batch, *, now: Any = None) -> None:
    """The same through the managers: the reference that the generated SQL is tested against."""
    _in_transaction(lambda: plain_path.write(batch, now=now), batch)


def _in_transaction(body: Callable[[], None], batch: Batch) -> None:
    def whole() -> bool:
        body()
        return True

    run_ledger_transaction(whole, verb="advance", already_mine=lambda: was_committed(batch) or None)


def was_committed(batch: Batch) -> bool:
    """Whether this batch is in the database: its random id is the last one a driver wrote."""
    return bool(Run.objects.filter(pk=batch.run_id, last_commit=batch.commit_id).exists())
