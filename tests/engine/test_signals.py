"""Signals: taken by the first wait they fit, before, during or after it begins; others stay pending (docs/format.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of
from tests.support.rows import assert_sound, events_of
from workflows.errors import Refusal
from workflows.ledger.controlling import send
from workflows.models import ControlMessage, Event, Run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)


def signal(run_id: int, name: str, payload: Any = None, request_id: str = "") -> int:
    known = ControlMessage.objects.filter(run_id=run_id).count()
    return send(
        run_id=run_id,
        kind=ControlKind.SIGNAL,
        payload={"name": name, "payload": payload},
        request_id=request_id or f"s{known}",
        sender="ann",
        now=Run.objects.get(pk=run_id).created_at,
    ).sequence


def pending(run_id: int) -> list[str]:
    rows = ControlMessage.objects.filter(run_id=run_id, consumed_at=None).order_by("sequence")
    return [json.loads(row.payload)["name"] for row in rows]


WAIT = workflow(
    """
  - { id: before, kind: shell, run: x }
  - { id: paid, kind: wait, signal: payment, timeout: 1h, next: { expired: continue } }
  - { id: after, kind: shell, run: x }
""",
    after='output: ["${ steps.paid.outcome }", "${ steps.paid.output }"]',
)


def test_a_signal_before_its_wait_is_taken_when_the_wait_begins() -> None:
    run_id = publish_run(WAIT)
    player = Player(run_id)
    player.step()
    sequence = signal(run_id, "payment", {"sum": 3})
    player.settle()
    assert player.running_in() == ["after"]
    event = Event.objects.get(run_id=run_id, type="signal_consumed")
    assert (event.visit, event.payload) == (2, f'{{"sequence":{sequence}}}')
    assert pending(run_id) == []
    player.settle()
    assert output_of(run_id) == ["received", {"sum": 3}]
    assert_sound()


def test_a_signal_during_its_wait_wakes_the_run() -> None:
    run_id = publish_run(WAIT)
    player = Player(run_id)
    assert player.play().status == "waiting"
    assert json.loads(player.run.reasons)[0]["cause"] == "signal"
    assert not Run.objects.runnable().filter(pk=run_id).exists()
    signal(run_id, "payment", "cash")
    assert Run.objects.runnable().filter(pk=run_id).exists()
    player.again()
    assert output_of(run_id) == ["received", "cash"]
    assert_sound()


def test_a_signal_for_a_driven_run_is_taken_by_its_driver() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: sides
    kind: parallel
    branches:
      waits: [{ id: paid, kind: wait, signal: payment }]
      works: [{ id: long, kind: shell, run: x }]
""",
            after='output: "${ steps.sides.output }"',
        )
    )
    player = Player(run_id)
    player.step()
    signal(run_id, "payment", 7)
    player.hand.reload()
    player.step()
    assert pending(run_id) == []
    player.settle()
    assert output_of(run_id) == {"waits": 7, "works": "long"}
    assert_sound()


def test_a_signal_after_its_wait_expired_is_never_taken() -> None:
    run_id = publish_run(WAIT)
    player = Player(run_id)
    player.play()
    player.pass_time(3_600_000)
    player.hand = player.take()
    player.step()
    signal(run_id, "payment", "late")
    player.hand.reload()
    player.settle()
    assert output_of(run_id) == ["expired", None]
    assert pending(run_id) == ["payment"]
    with pytest.raises(Refusal) as caught:
        signal(run_id, "payment", "later")
    assert caught.value.code == "run.terminal"
    assert_sound()


def test_a_signal_that_comes_with_the_deadline_is_taken() -> None:
    """The answer was accepted before anybody decided that the deadline has passed."""
    run_id = publish_run(WAIT)
    player = Player(run_id)
    player.play()
    signal(run_id, "payment", 1)
    player.pass_time(3_600_000)
    player.again()
    assert output_of(run_id) == ["received", 1]


