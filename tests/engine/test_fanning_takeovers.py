"""Fan-outs whose driver dies in the middle: the end is as if nothing had happened (CHD.2, ADM 3, 5, ABR)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.engine.test_fanning import NESTED, NESTED_OUTPUT
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of, play
from tests.support.rows import assert_sound
from workflows.engine import recovery
from workflows.engine.draft import Draft
from workflows.ledger.advance import advance
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Attempt, Run, Visit

pytestmark = pytest.mark.django_db(transaction=True)

MIXED = """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3, 4, 5, 6] }
    concurrency: 3
    join: settled
    vars: { sum: 0, own: "${ item * 2 }" }
    do:
      - { id: one, kind: shell, run: x, access: read }
      - { id: add, kind: assign, set: { sum: "${ vars.sum + vars.own + int(steps.one.visits) }" } }
      - { id: again, kind: condition, if: "${ steps.one.visits < 2 }", next: { then: loop, else: continue } }
      - { id: two, kind: shell, run: x, idempotent: true, next: { ok: done } }
      - { id: loop, kind: condition, if: "${ true }", max_visits: 3, next: { then: back, else: back } }
      - { id: back, kind: condition, if: "${ true }", next: { then: done, else: done } }
    collect: ${ string(item) + ':' + string(vars.sum) + ':' + steps.one.output }
  - id: sides
    kind: parallel
    branches:
      left: [{ id: l, kind: shell, run: x, access: read }]
      right:
        - id: inner
          kind: map
          over: ${ steps.each.output.filter(x, x != null) }
          concurrency: 2
          do: [{ id: r, kind: shell, run: x, access: read }]
          collect: ${ item + steps.r.output }
"""
MIXED_OUTPUT = (
    '["${ steps.each.output }", "${ steps.each.items }", "${ steps.each.counts }", "${ steps.sides.output }"]'
)


def one(admission: Any) -> Any:
    return bad(message="no") if admission.scope.index == 4 else ok(f"r{admission.scope.index}")


def end_of(text: str, script: Any, **options: Any) -> tuple[Any, ...]:
    run_id = publish_run(text)
    run = play(run_id, script, **options)
    assert_sound(run_id)
    attempts = Attempt.objects.filter(run_id=run_id).exclude(status="interrupted").count()
    return run.status, error_of(run_id), output_of(run_id), path_of(run_id), attempts


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_run_of_reads_ends_the_same_whenever_its_drivers_die(every: int) -> None:
    text = workflow(MIXED, after=f"output: {MIXED_OUTPUT}")
    undisturbed = end_of(text, {"one": one})
    assert undisturbed[0] == "succeeded"
    disturbed = end_of(text, {"one": one}, order=random.Random(every), takeover=every)
    assert disturbed == undisturbed


@pytest.mark.parametrize("every", [2, 3])
def test_nested_maps_end_the_same_whenever_their_drivers_die(every: int) -> None:
    run_id = publish_run(workflow(NESTED, after="output: ${ steps.a.output }"))
    play(run_id, takeover=every, order=random.Random(every))
    assert output_of(run_id) == NESTED_OUTPUT
    assert_sound()


WRITES = workflow(
    """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3] }
    concurrency: 2
    do: [{ id: put, kind: shell, run: x }]
  - { id: after, kind: shell, run: x }
