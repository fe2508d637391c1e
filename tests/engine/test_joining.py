"""Joins: when a fan-out is over, and with which outcome, items and counts (docs/format.md, Fan-out)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of, of_index, output_of, path_of, play, scopes_of
from tests.support.rows import assert_sound
from workflows.engine.contract import Result
from workflows.models import Attempt

pytestmark = pytest.mark.django_db(transaction=True)

NO = bad(message="no")


def mapped(over: Any, *, join: str = "all", more: str = "", next: str = "") -> str:
    return workflow(
        f"""
  - id: each
    kind: map
    over: ${{ params.xs }}
    join: {join}
    {more}
    next: {{ {next or "failed: look, over_budget: look"} }}
    do: [{{ id: fetch, kind: shell, run: x }}]
  - {{ id: look, kind: assign, set: {{ seen: true }} }}
""",
        before="params: { xs: { type: array, items: { type: any } } }\nvars: { seen: false }",
        after="""
output:
  outcome: ${ steps.each.outcome }
  output: ${ steps.each.output }
  items: ${ steps.each.items }
  counts: ${ steps.each.counts }
  error: ${ steps.each.error }
""",
    ).replace("{ type: any }", "{ type: integer }")


def run_map(results: list[Result], join: str, **options: Any) -> dict[str, Any]:
    """What expressions see of the map after it, one item per result."""
    run_id = publish_run(mapped(None, join=join), {"xs": list(range(len(results)))})
    run = play(run_id, {"fetch": of_index(results)}, **options)
    assert (run.status, run.error) == ("succeeded", "")
    assert_sound()
    seen: dict[str, Any] = output_of(run_id)
    return seen


def counts(total: int, **some: int) -> dict[str, int]:
    return {"ok": 0, "failed": 0, "cancelled": 0, "not_started": 0, **some, "total": total}


def test_all_ok_gives_the_outputs_in_the_order_of_the_list() -> None:
    seen = run_map([ok(f"r{number}") for number in range(6)], "all", order=random.Random(1))
    assert seen == {
        "outcome": "ok",
        "output": ["r0", "r1", "r2", "r3", "r4", "r5"],
        "items": [{"index": n, "key": str(n), "outcome": "ok", "error": None} for n in range(6)],
        "counts": counts(6, ok=6),
        "error": None,
    }


def test_all_stops_starting_items_at_the_first_failure_and_lets_running_ones_finish() -> None:
    seen = run_map([ok("a"), NO, ok("c"), ok("d"), ok("e"), ok("f"), ok("g")], "all")
    error = {"code": "exit_nonzero", "step": "fetch", "message": "no"}
    assert seen["outcome"] == "failed"
    assert seen["output"] == ["a", None, "c", "d", "e", None, None]
    assert [item["outcome"] for item in seen["items"]] == [
        "ok",
        "failed",
        "ok",
        "ok",
        "ok",
        "not_started",
        "not_started",
    ]
    assert [item["error"] for item in seen["items"]] == [None, error, None, None, None, None, None]
    assert seen["counts"] == counts(7, ok=4, failed=1, not_started=2)
    assert seen["error"] == {"code": "items_failed", "message": "1 of 7 failed. First: each[1]/fetch: no"}


def test_any_succeeds_at_the_first_success_and_cancels_the_rest() -> None:
    run_id = publish_run(mapped(None, join="any"), {"xs": [0, 1, 2, 3, 4, 5]})
    player = Player(run_id, {"fetch": of_index([NO, ok("second"), ok(), ok(), ok(), ok()])})
    player.step()
    assert player.running_in() == [f"each[{n}]/fetch" for n in range(4)]
    player.step({player.attempt_in("each[0]"): NO})
    assert player.running_in() == [f"each[{n}]/fetch" for n in (1, 2, 3, 4)]
    decision = player.step({player.attempt_in("each[1]"): ok("second")})
    assert sorted(decision.draft.cancelled_visits) == [4, 5, 6]
    player.step({player.attempt_in("each[2]"): ok("too late")})
    player.step({player.attempt_in("each[3]"): bad("cancelled", "stopped")})
    player.step({player.attempt_in("each[4]"): bad("cancelled", "stopped")})
    assert player.run.status == "succeeded"
    seen = output_of(run_id)
    assert seen["outcome"] == "ok"
    assert seen["output"] == [None, "second", None, None, None, None]
    assert seen["counts"] == counts(6, ok=1, failed=1, cancelled=3, not_started=1)
    assert [item["outcome"] for item in seen["items"]] == [
        "failed",
        "ok",
        "cancelled",
        "cancelled",
        "cancelled",
        "not_started",
    ]
    assert_sound()


def test_any_fails_when_no_item_succeeds() -> None:
    seen = run_map([NO, NO, NO], "any")
    assert (seen["outcome"], seen["counts"]) == ("failed", counts(3, failed=3))
    assert seen["error"] == {"code": "items_failed", "message": "3 of 3 failed. First: each[0]/fetch: no"}


def test_settled_runs_everything_and_is_ok_whatever_failed() -> None:
    seen = run_map([NO] * 6, "settled")
    assert (seen["outcome"], seen["output"], seen["counts"], seen["error"]) == (
        "ok",
        [None] * 6,
        counts(6, failed=6),
        None,
    )


@pytest.mark.parametrize(
    ("rule", "total", "good", "outcome"),
    [
        ("3", 5, 3, "ok"),
        ("3", 5, 2, "failed"),
        ("9", 5, 5, "failed"),
        ('"50%"', 5, 3, "ok"),
        ('"50%"', 5, 2, "failed"),
        ('"50%"', 4, 2, "ok"),
        ('"80%"', 10, 8, "ok"),
        ('"80%"', 10, 7, "failed"),
        ('"70%"', 10, 7, "ok"),
        ('"29%"', 100, 29, "ok"),
        ('"29%"', 100, 28, "failed"),
        ('"1%"', 3, 1, "ok"),
        ('"1%"', 3, 0, "failed"),
        ('"100%"', 3, 3, "ok"),
        ('"100%"', 3, 2, "failed"),
        ('"33.4%"', 3, 1, "failed"),
        ('"33.3%"', 3, 1, "ok"),
    ],
)
def test_at_least_counts_what_is_needed_and_rounds_up(rule: str, total: int, good: int, outcome: str) -> None:
    results = [ok(n) if n < good else NO for n in range(total)]
    random.Random(total).shuffle(results)
    seen = run_map(results, f"{{ at_least: {rule} }}")
    assert (seen["outcome"], seen["counts"]) == (outcome, counts(total, ok=good, failed=total - good))


@pytest.mark.parametrize("join", ["all", "any", "settled", "{ at_least: 2 }", '{ at_least: "50%" }'])
def test_an_empty_list_is_empty_and_goes_where_ok_goes(join: str) -> None:
    run_id = publish_run(mapped(None, join=join, next="failed: fail"), {"xs": []})
    run = play(run_id)
    assert run.status == "succeeded"
    assert output_of(run_id) == {"outcome": "empty", "output": [], "items": [], "counts": counts(0), "error": None}
    assert path_of(run_id) == [("", "each", "empty"), ("", "look", "ok")]
    assert_sound()


def test_an_empty_list_may_have_a_route_of_its_own() -> None:
    run_id = publish_run(mapped(None, next="empty: done"), {"xs": []})
    play(run_id)
    assert path_of(run_id) == [("", "each", "empty")]


def test_an_unrouted_failure_of_items_fails_the_run_with_its_code() -> None:
    run_id = publish_run(mapped(None, next="over_budget: look"), {"xs": [1, 2]})
    run = play(run_id, {"fetch": NO})
    assert run.status == "failed"
    assert error_of(run_id) == {
        "code": "items_failed",
        "step": "each",
        "message": "2 of 2 failed. First: each[0]/fetch: no",
    }
    assert_sound()


# ---- what ends a map early ------------------------------------------------------------------------------------------


def test_a_map_that_times_out_cancels_what_runs() -> None:
    run_id = publish_run(mapped(None, more="timeout: 10s", next="timed_out: look"), {"xs": [0, 1, 2, 3, 4, 5]})
    player = Player(run_id)
    player.step()
    player.step({player.attempt_in("each[0]"): ok("done")})
    player.pass_time(10_000)
    decision = player.step()
    assert sorted(decision.draft.cancelled_visits) == [3, 4, 5, 6]
    assert not decision.parks
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    assert player.run.status == "succeeded"
    seen = output_of(run_id)
    assert (seen["outcome"], seen["output"]) == ("timed_out", ["done", None, None, None, None, None])
    assert seen["counts"] == counts(6, ok=1, cancelled=4, not_started=1)
    assert seen["error"] == {"code": "timeout", "message": "It took longer than its timeout; 1 of 6 were done."}
    assert_sound()


def test_a_join_that_is_decided_does_not_time_out_while_the_rest_is_being_cancelled() -> None:
    run_id = publish_run(mapped(None, join="any", more="timeout: 10s", next="timed_out: fail"), {"xs": [0, 1]})
    player = Player(run_id)
    player.step()
    player.step({player.attempt_in("each[0]"): ok("first")})
    player.pass_time(60_000)
    player.step()
    player.step({player.attempt_in("each[1]"): bad("cancelled", "stopped")})
    assert (player.run.status, output_of(run_id)["outcome"]) == ("succeeded", "ok")
    assert_sound()


def test_a_map_without_room_in_its_budget_starts_no_more_items_and_keeps_finished_results() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3, 4] }
    concurrency: 2
    budget: { visits: 6 }
    next: { over_budget: continue }
    do:
      - { id: fetch, kind: shell, run: x }
      - { id: note, kind: assign, set: { n: 1 } }
    vars: { n: 0 }
    collect: ${ steps.fetch.output }
""",
        after='output: ["${ steps.each.outcome }", "${ steps.each.output }", "${ steps.each.counts }"]',
    )
    for takeover in (0, 2):
        run_id = publish_run(text.replace("kind: shell, run: x", "kind: shell, run: x, access: read"))
        play(run_id, {"fetch": of_index([ok(n) for n in range(5)])}, takeover=takeover)
        # three items make six visits; the fourth had started when the sixth was made
        assert output_of(run_id) == ["over_budget", [0, 1, 2, 3, None], counts(5, ok=4, not_started=1)]
    assert_sound()


