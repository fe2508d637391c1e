"""Inspect a run: whether its rows tell one story (promise REV.3). Reads only; what the database's own constraints
cannot say about rows that refer to each other by (run, number) or (run, path) is said here.

A row that is corrupt or cannot be read is a finding like any other. Whoever calls this while others write does it
inside one snapshot of the database (``snapshots.snapshot``), or under the run's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workflows.ledger import (
    inspection_external,
    inspection_relations,
    inspection_steps,
    inspection_values,
    inspection_versions,
    inspection_waiting,
)
from workflows.ledger.inspection_rows import DAMAGE, RunRows, pass_on_store_failures
from workflows.ledger.inspection_values import Verified

__all__ = ["Verified", "inspect_run"]

_PARTS: tuple[tuple[str, Callable[[RunRows], Iterator[str]]], ...] = (
    ("its events", inspection_steps.numbers_and_events),
    ("its visits", inspection_steps.visits),
    ("its attempts", inspection_steps.attempts),
    ("its versions", inspection_versions.versions),
    ("its history", inspection_versions.last_revision),
    ("its lease and its end", inspection_relations.ending),
    ("its messages", inspection_relations.controls),
    ("its scopes", inspection_waiting.bodies),
    ("its questions", inspection_waiting.questions),
    ("its external work", inspection_external.offers),
    ("its places", inspection_waiting.places),
    ("its relatives", inspection_relations.relatives),
    ("what it inherited", inspection_relations.inheritance),
)


def inspect_run(run_id: int, *, verified: Verified | None = None) -> list[str]:
    """What is wrong with the rows of a run, one sentence each; empty when they agree.

    ``verified`` remembers payloads and plans that were found whole, for the inspection of many runs. Rows that cannot
    be read are all that is said then, since everything else would follow from them. Raises ``Run.DoesNotExist``.
    """
    rows = RunRows(run_id)
    if rows.unreadable:
        return rows.unreadable
    known = verified or Verified()
    parts = (*_PARTS, ("its payloads and its plan", lambda rows: inspection_values.values(rows, known)))
    return [problem for name, part in parts for problem in _guarded(name, part, rows)]


def _guarded(name: str, part: Callable[[RunRows], Iterator[str]], rows: RunRows) -> Iterator[str]:
    try:
        yield from part(rows)
    except DAMAGE as error:
        pass_on_store_failures(error)
        yield f"{name} cannot be checked: {type(error).__name__}: {error}"[:500]
