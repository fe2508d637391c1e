"""``cancel_oldest``: the oldest run gives way to a new one, also when whoever started that one died in between."""

from __future__ import annotations

import pytest

from tests.support.rows import assert_sound
from workflows.errors import Refusal
from workflows.models import ControlMessage, Run
from workflows.operations import runs
from workflows.operations.people import Actor
from workflows.operations.runs import Start, Started, start
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


def cancelled() -> list[int]:
    found = ControlMessage.objects.filter(kind=ControlKind.CANCEL).order_by("run")
    return list(found.values_list("run", flat=True))


def test_the_oldest_gives_way_when_the_start_is_repeated_after_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.4, KILL: after publish, before the oldest was told"""
    first = started("first")

    def die(*_: object, **__: object) -> None:
        raise Refusal("store.unavailable", detail="the process died")

    with monkeypatch.context() as death:
        death.setattr(runs, "_give_way", die)
        with pytest.raises(Refusal):
            started("second")
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
