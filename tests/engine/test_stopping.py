"""Cancelling and timing out in the middle of everything: nothing is left over, and finally runs once (CTL.3, INT.7)."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import pytest

from tests.support.hand import expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of, scopes_of
from tests.support.rows import all_rows, assert_sound, events_of
from workflows.errors import Refusal
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Attempt, Interrupt, Run, Scope, Slot, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

EVERYTHING = workflow(
    """
  - id: outer
    kind: map
    over: ${ [0, 1] }
    do:
      - id: inner
        kind: map
        over: ${ [0, 1, 2, 3, 4, 5, 6] }
        as: what
        concurrency: 7
        do:
          - id: choose
            kind: condition
            cases:
              - { when: "${ what == 0 }", outcome: runs }
              - { when: "${ what == 1 }", outcome: times }
              - { when: "${ what == 2 }", outcome: asks }
              - { when: "${ what == 3 }", outcome: hears }
              - { when: "${ what == 4 }", outcome: retries }
              - { when: "${ what == 5 }", outcome: stands }
            next: { runs: effect, times: timer, asks: ask, hears: signal, retries: retry, stands: line, else: call }
          - { id: effect, kind: shell, run: x, next: { ok: done } }
          - { id: timer, kind: wait, for: 1h, next: { elapsed: done } }
          - { id: ask, kind: approval, ask: "Well?", next: { approved: done } }
          - { id: signal, kind: wait, signal: go, next: { received: done } }
          - { id: retry, kind: shell, run: x, retry: { attempts: 3, wait: 1h, jitter: none }, next: { ok: done } }
          - { id: line, kind: shell, run: x, limit: { group: g, max: 1 }, next: { ok: done } }
          - { id: call, kind: block, use: body, next: { ok: done } }
""",
    after="""
blocks:
  body:
    steps:
      - { id: in_block, kind: parallel, branches: { a: [{ id: deep, kind: shell, run: x }], b: [{ id: late, kind: wait, for: 2h }] } }
finally:
  - { id: tidy, kind: map, over: "${ [1, 2] }", do: [{ id: sweep, kind: shell, run: x }] }
on_failure:
  - { id: warn, kind: shell, run: x }
""",
)


def cancel(run_id: int, request_id: str = "c") -> None:
    now = datetime.now(UTC)
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id=request_id, sender="ann", now=now)


def in_the_middle() -> Player:
    """A run in which something of every sort is going on, twice."""
    player = Player(publish_run(EVERYTHING))
    player.step()
    player.hand.reload()
    player.step()  # one of the two in line has its place
    player.step({name: bad("exit_nonzero") for name in player.running("retry")})
    waits = Scope.objects.filter(run_id=player.run_id, phase="waiting").values_list("waits_for", flat=True)
    assert Counter(waits) == Counter(join=7, timer=4, people=2, signal=2, retry=2, slot=1)
    assert sorted(player.running_in()) == [
        "outer[0]/inner[0]/effect",
        "outer[0]/inner[5]/line",
        "outer[0]/inner[6]/call/in_block[0]/deep",
        "outer[1]/inner[0]/effect",
        "outer[1]/inner[6]/call/in_block[0]/deep",
    ]
    return player


def assert_nothing_is_left(run_id: int) -> None:
    assert Interrupt.objects.filter(run_id=run_id, status="open").count() == 0
    assert Slot.objects.filter(run_id=run_id).count() == 0
    assert Scope.objects.filter(run_id=run_id).exclude(phase="ended").count() == 0
    assert Attempt.objects.filter(run_id=run_id, status__in=["running", "paused"]).count() == 0
    assert Visit.objects.filter(run_id=run_id, status="open").count() == 0
    ends = [type for type in events_of(run_id) if type in ("run_succeeded", "run_failed", "run_cancelled")]
    assert len(ends) == 1
    assert_sound(run_id)


def test_a_cancel_in_the_middle_of_everything_leaves_nothing() -> None:
    """CTL.3, INT.7, MON.10"""
    player = in_the_middle()
    cancel(player.run_id)
    player.hand.reload()
    decision = player.step()
    assert len(decision.draft.cancelled_visits) == 5
    assert player.run.status == "running"
    assert Interrupt.objects.filter(run_id=player.run_id).exclude(status="closed").count() == 0
    assert Slot.objects.filter(run_id=player.run_id, scope="outer[1]/inner[5]").count() == 0
    order = random.Random(3)
    while names := player.running("effect", "line", "deep"):
        name = order.choice(names)
        player.step({name: bad("cancelled", "stopped")})
    assert sorted(player.running_in()) == ["tidy[0]/sweep", "tidy[1]/sweep"]
    player.settle()
    assert player.run.status == "cancelled"
    assert [step for _, step in player.started].count("sweep") == 2
    assert "warn" not in [step for _, step in player.started]
    assert_nothing_is_left(player.run_id)
    outcomes = scopes_of(player.run_id)
    del outcomes["tidy[0]"], outcomes["tidy[1]"], outcomes[""]
    assert set(outcomes.values()) == {"cancelled"}


def test_a_cancel_of_a_run_whose_driver_died_leaves_nothing() -> None:
    """CTL.3: with no live lease it sets closing and wakes the run; the next driver carries it out."""
    player = in_the_middle()
    expire(player.run_id)
    cancel(player.run_id)
    player.hand = player.take()
    player.step()
    assert sorted(player.running_in()) == ["tidy[0]/sweep", "tidy[1]/sweep"]
    player.settle()
    assert player.run.status == "cancelled"
    assert_nothing_is_left(player.run_id)


def test_a_driver_that_dies_while_it_cancels_is_followed_by_one_that_ends_the_run() -> None:
    player = in_the_middle()
    cancel(player.run_id)
    player.hand.reload()
    player.step()
    player.die()
    player.step()
    assert sorted(player.running_in()) == ["tidy[0]/sweep", "tidy[1]/sweep"]
    player.settle()
    assert_nothing_is_left(player.run_id)


def test_a_parked_run_is_cancelled_at_once() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ [0, 1] }
    do: [{ id: ask, kind: question, ask: "Well ${ item }?" }]
"""
        )
    )
    player = Player(run_id)
    assert player.play().status == "paused"
    cancel(run_id)
    assert player.again().status == "cancelled"
    assert_nothing_is_left(run_id)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        answer(run_id=run_id, visit=2, reply=Reply(voter="bob", recorded_by="bob", decision="answered"), now=START)
    assert caught.value.code == "interrupt.closed"
    assert caught.value.message == f"v2 of run {run_id} is closed: the run is cancelled."
    assert all_rows() == before


