"""What the inspection says about bodies, questions, places and children that do not agree (REV.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.plans import publish_run, workflow
from tests.support.players import Player, play
from tests.support.worlds import publish_in_line, publish_parent
from workflows.ledger.inspection import inspect_run
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Fanout, Interrupt, Run, Scope, Slot, Vote

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

ASKS = workflow("  - { id: each, kind: map, over: '${ [0, 1] }', do: [{ id: ask, kind: question, ask: Well }] }")
KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")


@ledger_transaction
def spoil(change: Callable[[], object]) -> None:
    change()


def asking() -> int:
    player = Player(publish_run(ASKS))
    player.play()
    assert inspect_run(player.run_id) == []
    return player.run_id


def problems_after(run_id: int, change: Callable[[], object]) -> list[str]:
    spoil(change)
    return inspect_run(run_id)


def test_a_question_that_is_open_needs_a_paused_attempt() -> None:
    run_id = asking()
    attempts = Attempt.objects.filter(run_id=run_id, visit=2)
    found = problems_after(run_id, lambda: attempts.update(status="succeeded"))
    assert "the question v2.1 is open, but its attempt is succeeded" in found


def test_a_question_that_is_closed_has_no_paused_attempt() -> None:
    run_id = asking()
    questions = Interrupt.objects.filter(run_id=run_id, visit=2)
    found = problems_after(run_id, lambda: questions.update(status="closed"))
    assert "the question v2.1 is closed, but its attempt is paused" in found
    assert "the question v2.1 is closed, settled at revision None" in found


def test_a_paused_attempt_needs_its_question() -> None:
    run_id = asking()
    found = problems_after(run_id, lambda: Interrupt.objects.filter(run_id=run_id, visit=2).delete())
    assert found == ["v2.1 is paused without a question"]


def test_an_answered_question_names_who_answered_what() -> None:
    run_id = asking()
    answered = {"status": "answered", "revision_settled": 4}
    found = problems_after(run_id, lambda: Interrupt.objects.filter(run_id=run_id, visit=2).update(**answered))
    assert found == ["the question v2.1 is answered with the answer none"]


def test_a_vote_needs_a_question() -> None:
    run_id = asking()
    vote = {"visit": 7, "attempt": 1, "voter": "ann", "recorded_by": "ann", "decision": "x", "revision_created": 1}
    moment = Run.objects.get(pk=run_id).created_at
    found = problems_after(run_id, lambda: Vote.objects.create(run_id=run_id, voted_at=moment, **vote))
    assert found == ["a vote of ann belongs to v7.1, which asks nothing"]


def test_an_item_is_one_of_the_list() -> None:
    run_id = asking()
    found = problems_after(run_id, lambda: Fanout.objects.filter(run_id=run_id).update(total=1))
    assert found == ["scope each[1] is item 1 of 1", "the fan-out of v1 counts 1 items, its list has 2"]


def test_an_item_is_there_once() -> None:
    run_id = asking()
    found = problems_after(run_id, lambda: Scope.objects.filter(run_id=run_id, path="each[1]").update(index=0))
    assert "item 0 of v1 has 2 scopes" in found


def test_a_body_belongs_to_a_visit_that_is_open() -> None:
    run_id = asking()
    found = problems_after(run_id, lambda: Scope.objects.filter(run_id=run_id, path="each[1]").update(parent_visit=9))
    assert "scope each[1] belongs to v9, which does not exist" in found


def test_an_ended_run_has_no_slot() -> None:
    run_id = publish_run(KID)
    play(run_id)
    slot = {"kind": "limit", "name": "g", "number": 1, "max": 1, "entered_ms": 0}
    found = problems_after(run_id, lambda: Slot.objects.create(run_id=run_id, **slot))
    assert found == ["the run is succeeded and has a limit slot g"]


def test_a_place_belongs_to_a_scope_that_lives() -> None:
    run_id = asking()
    slot = {"kind": "limit", "name": "g", "number": None, "max": 1, "entered_ms": 0, "scope": "each[7]"}
    found = problems_after(run_id, lambda: Slot.objects.create(run_id=run_id, **slot))
    assert found == ["scope each[7] has ended and has a place in line for g"]


def test_a_paused_run_holds_its_slot() -> None:
    run_id = publish_in_line(ASKS, "k").run_id
    play(run_id)
    assert inspect_run(run_id) == []
    found = problems_after(run_id, lambda: Slot.objects.all().delete())
    assert found == ["the run is paused without its slot of k"]


def test_an_attempt_that_waits_for_a_child_has_one() -> None:
    parent = publish_parent(workflow("  - { id: call, kind: workflow, ref: kid }", name="parent"), KID)
    play(parent)
    assert inspect_run(parent) == []
    found = problems_after(parent, lambda: Run.objects.filter(parent_run_id=parent).update(invocation_key="other"))
    assert found == ["v1.1 waits for a child run that does not exist"]