def test_a_map_over_budget_is_ok_when_a_success_is_all_it_wanted() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    concurrency: 2
    join: any
    budget: { visits: 2 }
    next: { over_budget: fail, failed: fail }
    do: [{ id: fetch, kind: shell, run: x }]
""",
        after='output: ["${ steps.each.outcome }", "${ steps.each.output }"]',
    )
    run_id = publish_run(text)
    run = play(run_id, {"fetch": of_index([NO, ok("second"), ok()])})
    assert (run.status, output_of(run_id)) == ("succeeded", ["ok", [None, "second", None]])
    assert_sound()


def test_a_run_without_visits_left_fails_its_items() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3, 4, 5] }
    concurrency: 2
    do: [{ id: fetch, kind: shell, run: x }]
""",
        before="budget: { visits: 4 }",
    )
    run_id = publish_run(text)
    run = play(run_id)
    assert run.status == "failed"
    message = "1 of 6 failed. First: each[3]/fetch: The run has made 4 visits; its budget is 4."
    assert error_of(run_id) == {"code": "items_failed", "step": "each", "message": message}
    assert_sound()


# ---- branches -------------------------------------------------------------------------------------------------------

BRANCHES = """
  - id: both
    kind: parallel
    join: {join}
    next: {{ failed: continue, timed_out: continue }}
    {more}
    branches:
      left:
        - {{ id: left_one, kind: shell, run: x }}
        - {{ id: left_two, kind: shell, run: x }}
      right:
        - {{ id: right_one, kind: shell, run: x, next: {{ failed: fail }} }}
      none:
        - {{ id: nothing, kind: assign, set: {{ n: 1 }} }}
"""
SEEN = 'output: ["${ steps.both.outcome }", "${ steps.both.output }", "${ steps.both.items }"]'