def test_an_answer_that_is_stored_but_not_used_when_a_cancel_comes_is_lost_with_its_question() -> None:
    """INT.3, CTL.3"""
    run_id = publish_run(workflow('  - { id: ask, kind: question, ask: "Well?" }'))
    player = Player(run_id)
    player.play()
    answer(
        run_id=run_id,
        visit=1,
        reply=Reply(voter="bob", recorded_by="bob", decision="answered", fields={"answer": "yes"}),
        now=player.hand.now,
    )
    cancel(run_id)
    assert player.again().status == "cancelled"
    assert Interrupt.objects.get(run_id=run_id).status == "answered"
    assert Attempt.objects.get(run_id=run_id).status == "cancelled"
    assert_nothing_is_left(run_id)


def test_late_results_of_a_cancelled_run_are_kept_and_move_nothing() -> None:
    """SET.3"""
    player = in_the_middle()
    cancel(player.run_id)
    player.hand.reload()
    player.step()
    player.step({name: ok("late") for name in player.running("effect", "line", "deep")})
    late = Attempt.objects.filter(run_id=player.run_id, late_outcome="ok")
    assert (late.count(), set(late.values_list("status", flat=True))) == (5, {"cancelled"})
    player.settle()
    assert_nothing_is_left(player.run_id)


def test_a_second_cancel_does_not_stop_the_closing_steps() -> None:
    player = in_the_middle()
    cancel(player.run_id)
    player.hand.reload()
    player.step()
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    cancel(player.run_id, "again")
    player.hand.reload()
    player.step()
    assert sorted(player.running_in()) == ["tidy[0]/sweep", "tidy[1]/sweep"]
    player.settle()
    assert_nothing_is_left(player.run_id)


def test_a_map_in_finally_may_time_out_like_any_other() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: x }",
            after="""
finally:
  - { id: tidy, kind: map, timeout: 5s, over: "${ [1, 2] }", do: [{ id: sweep, kind: shell, run: x }] }
  - { id: last, kind: shell, run: x }
""",
        )
    )
    player = Player(run_id)
    player.step()
    player.settle()
    player.pass_time(5_000)
    assert len(player.step().draft.cancelled_visits) == 2
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    player.settle()
    assert error_of(run_id) == {
        "code": "finally_failed",
        "step": "tidy",
        "message": "It took longer than its timeout; 0 of 2 were done.",
    }
    assert_nothing_is_left(run_id)


def test_a_timeout_of_an_outer_map_stops_everything_below_it() -> None:
    text = EVERYTHING.replace("  - id: outer\n    kind: map\n", "  - id: outer\n    kind: map\n    timeout: 1m\n")
    player = Player(publish_run(text))
    player.step()
    player.pass_time(60_000)
    player.step()
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    assert player.running_in() == ["warn"]
    player.settle()
    player.settle()
    assert error_of(player.run_id) == {
        "code": "timeout",
        "step": "outer",
        "message": "It took longer than its timeout; 0 of 2 were done.",
    }
    assert_nothing_is_left(player.run_id)