""",
    after="output: ${ steps.each.output }",
)


def told(decision: str) -> Reconciliation:
    return Reconciliation(decision=decision, actor="ann", reason="looked", outcome="ok")  # type: ignore[arg-type]


def test_an_interrupted_write_parks_only_its_item_and_the_others_go_on() -> None:
    run_id = publish_run(WRITES)
    player = Player(run_id)
    player.step()
    player.step({player.attempt_in("each[0]"): ok("put 0")})
    assert player.running_in() == ["each[1]/put", "each[2]/put"]
    player.die()
    player.step()
    # both interrupted items keep their places, so nothing else can go on
    assert (player.run.status, player.running_in()) == ("blocked", [])
    reasons = json.loads(player.run.reasons)
    assert [(reason["cause"], reason["scope"]) for reason in reasons] == [
        ("reconcile", "each[1]"),
        ("reconcile", "each[2]"),
    ]
    reconcile(run_id=run_id, visit=3, reconciliation=told("happened"), now=START)
    player.hand = player.take()
    player.step()
    assert player.running_in() == ["each[3]/put"]
    assert player.run.status == "running"
    player.settle()
    assert player.run.status == "blocked"
    reconcile(run_id=run_id, visit=4, reconciliation=told("did_not"), now=START)
    run = player.again()
    assert run.status == "succeeded"
    assert output_of(run_id) == ["put 0", None, "put", "put"]
    assert_sound()


def test_a_run_is_blocked_only_when_nothing_else_can_go_on() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: sides
    kind: parallel
    branches:
      writes: [{ id: put, kind: shell, run: x }]
      waits: [{ id: pause, kind: wait, for: 1h }]
      asks: [{ id: ask, kind: question, ask: "Well?" }]
"""
        )
    )
    player = Player(run_id)
    player.step()
    player.die()
    player.step()
    assert player.run.status == "waiting"
    causes = [reason["cause"] for reason in json.loads(player.run.reasons)]
    assert causes == ["reconcile", "timer", "people"]
    player.pass_time(3_600_000)
    player.hand = player.take()
    player.step()
    assert player.run.status == "blocked"
    reconcile(run_id=run_id, visit=2, reconciliation=told("happened"), now=START)
    player.hand = player.take()
    player.step()
    assert player.run.status == "paused"
    assert_sound()


def test_what_an_open_map_has_is_seen_by_the_next_driver() -> None:
    """Counts, keys and results are read from the rows: one query each, whatever has been done."""
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ ['a', 'b', 'c', 'd'] }
    as: name
    key: ${ name }
    concurrency: 1
    join: { at_least: 3 }
    do: [{ id: one, kind: shell, run: x, access: read }]
    collect: ${ name + steps.one.output }
""",
            after='output: ["${ steps.each.output }", "${ steps.each.items.map(i, i.key + i.outcome) }"]',
        )
    )
    player = Player(run_id, {"one": lambda admission: bad() if admission.scope.index == 1 else ok("!")})
    player.step()
    for _ in range(3):
        player.settle()
        player.die()
        player.step()
    player.settle()
    assert output_of(run_id) == [["a!", None, "c!", "d!"], ["aok", "bfailed", "cok", "dok"]]
    assert_sound()


def test_a_driver_that_dies_while_a_decided_join_stops_the_rest_does_not_repeat_them() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    join: any
    do: [{ id: put, kind: shell, run: x }]
""",
        after='output: ["${ steps.each.output }", "${ steps.each.counts.cancelled }"]',
    )
    run_id = publish_run(text)
    player = Player(run_id)
    player.step()
    player.step({player.attempt_in("each[1]"): ok("won")})
    player.die()
    player.step()
    assert (player.run.status, output_of(run_id)) == ("succeeded", [[None, "won", None], 2])
    assert list(Attempt.objects.filter(run_id=run_id).values_list("status", flat=True)) == [
        "cancelled",
        "succeeded",
        "cancelled",
    ]
    assert_sound()


def test_a_block_of_a_dead_driver_goes_on_where_it_was() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: call, kind: block, use: two, with: { n: 3 } }",
            after="""
blocks:
  two:
    params: { n: { type: integer } }
    vars: { sum: 1 }
    steps:
      - { id: one, kind: shell, run: x, access: read }
      - { id: add, kind: assign, set: { sum: "${ vars.sum + params.n }" } }
      - { id: other, kind: shell, run: x, access: read }
    output: ["${ vars.sum }", "${ steps.one.output }", "${ steps.other.output }"]
output: ${ steps.call.output }
""",
        )
    )
    player = Player(run_id)
    player.step()
    player.settle()
    player.die()
    player.step()
    player.settle()
    assert (player.run.status, output_of(run_id)) == ("succeeded", [4, "one", "other"])
    assert Visit.objects.filter(run_id=run_id).count() == 4
    assert_sound()


def test_a_poisoned_run_leaves_nothing_of_its_items() -> None:
    run_id = publish_run(WRITES)
    player = Player(run_id)
    player.step()
    hand = player.hand
    draft = Draft(hand.plan, hand.memory, hand.kinds, now=player.hand.now, new_id=hand.new_id)
    recovery.poison(draft, 5)
    advance(draft.batch(commit_id=hand.new_id(), parks=True, release=True, wake_at_ms=None))
    run = Run.objects.get(pk=run_id)
    assert (run.status, error_of(run_id)["code"]) == ("failed", "run.poisoned")
    assert list(Attempt.objects.filter(run_id=run_id).values_list("status", flat=True)) == ["interrupted"] * 2
    assert_sound()
