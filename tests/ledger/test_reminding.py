"""Reminders of questions, and several answers at once (promises INT)."""

from __future__ import annotations

import pytest

from tests.support.plans import publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import all_rows, assert_sound
from workflows.clock import unix_ms
from workflows.errors import Refusal
from workflows.ledger.answering import Reply, answer_all
from workflows.models import Event, Interrupt, Run, Scope

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3_600_000
REMINDED = workflow(
    '  - { id: ask, kind: question, ask: "Well?", remind: 1h, timeout: 3h, next: { expired: continue } }'
)
BRANCHES = workflow(
    """
  - id: both
    kind: parallel
    branches:
      left: [ { id: one, kind: question, ask: "One?" } ]
      right: [ { id: two, kind: question, ask: "Two?" } ]
""",
    after='output: "${ steps.both.output }"',
)


def reminders(run_id: int) -> list[int]:
    found = Event.objects.filter(run_id=run_id, type="question_reminded")
    return list(found.order_by("sequence").values_list("sequence", flat=True))


def parked(text: str) -> Player:
    player = Player(publish_run(text))
    player.play()
    return player


def test_people_are_reminded_once_for_each_interval_until_the_deadline() -> None:
    """INT.8"""
    player = parked(REMINDED)
    asked = unix_ms(Interrupt.objects.get().asked_at)
    assert Run.objects.get(pk=player.run_id).wake_at_ms == asked + HOUR
    player.pass_time(HOUR)
    run = player.again()
    assert (run.status, run.wake_at_ms, len(reminders(run.pk))) == ("paused", asked + 2 * HOUR, 1)
    player.pass_time(HOUR)
    run = player.again()
    assert (run.wake_at_ms, len(reminders(run.pk))) == (asked + 3 * HOUR, 2)
    player.pass_time(HOUR)
    run = player.again()
    assert (run.status, len(reminders(run.pk)), Interrupt.objects.get().status) == ("succeeded", 2, "expired")
    assert_sound(run.pk)


def test_reminders_that_passed_while_nobody_looked_are_one() -> None:
    """INT.8"""
    player = parked(REMINDED)
    player.pass_time(2 * HOUR + 60_000)
    run = player.again()
    assert (run.status, len(reminders(run.pk))) == ("paused", 1)
    assert Scope.objects.get().wake_at_ms == unix_ms(Interrupt.objects.get().asked_at) + 3 * HOUR
    assert_sound(run.pk)


def replies(*answers: tuple[int, str]) -> list[tuple[int, Reply]]:
    return [
        (visit, Reply(voter="ann", recorded_by="shell:root as ann", decision="answered", fields={"answer": text}))
        for visit, text in answers
    ]


def test_several_answers_at_once_are_stored_together() -> None:
    """INT.2, INT.4"""
    player = parked(BRANCHES)
    one, two = Interrupt.objects.order_by("visit").values_list("visit", flat=True)
    answered = answer_all(run_id=player.run_id, replies=replies((two, "b"), (one, "a")), now=player.hand.now)
    assert [(answer.visit, answer.settled) for answer in answered] == [(two, True), (one, True)]
    player.again()
    output = output_of(player.run_id)
    assert (output["left"]["answer"], output["right"]["answer"]) == ("a", "b")
    assert_sound(player.run_id)


def test_if_one_of_several_answers_is_refused_none_is_stored() -> None:
    """INT.4"""
    player = parked(BRANCHES)
    one = Interrupt.objects.order_by("visit").values_list("visit", flat=True)[0]
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        answer_all(run_id=player.run_id, replies=replies((one, "a"), (99, "b")), now=player.hand.now)
    assert caught.value.code == "interrupt.not_found"
    assert all_rows() == before
