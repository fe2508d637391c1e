"""``cancel_oldest``: the oldest run gives way to a new one, also when whoever started that one died in between."""

from __future__ import annotations

import pytest

from tests.support.forks import fork_at
from tests.support.hand import Hand
from tests.support.rows import assert_sound
from workflows.engine.consequences import sweep
from workflows.errors import Refusal
from workflows.ledger.publishing import Concurrency
from workflows.ledger.slots import holders_of
from workflows.models import ControlMessage, Run, Slot
from workflows.operations import forking, runs
from workflows.operations.forking import ForkResult, ForkWish, fork
from workflows.operations.people import Actor
from workflows.operations.runs import Start, Started, abandon, start
from workflows.operations.workflows import definition_of_file
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

FILE = b"""
format: 1
name: demo
concurrency: { key: here, max: 1, when_full: cancel_oldest }
steps: [{ id: ask, kind: approval, ask: "Go on?" }]
"""


def started(key: str) -> Started:
    return start(Start(definition=definition_of_file(FILE), actor=Actor(name="ann", recorded="ann"), key=key))


ANN = Actor(name="ann", recorded="ann")


def cancelled() -> list[int]:
    found = ControlMessage.objects.filter(kind=ControlKind.CANCEL).order_by("run")
    return list(found.values_list("run", flat=True))


def die(*_: object, **__: object) -> None:
    raise Refusal("store.unavailable", detail="the process died")


def started_and_dead(key: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """A run that is there, whose starter died before anybody was asked to give way."""
    with monkeypatch.context() as death:
        death.setattr(runs, "give_way", die)
        with pytest.raises(Refusal):
            started(key)
    return int(Run.objects.get(idempotency_key=key).pk)


def test_the_oldest_gives_way_when_the_start_is_repeated_after_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.4, KILL: after publish, before the oldest was told"""
    first = started("first")
    started_and_dead("second", monkeypatch)
    assert (Run.objects.count(), cancelled()) == (2, [])

    again = started("second")

    assert (again.created, again.queued) == (False, True)
    assert cancelled() == [first.run_id]
    assert_sound()


def test_a_start_that_is_repeated_cancels_nobody_else() -> None:
    """PUB.3, PUB.4"""
    first, second, third = started("first"), started("second"), started("third")
    assert cancelled() == [first.run_id]
    assert not started("first").created
    assert not started("third").created
    assert cancelled() == [first.run_id]
    assert (second.queued, third.queued) == (True, True)
    assert_sound()


def test_the_oldest_gives_way_by_the_sweep_when_the_start_is_never_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.4, KILL: after publish, before the oldest was told"""
    first = started("first")
    second = started_and_dead("second", monkeypatch)
    sweep()
    assert cancelled() == [first.run_id]
    told = ControlMessage.objects.get(run=first.run_id, kind=ControlKind.CANCEL)
    assert (told.request_id, told.sender) == (f"newer:{second}", "ann")
    sweep()
    Hand(first.run_id).step()
    assert holders_of("here") == []
    sweep()
    assert (holders_of("here"), cancelled()) == ([second], [first.run_id])
    assert_sound()


def test_the_sweep_cancels_nobody_who_got_the_slot_after_the_new_run_came() -> None:
    """PUB.4: whoever stood in line before it is not older than it was meant"""
    first, second, third = started("first"), started("second"), started("third")
    Hand(first.run_id).step()
    sweep()
    assert holders_of("here") == [second.run_id]
    sweep()
    assert cancelled() == [first.run_id]
    assert Slot.objects.get(run=third.run_id).number is None
    assert_sound()


def test_a_line_that_only_waits_cancels_nobody() -> None:
    """PUB.4"""
    waiting = definition_of_file(FILE.replace(b"cancel_oldest", b"queue"))
    for key in ("first", "second"):
        start(Start(definition=waiting, actor=ANN, key=key))
    sweep()
    assert cancelled() == []


def forked(origin: int) -> ForkResult:
    return fork(ForkWish(run_id=origin, actor=ANN, at=1, request_id="again"))


def test_the_oldest_gives_way_to_a_fork_that_is_repeated_after_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.4, FORK.7, KILL: after the fork, before the oldest was told"""
    origin = started("origin").run_id
    abandon(origin, actor=ANN, reason="to be forked")
    first = started("first")
    with monkeypatch.context() as death:
        death.setattr(forking, "give_way", die)
        with pytest.raises(Refusal):
            forked(origin)
    assert cancelled() == []
    again = forked(origin)
    assert (again.created, again.queued, cancelled()) == (False, True, [first.run_id])
    assert forked(origin) == again
    assert cancelled() == [first.run_id]
    assert_sound()


def test_the_oldest_gives_way_to_a_fork_by_the_sweep() -> None:
    """PUB.4, KILL: after the fork, before the oldest was told"""
    origin = started("origin").run_id
    abandon(origin, actor=ANN, reason="to be forked")
    first = started("first")
    fork_at(origin, 1, concurrency=Concurrency(key="here", max=1, when_full="cancel_oldest"))
    sweep()
    assert cancelled() == [first.run_id]
    assert_sound()