def test_an_unrouted_expiry_fails_the_run() -> None:
    run_id = publish_run(workflow("  - { id: paid, kind: wait, signal: payment }"))
    player = Player(run_id)
    player.play()
    assert player.run.wake_at_ms == int(player.hand.now.timestamp() * 1000) + 7 * 24 * 3_600_000
    player.pass_time(7 * 24 * 3_600_000)
    assert player.again().status == "failed"
    message = 'The outcome "expired" of "paid" leads to fail.'
    assert error_of(run_id) == {"code": "expired", "step": "paid", "message": message}


def test_only_a_signal_of_the_name_for_which_match_holds_is_taken() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: paid
    kind: wait
    signal: "payment_${ params.order }"
    match: ${ signal.sum >= vars.price }
""",
            before="params: { order: { type: integer } }\nvars: { price: 10 }",
            after="output: ${ steps.paid.output }",
        ),
        {"order": 4},
    )
    player = Player(run_id)
    player.play()
    for name, content in (
        ("payment", {"sum": 99}),
        ("payment_5", {"sum": 99}),
        ("payment_4", {"sum": 9}),
        ("payment_4", {"amount": 99}),  # match cannot be evaluated: what a stranger sends fails no run
        ("payment_4", None),
        ("payment_4", "ten"),
    ):
        signal(run_id, name, content)
        assert player.again().status == "waiting"
    signal(run_id, "payment_4", {"sum": 10})
    assert player.again().status == "succeeded"
    assert output_of(run_id) == {"sum": 10}
    assert pending(run_id) == ["payment", "payment_5", "payment_4", "payment_4", "payment_4", "payment_4"]
    assert_sound()


def test_several_waits_take_one_signal_each_in_the_order_they_were_sent() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    do: [{ id: paid, kind: wait, signal: payment, match: "${ item != 1 || signal > 100 }" }]
""",
            after="output: ${ steps.each.output }",
        )
    )
    player = Player(run_id)
    player.play()
    for content in (1, 2, 3, 200):
        signal(run_id, "payment", content)
    player.again()
    assert output_of(run_id) == [1, 200, 2]
    assert pending(run_id) == ["payment"]
    assert_sound()


def test_a_later_wait_takes_what_an_earlier_one_left() -> None:
    run_id = publish_run(
        workflow(
            """
  - { id: first, kind: wait, signal: go }
  - { id: second, kind: wait, signal: go }
  - { id: third, kind: wait, signal: stop }
""",
            after='output: ["${ steps.first.output }", "${ steps.second.output }", "${ steps.third.output }"]',
        )
    )
    player = Player(run_id)
    player.play()
    for name, content in (("stop", 3), ("go", 1), ("go", 2), ("go", 4)):
        signal(run_id, name, content)
    assert player.again().status == "succeeded"
    assert output_of(run_id) == [1, 2, 3]
    assert pending(run_id) == ["go"]
    assert [outcome for _, _, outcome in path_of(run_id)] == ["received"] * 3


def test_the_same_request_is_one_signal() -> None:
    """CTL.2"""
    run_id = publish_run(WAIT)
    Player(run_id).play()
    first = signal(run_id, "payment", 1, request_id="r")
    assert signal(run_id, "payment", 1, request_id="r") == first
    with pytest.raises(Refusal) as caught:
        signal(run_id, "payment", 2, request_id="r")
    assert caught.value.code == "control.conflict"
    assert events_of(run_id).count("control_accepted") == 1


def test_a_driver_that_dies_with_a_consumed_signal_in_hand_takes_it_again() -> None:
    run_id = publish_run(WAIT)
    player = Player(run_id)
    player.step()
    signal(run_id, "payment", 1)
    player.hand.reload()
    decision = player.hand.decide({"v1.1": player.result("v1.1")})
    assert decision.draft.controls
    player.die()
    player.step()
    assert player.run.status == "blocked"  # the write before the wait; the signal is still there
    assert pending(run_id) == ["payment"]


def test_a_signal_name_that_is_no_text_fails_the_wait() -> None:
    run_id = publish_run(workflow('  - { id: paid, kind: wait, signal: "${ 1 }" }'))
    Player(run_id).play()
    message = '"signal" must be the name of a signal, but it is the number 1.'
    assert error_of(run_id) == {"code": "bad_expression", "step": "paid", "message": message}
