"""Checking the ledger: every run inspected in a snapshot of its own, while others go on writing (REV.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from workflows.errors import Refusal
from workflows.ledger.inspection import Verified, inspect_run
from workflows.ledger.inspection_strays import inspect_strays
from workflows.ledger.snapshots import snapshot
from workflows.models import Run

#: Runs whose numbers are read together.
_NUMBERS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found about a run, or about everything that belongs to no run (``run`` None)."""

    run: int | None
    problems: tuple[str, ...]


def count_runs() -> int:
    """How many runs a check of all of them looks at."""
    return int(Run.objects.count())


def check_ledger(runs: Iterable[int] | None = None) -> Iterator[Checked]:
    """Inspect these runs, or all of them and what belongs to none. One answer each; memory does not grow with them.

    A run that is pruned meanwhile is left out. Raises ``run.not_found`` for a run that was named and does not exist.
    """
    verified = Verified()
    for number in _numbers() if runs is None else runs:
        problems = _check(number, verified)
        if problems is not None:
            yield Checked(run=number, problems=problems)
        elif runs is not None:
            raise Refusal("run.not_found", run=number)
    if runs is None:
        with snapshot():
            yield Checked(run=None, problems=tuple(inspect_strays()))


def _check(number: int, verified: Verified) -> tuple[str, ...] | None:
    with snapshot():
        try:
            return tuple(inspect_run(number, verified=verified))
        except Run.DoesNotExist:
            return None


def _numbers() -> Iterator[int]:
    """The numbers of all runs, in order; those that appear meanwhile are among them."""
    last = 0
    while page := list(Run.objects.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_NUMBERS_AT_ONCE]):
        yield from page
        last = page[-1]