def branches(join: str = "all", more: str = "") -> str:
    text = BRANCHES.format(join=join, more=more).replace(
        "{ id: nothing, kind: assign, set: { n: 1 } }", "{ id: nothing, kind: wait, for: 0s }"
    )
    return workflow(text, after=SEEN)


def test_branches_run_side_by_side_and_give_a_mapping() -> None:
    run_id = publish_run(branches())
    player = Player(run_id)
    player.step()
    assert player.running_in() == ["both[0]/left_one", "both[1]/right_one"]
    player.settle("left_one")
    player.settle("right_one")
    player.settle("left_two")
    assert player.run.status == "succeeded"
    outcome, output, items = output_of(run_id)
    assert (outcome, output) == ("ok", {"left": "left_two", "right": "right_one", "none": None})
    assert items == [
        {"index": n, "key": key, "outcome": "ok", "error": None} for n, key in enumerate(["left", "right", "none"])
    ]
    assert scopes_of(run_id) == {"": "", "both[0]": "ok", "both[1]": "ok", "both[2]": "ok"}
    assert_sound()


def test_a_failed_branch_lets_the_others_finish_when_all_are_wanted() -> None:
    run_id = publish_run(branches())
    run = play(run_id, {"right_one": NO})
    assert run.status == "succeeded"
    outcome, output, items = output_of(run_id)
    assert (outcome, output) == ("failed", {"left": "left_two", "right": None, "none": None})
    assert items[1] == {
        "index": 1,
        "key": "right",
        "outcome": "failed",
        "error": {"code": "exit_nonzero", "step": "right_one", "message": "no"},
    }


def test_the_first_branch_that_succeeds_cancels_the_others() -> None:
    run_id = publish_run(branches(join="any"))
    player = Player(run_id)
    # the third branch needs nothing and is done at once: the effects of the others, just admitted, never start
    decision = player.step()
    assert (decision.draft.admissions, decision.draft.cancelled_visits) == ([], [])
    statuses = Attempt.objects.filter(run_id=run_id).values_list("visit", "status", "outcome")
    assert list(statuses) == [(2, "cancelled", "cancelled"), (3, "cancelled", "cancelled")]
    assert player.run.status == "succeeded"
    outcome, output, items = output_of(run_id)
    assert (outcome, output) == ("ok", {"left": None, "right": None, "none": None})
    assert [item["outcome"] for item in items] == ["cancelled", "cancelled", "ok"]
    assert_sound()


def test_branches_that_take_too_long_are_cancelled() -> None:
    run_id = publish_run(branches(more="timeout: 1m"))
    player = Player(run_id)
    player.step()
    player.pass_time(60_000)
    player.step()
    player.step({name: bad("cancelled", "stopped") for name in player.running()})
    outcome, output, items = output_of(run_id)
    assert (outcome, output) == ("timed_out", {"left": None, "right": None, "none": None})
    assert [item["outcome"] for item in items] == ["cancelled", "cancelled", "ok"]
    assert_sound()
