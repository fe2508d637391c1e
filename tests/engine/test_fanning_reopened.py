"""Reopening a run whose fan-out failed: failed and unstarted items open again, ok items stay (ABR.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, scopes_of
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.clock import unix_ms
from workflows.engine import recovery
from workflows.engine.draft import Draft
from workflows.ledger.advance import advance
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.ledger.reopening import reopen
from workflows.models import Attempt, Run, Scope, Visit

pytestmark = pytest.mark.django_db(transaction=True)


def again(player: Player, script: Any = None, *, order: Any = None) -> Run:
    reopen(run_id=player.run_id, actor="ann", reason="mended", now=player.hand.now)
    assert_sound()
    player.script = script or {}
    player.started.clear()
    return player.again()


def failed(text: str, script: Any, **options: Any) -> Player:
    player = Player(publish_run(text), script, **options)
    assert player.play().status == "failed"
    assert_sound()
    return player


def when(*paths: str) -> Any:
    """A script that fails in these scopes."""
    return lambda admission: bad(message="no") if admission.scope.path in paths else ok(admission.scope.path)


MAP = workflow(
    """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3, 4, 5] }
    concurrency: 2
    do: [{ id: one, kind: shell, run: x }, { id: two, kind: shell, run: x }]
    collect: ${ [item, steps.two.output] }
""",
    after='output: ["${ steps.each.output }", "${ steps.each.counts }"]',
)


def test_failed_and_unstarted_items_run_again_and_ok_items_stay() -> None:
    player = failed(MAP, {"two": when("each[1]")})
    before = scopes_of(player.run_id)
    assert before == {"": "", "each[0]": "ok", "each[1]": "failed", "each[2]": "ok"}
    assert again(player, {"two": when()}).status == "succeeded"
    # those that had not started get their places at once, in a revision that says so
    assert events_of(player.run_id).count("step_resumed") == 1
    outputs, counts = output_of(player.run_id)
    assert outputs == [[n, f"each[{n}]"] for n in range(6)]
    assert counts == {"ok": 6, "failed": 0, "cancelled": 0, "not_started": 0, "total": 6}
    # of the failed item exactly the failed step is tried again, as the next attempt of its visit
    assert player.started[0] == ("each[1]", "two")
    assert ("each[1]", "one") not in player.started
    tries = Visit.objects.get(run_id=player.run_id, scope="each[1]", step="two")
    assert (tries.round, tries.attempts, tries.reopened) == (1, 2, 1)
    assert Visit.objects.filter(run_id=player.run_id, step="each").count() == 1
    assert_sound()


def test_a_reopened_map_may_fail_again_and_be_reopened_again() -> None:
    player = failed(MAP, {"two": when("each[1]")})
    assert again(player, {"one": when("each[4]")}).status == "failed"
    assert error_of(player.run_id)["message"] == "1 of 6 failed. First: each[4]/one: no"
    assert again(player).status == "succeeded"
    assert Visit.objects.get(run_id=player.run_id, step="each").reopened == 2
    assert_sound()


def test_the_failed_step_of_nested_bodies_is_found_at_any_depth() -> None:
    text = workflow(
        """
  - id: a
    kind: map
    over: ${ [0, 1] }
    do:
      - { id: before, kind: shell, run: x }
      - id: sides
        kind: parallel
        branches:
          left: [{ id: call, kind: block, use: body }]
          right: [{ id: r, kind: shell, run: x }]
""",
        after="""
blocks:
  body:
    steps:
      - { id: c, kind: map, over: "${ [7, 8] }", do: [{ id: leaf, kind: shell, run: x }] }
    output: ${ steps.c.output }
output: ${ steps.a.output }
""",
    )
    player = failed(text, {"leaf": when("a[1]/sides[0]/call/c[0]")})
    assert error_of(player.run_id)["step"] == "a"
    assert again(player).status == "succeeded"
    assert player.started == [("a[1]/sides[0]/call/c[0]", "leaf")]
    assert output_of(player.run_id)[1] == {"left": ["leaf", "a[1]/sides[0]/call/c[1]"], "right": "r"}
    assert_sound()


def test_what_a_timeout_stopped_goes_on_where_it_was() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    concurrency: 2
    timeout: 1m
    do: [{ id: one, kind: shell, run: x }, { id: ask, kind: question, ask: "Well?" }, { id: two, kind: shell, run: x }]
""",
        after='output: "${ steps.each.output }"',
    )
    player = Player(publish_run(text))
    player.step()
    player.step({player.attempt_in("each[0]"): ok()})
    player.pass_time(60_000)
    player.step()
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    assert error_of(player.run_id)["code"] == "timeout"
    run = again(player)
    assert run.status == "paused"
    assert player.started == [("each[1]", "one")]
    assert scopes_of(player.run_id) == {"": "", "each[0]": "", "each[1]": ""}
    assert_sound()


