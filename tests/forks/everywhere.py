"""A fork at every visit of a run, each played to its end and compared with its origin (promises FORK)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.forks.replay import Replay, comparable
from tests.support.forks import digest_of
from tests.support.rows import assert_sound
from workflows.errors import Refusal
from workflows.ledger.forking_children import awaited_children
from workflows.models import Attempt, Run, Visit
from workflows.operations.forking import CHILD_CHOICES, ForkWish, fork
from workflows.operations.people import Actor
from workflows.statuses import Access, AttemptStatus, VisitStatus


def fork_everywhere(origin: int, *, most: int | None = None) -> int:
    """Fork a run that has ended at every visit that it made, or at ``most`` of them, from the first to the last; how
    many forks there were."""
    family = [origin, *_below(origin)]
    before = {run: digest_of(run) for run in family}
    end, made = comparable(origin), 0
    for visit in spread(list(Visit.objects.filter(run_id=origin).order_by("number")), most):
        for run_id in forks_before(origin, visit.number):
            check(run_id, origin, visit, end)
            made += 1
    assert {run: digest_of(run) for run in family} == before
    return made


def spread(visits: list[Visit], most: int | None) -> list[Visit]:
    """So many of them at even distances, the first and the last among them."""
    if most is None or len(visits) <= most:
        return visits
    return [visits[round(place * (len(visits) - 1) / (most - 1))] for place in range(most)]


def _below(run_id: int) -> list[int]:
    children = list(Run.objects.filter(parent_run=run_id).values_list("pk", flat=True))
    return [*children, *(run for child in children for run in _below(child))]


def forks_before(origin: int, visit: int) -> list[int]:
    """The fork before a visit; where a child run was awaited, one for each answer."""
    run = Run.objects.get(pk=origin)
    wish = {"run_id": origin, "actor": Actor(name=run.started_by, recorded="tests"), "begin_with": f"v{visit}"}
    if not awaited_children(origin, Visit.objects.get(run=run, number=visit).revision_before):
        return [fork(ForkWish(**wish)).run_id]  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="waits for its child"):
        fork(ForkWish(**wish))  # type: ignore[arg-type]
    return [fork(ForkWish(**wish, child=choice)).run_id for choice in CHILD_CHOICES]  # type: ignore[arg-type]


def check(run_id: int, origin: int, visit: Visit, end: object) -> None:
    """Play a fork: it lacks the visit it was to begin with, repeats nothing that was settled, and ends like its
    origin."""
    run = Run.objects.get(pk=run_id)
    assert run.visits == visit.number - 1 == Visit.objects.filter(run=run).count()
    assert not Visit.objects.filter(run=run, inherited=False).exists()
    settled = set(Visit.objects.filter(run=run).exclude(status=VisitStatus.OPEN).values_list("number", flat=True))
    writing = Visit.objects.filter(run=run, status=VisitStatus.OPEN, access=Access.WRITE)
    running = Attempt.objects.filter(run=run, status=AttemptStatus.RUNNING).values_list("visit", flat=True)
    doubtful = set(writing.filter(number__in=list(running)).values_list("number", flat=True))
    inherited_ids = set(Attempt.objects.filter(run=run, inherited=True).values_list("dispatch_id", flat=True))
    replay = Replay(run_id, origin)
    replay.play_out()
    what = f"the fork {run_id} of run {origin} before v{visit.number}"
    assert not set(replay.executed) & settled, f"{what} repeated what was settled"
    assert not set(replay.executed) & doubtful, f"{what} repeated a write that may have happened"
    own = Attempt.objects.filter(run=run, inherited=False).values_list("dispatch_id", flat=True)
    assert not set(own) & inherited_ids, f"{what} used a dispatch id of its origin"
    found = list(differences(end, comparable(run_id)))
    assert not found, f"{what}: {found[:5]}"
    assert_sound(run_id, *_below(run_id))


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, for a message that can be read."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            yield from differences(wanted.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif wanted != found:
        yield f"{path} is {str(found)[:300]} instead of {str(wanted)[:300]}"