def test_the_first_branch_to_succeed_stops_everything_in_the_others() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    join: any
    branches:
      quick: [{ id: won, kind: shell, run: x }]
      slow:
        - id: inner
          kind: map
          over: ${ [0, 1] }
          do: [{ id: ask, kind: question, ask: "Well?" }]
  - { id: after, kind: shell, run: x }
""",
        after='output: "${ steps.sides.items.map(i, i.outcome) }"',
    )
    player = Player(publish_run(text))
    player.step()
    player.settle("won")
    assert player.running_in() == ["after"]
    player.settle()
    assert output_of(player.run_id) == ["ok", "cancelled"]
    assert path_of(player.run_id) == [
        ("", "sides", "ok"),
        ("", "after", "ok"),
        ("sides[0]", "won", "ok"),
        ("sides[1]", "inner", "cancelled"),
        ("sides[1]/inner[0]", "ask", "cancelled"),
        ("sides[1]/inner[1]", "ask", "cancelled"),
    ]
    assert_nothing_is_left(player.run_id)


def test_a_question_that_is_asked_and_withdrawn_in_one_decision_is_closed() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    join: any
    branches:
      asks: [{ id: ask, kind: question, ask: "Well?" }]
      stands: [{ id: line, kind: shell, run: x, limit: { group: g, max: 1 } }]
      runs: [{ id: work, kind: shell, run: x }]
      done: [{ id: nothing, kind: wait, for: 0s }]
"""
    )
    player = Player(publish_run(text))
    player.step()
    assert player.run.status == "succeeded"
    assert list(Interrupt.objects.filter(run_id=player.run_id).values_list("status", flat=True)) == ["closed"]
    assert player.started == []
    assert_nothing_is_left(player.run_id)


def test_a_write_that_nobody_reconciled_ends_with_a_cancel() -> None:
    run_id = publish_run(
        workflow("  - { id: each, kind: map, over: '${ [0, 1] }', do: [{ id: put, kind: shell, run: x }] }")
    )
    player = Player(run_id)
    player.step()
    player.die()
    player.step()
    assert player.run.status == "blocked"
    cancel(run_id)
    assert player.again().status == "cancelled"
    assert list(Attempt.objects.filter(run_id=run_id).values_list("status", flat=True)) == ["interrupted"] * 2
    assert_nothing_is_left(run_id)
    with pytest.raises(Refusal) as caught:
        reconcile(
            run_id=run_id,
            visit=2,
            reconciliation=Reconciliation(decision="happened", actor="ann", reason="r", outcome="ok"),
            now=START,
        )
    assert caught.value.code == "run.terminal"


def test_a_pause_starts_nothing_and_lets_effects_settle() -> None:
    """CTL.4"""
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    concurrency: 2
    do: [{ id: one, kind: shell, run: x }, { id: two, kind: shell, run: x }]
"""
        )
    )
    player = Player(run_id)
    player.step()
    send(run_id=run_id, kind=ControlKind.PAUSE, payload={}, request_id="p", sender="ann", now=player.hand.now)
    player.hand.reload()
    player.step({player.attempt_in("each[0]"): ok()})
    assert (player.running_in(), player.run.status) == (["each[1]/one"], "running")
    decision = player.settle()
    assert (decision.parks, player.run.status) == (True, "paused")
    send(run_id=run_id, kind=ControlKind.RESUME, payload={}, request_id="r", sender="ann", now=player.hand.now)
    assert player.again().status == "succeeded"
    assert_sound()


def test_in_a_held_run_timers_stand_still_and_deadlines_of_people_pass() -> None:
    """CTL.4"""
    run_id = publish_run(
        workflow(
            """
  - id: sides
    kind: parallel
    branches:
      times: [{ id: pause, kind: wait, for: 10s }]
      asks: [{ id: ask, kind: question, ask: "Well?", timeout: 20s, next: { expired: after } }, { id: after, kind: shell, run: x }]
"""
        )
    )
    player = Player(run_id)
    player.step()
    send(run_id=run_id, kind=ControlKind.PAUSE, payload={}, request_id="p", sender="ann", now=player.hand.now)
    player.pass_time(15_000)
    player.hand = player.take()
    decision = player.step()
    asked = Interrupt.objects.get(run_id=run_id)
    assert (decision.parks, decision.waits_until_ms) == (True, asked.deadline_ms)
    player.pass_time(5_000)
    player.hand = player.take()
    decision = player.step()
    assert (decision.parks, decision.waits_until_ms) == (True, None)
    assert Interrupt.objects.get(run_id=run_id).status == "expired"
    assert Visit.objects.get(run_id=run_id, step="pause").status == "open"
    send(run_id=run_id, kind=ControlKind.RESUME, payload={}, request_id="r", sender="ann", now=player.hand.now)
    player.hand = player.take()
    player.step()
    assert player.running_in() == ["sides[1]/after"]
    assert Visit.objects.get(run_id=run_id, step="pause").outcome == "elapsed"
    assert Run.objects.get(pk=run_id).status == "running"