@pytest.mark.parametrize("times", [1, 2])
def test_the_timeout_of_what_is_opened_again_begins_anew(times: int) -> None:
    """ABR.2: also inside of another list, and the second time"""
    text = workflow(
        """
  - id: outer
    kind: map
    over: ${ [0] }
    do:
      - id: inner
        kind: map
        over: ${ [0, 1] }
        timeout: 1m
        do: [{ id: ask, kind: question, ask: "Well?" }]
"""
    )
    player = Player(publish_run(text))
    assert player.play().status == "paused"
    for _ in range(times):
        player.pass_time(60_000)
        assert player.again().status == "failed"
        assert Visit.objects.get(step="inner").outcome == "timed_out"
        assert again(player).status == "paused"
        assert Scope.objects.get(path="outer[0]").wake_at_ms == unix_ms(player.hand.now) + 60_000
        assert Scope.objects.get(path="").wake_at_ms is None
    player.pass_time(60_000)
    assert player.again().status == "failed"
    assert_sound()


def test_a_block_that_failed_goes_on_at_its_failed_step() -> None:
    text = workflow(
        "  - { id: call, kind: block, use: body }",
        after="""
blocks:
  body:
    steps: [{ id: one, kind: shell, run: x }, { id: two, kind: shell, run: x }]
output: ${ steps.call.output }
""",
    )
    player = failed(text, {"two": bad()})
    assert again(player).status == "succeeded"
    assert (player.started, output_of(player.run_id)) == ([("call", "two")], "two")
    assert_sound()


def test_a_list_that_was_refused_as_a_whole_is_entered_anew() -> None:
    text = workflow(
        "  - { id: each, kind: map, over: '${ [1, 2] }', max_items: 1, do: [{ id: one, kind: shell, run: x }] }"
    )
    player = failed(text, None)
    assert again(player).status == "failed"
    assert error_of(player.run_id)["code"] == "too_many_items"
    assert_sound()


def test_an_item_whose_result_could_not_be_computed_is_collected_again() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [1, 0] }
    do: [{ id: one, kind: shell, run: x }]
    collect: ${ 10 / item }
"""
    )
    player = failed(text, None)
    assert again(player).status == "failed"
    assert player.started == []
    assert_sound()


def test_an_item_that_failed_before_its_first_step_fails_the_map_again() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0] }
    vars: { part: "${ 10 / item }" }
    do: [{ id: one, kind: shell, run: x }]
"""
    )
    player = failed(text, None)
    assert again(player).status == "failed"
    assert_sound()


def test_an_item_that_met_its_bound_is_entered_anew() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0] }
    do:
      - { id: one, kind: shell, run: x, max_visits: 1, next: { ok: again } }
      - { id: again, kind: condition, if: "${ true }", next: { then: one, else: done } }
"""
    )
    player = failed(text, None)
    assert again(player).status == "failed"
    assert error_of(player.run_id)["message"].endswith('"one" was visited 1 times, which is its max_visits.')
    assert_sound()


def test_an_uncertain_write_of_a_poisoned_map_is_reconciled_first() -> None:
    """ADM.5"""
    player = Player(publish_run(MAP))
    player.step()
    hand = player.hand
    draft = Draft(hand.plan, hand.memory, hand.kinds, now=hand.now, new_id=hand.new_id)
    recovery.poison(draft, 5)
    advance(draft.batch(commit_id=hand.new_id(), parks=True, release=True, wake_at_ms=None))
    assert again(player).status == "blocked"
    assert player.started == []
    for visit in (2, 3):
        told = Reconciliation(decision="did_not", actor="ann", reason="r")
        reconcile(run_id=player.run_id, visit=visit, reconciliation=told, now=START)
    assert player.again().status == "succeeded"
    assert Attempt.objects.filter(run_id=player.run_id, visit=2).count() == 2
    assert_sound()


def test_reopening_a_map_is_all_or_nothing() -> None:
    player = failed(MAP, {"two": when("each[1]")})
    before = all_rows()
    faults = 0
    for number in range(1, 80):
        try:
            with failing_at(number):
                reopen(run_id=player.run_id, actor="ann", reason="r", now=START)
        except Injected:
            faults += 1
            assert all_rows() == before
        else:
            break
    assert faults > 10


def test_a_skipped_map_leaves_its_items_as_they_are() -> None:
    player = failed(MAP, {"two": when("each[1]")})
    reopen(run_id=player.run_id, actor="ann", reason="not needed", now=START, skip=True)
    assert player.again().status == "succeeded"
    assert scopes_of(player.run_id)["each[1]"] == "failed"
    assert output_of(player.run_id) == [None, None]
    assert_sound()
