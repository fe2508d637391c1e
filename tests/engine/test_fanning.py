"""Fanning out: lists, keys, places, bodies, nesting (docs/format.md, Fan-out, docs/architecture.md, Maps)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of, play, scopes_of
from tests.support.rows import assert_sound, events_of
from workflows.models import Event, Fanout, Scope, Visit

pytestmark = pytest.mark.django_db(transaction=True)


def ended(
    steps: str,
    output: str,
    *,
    before: str = "",
    after: str = "",
    script: Any = None,
    params: Any = None,
    **options: Any,
) -> Any:
    """The output of a run of these steps that succeeds."""
    run_id = publish_run(workflow(steps, before=before, after=f"{after}\noutput: {output}"), params)
    run = play(run_id, script, **options)
    assert (run.status, run.error) == ("succeeded", "")
    assert_sound()
    return output_of(run_id)


def failed(steps: str, *, before: str = "", after: str = "", script: Any = None, params: Any = None) -> dict[str, Any]:
    run_id = publish_run(workflow(steps, before=before, after=after), params)
    assert play(run_id, script).status == "failed"
    assert_sound()
    return error_of(run_id)


# ---- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [1, 3, 64])
def test_never_more_items_are_in_progress_than_the_concurrency_allows(places: int) -> None:
    run_id = publish_run(
        workflow(
            f"""
  - id: each
    kind: map
    over: ${{ [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }}
    concurrency: {places}
    do:
      - {{ id: one, kind: shell, run: x }}
      - {{ id: two, kind: shell, run: x }}
"""
        )
    )
    player = Player(run_id, order=random.Random(places))
    player.play()
    assert player.most == min(places, 10)
    assert [scope for scope, step in player.started if step == "one"] == [f"each[{n}]" for n in range(10)]
    assert_sound()


def test_an_item_keeps_its_place_until_it_ends() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ [0, 1, 2] }
    concurrency: 2
    do:
      - { id: one, kind: shell, run: x }
      - { id: pause, kind: wait, for: 10s }
      - { id: two, kind: shell, run: x }
"""
        )
    )
    player = Player(run_id)
    player.step()
    assert player.settle().parks
    assert (player.running_in(), Scope.objects.filter(run_id=run_id).count()) == ([], 3)
    player.pass_time(10_000)
    player.hand = player.take()
    player.step()
    assert player.running_in() == ["each[0]/two", "each[1]/two"]
    player.step({player.attempt_in("each[1]"): ok()})
    assert player.running_in() == ["each[0]/two", "each[2]/one"]


def test_four_items_are_in_progress_by_default() -> None:
    run_id = publish_run(
        workflow("  - { id: each, kind: map, over: '${ [0,1,2,3,4,5] }', do: [{ id: one, kind: shell, run: x }] }")
    )
    player = Player(run_id)
    player.play()
    assert player.most == 4


def test_items_that_have_not_started_have_no_rows() -> None:
    run_id = publish_run(
        workflow("  - { id: each, kind: map, over: '${ [0,1,2,3,4,5] }', do: [{ id: one, kind: shell, run: x }] }")
    )
    Player(run_id).step()
    assert list(scopes_of(run_id)) == ["", "each[0]", "each[1]", "each[2]", "each[3]"]
    assert list(Fanout.objects.filter(run_id=run_id).values_list("visit", "total")) == [(1, 6)]


# ---- the list -------------------------------------------------------------------------------------------------------


def test_the_list_is_evaluated_once() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ vars.xs }
    concurrency: 1
    do: [{ id: one, kind: shell, run: x }, { id: say, kind: condition, if: "${ item > 1 }" }]
    collect: ${ item * 10 + index }
  - { id: change, kind: assign, set: { xs: "${ [9] }" } }
""",
        '[ "${ steps.each.output }", "${ vars.xs }" ]',
        before="vars: { xs: [1, 2, 3] }",
    )
    assert seen == [[10, 21, 32], [9]]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("${ params.value }", '"over" must give a list, but it gave the text "abc".'),
        ("${ null }", '"over" must give a list, but it gave null.'),
        ("${ {'a': 1} }", '"over" must give a list, but it gave a mapping.'),
        ("${ 1 + 2 }", '"over" must give a list, but it gave the number 3.'),
    ],
)
def test_what_is_no_list_fails_the_map_before_any_item(over: str, message: str) -> None:
    error = failed(
        f'  - {{ id: each, kind: map, over: "{over}", do: [{{ id: one, kind: shell, run: x }}] }}',
        before="params: { value: { type: string } }",
        params={"value": "abc"},
    )
    assert error == {"code": "bad_expression", "step": "each", "message": message}


def test_too_many_items_fail_the_map_before_any_starts() -> None:
    error = failed(
        """
  - { id: each, kind: map, over: "${ [1,2,3] }", max_items: 2, do: [{ id: one, kind: shell, run: x }] }
"""
    )
    assert error == {"code": "too_many_items", "step": "each", "message": "The list has 3 items; max_items is 2."}


def test_as_many_items_as_are_allowed_run() -> None:
    steps = '  - { id: each, kind: map, over: "${ [1,2] }", max_items: 2, do: [{ id: one, kind: shell, run: x }] }'
    assert ended(steps, "${ steps.each.output }") == ["one", "one"]


# ---- keys -----------------------------------------------------------------------------------------------------------

KEYED = """
  - id: each
    kind: map
    over: ${{ {over} }}
    as: host
    key: {key}
    concurrency: 1
    next: {{ failed: continue }}
    do: [{{ id: one, kind: shell, run: x }}]
"""


def test_keys_name_the_items_also_those_that_start_later() -> None:
    steps = KEYED.format(over="['a', 'b', 'c']", key='"${ host + string(index) }"')
    assert ended(steps, "${ steps.each.items.map(i, i.key) }") == ["a0", "b1", "c2"]


def test_items_that_never_start_have_their_keys_too() -> None:
    steps = KEYED.format(over="['a', 'b']", key='"${ host }"')
    items = ended(steps, "${ steps.each.items }", script={"one": bad(message="no")})
    assert [(item["key"], item["outcome"]) for item in items] == [("a", "failed"), ("b", "not_started")]


@pytest.mark.parametrize(
    ("over", "key", "shown"),
    [
        ("['x', 'y', 'x']", '"${ host }"', 'Items 0 and 2 have the same key "x".'),
        ("[1, '1']", '"${ host }"', 'Items 0 and 1 have the same key "1".'),
        ("[[1, 2], [1, 2]]", '"${ host }"', 'Items 0 and 1 have the same key "[1,2]".'),
        ("[['b', {}], ['b', {}]]", '"${ host }"', 'Items 0 and 1 have the same key "["b",{}]".'),
        ("['a', 'b']", '"always"', 'Items 0 and 1 have the same key "always".'),
    ],
)
def test_equal_keys_fail_the_map_before_any_item_starts(over: str, key: str, shown: str) -> None:
    run_id = publish_run(workflow(KEYED.format(over=over, key=key), after='output: "${ steps.each.error }"'))
    play(run_id)
    assert output_of(run_id) == {"code": "duplicate_key", "message": shown}
    assert path_of(run_id) == [("", "each", "failed")]


def test_a_key_that_is_null_fails_the_map() -> None:
    error = failed(KEYED.format(over="[1]", key='"${ null }"').replace("next: { failed: continue }", ""))
    assert error["message"] == '"key" gave null for item 0; every item needs a key.'


# ---- bodies ---------------------------------------------------------------------------------------------------------


def test_a_body_sees_everything_outside_as_it_was_and_its_own_variables() -> None:
    seen = ended(
        """
  - { id: first, kind: shell, run: x }
  - id: each
    kind: map
    over: ${ ['a', 'b'] }
    vars: { mine: "${ item + vars.outer }", count: 0 }
    do:
      - { id: raise, kind: assign, set: { count: "${ vars.count + 1 }" }, max_visits: 3, next: { exhausted: end_it } }
      - { id: again, kind: condition, if: "${ vars.count < 2 }", next: { then: raise, else: continue } }
      - { id: end_it, kind: condition, if: "${ true }" }
    collect: ${ vars.mine + steps.first.output + string(vars.count) + params.p }
""",
        "${ steps.each.output }",
        before="params: { p: { type: string } }\nvars: { outer: O }",
        params={"p": "P"},
    )
    assert seen == ["aOfirst2P", "bOfirst2P"]


def test_without_collect_the_output_of_the_last_step_that_ran_counts() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1, 2] }
    do:
      - { id: one, kind: shell, run: x }
      - { id: two, kind: shell, run: x, only_if: "${ item == 2 }" }
""",
        "${ steps.each.output }",
    )
    assert seen == ["one", "two"]


def test_a_body_of_skipped_steps_gives_null() -> None:
    steps = """
  - { id: each, kind: map, over: "${ [1] }", do: [{ id: one, kind: shell, run: x, only_if: "${ false }" }] }
"""
    assert ended(steps, "${ steps.each.output }") == [None]


def test_a_collect_that_fails_fails_its_item() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1, 0, 2] }
    join: settled
    do: [{ id: one, kind: shell, run: x }]
    collect: ${ 10 / item }
""",
        '["${ steps.each.output }", "${ steps.each.items[1].error.code }", "${ steps.each.items[1].error.step }"]',
    )
    assert seen == [[10, None, 5], "bad_expression", "one"]


def test_a_variable_that_cannot_be_computed_fails_its_item() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1, 0, 2] }
    join: settled
    vars: { part: "${ 10 / item }" }
    do: [{ id: one, kind: shell, run: x }]
    collect: ${ vars.part }
""",
        '["${ steps.each.output }", "${ steps.each.items[1].error.code }"]',
    )
    assert seen == [[10, None, 5], "bad_expression"]


def test_items_that_fail_at_their_very_start_stop_a_map_that_wants_all() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ [0, 0, 0, 0, 0, 0] }
    next: { failed: continue }
    vars: { part: "${ 10 / item }" }
    do: [{ id: one, kind: shell, run: x }]
""",
            after='output: "${ steps.each.counts }"',
        )
    )
    play(run_id)
    assert output_of(run_id) == {"ok": 0, "failed": 1, "cancelled": 0, "not_started": 5, "total": 6}
    assert_sound()


def test_done_finishes_an_item_and_fail_fails_it() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1, 2, 3] }
    join: settled
    do:
      - id: choose
        kind: condition
        cases: [{ when: "${ item == 1 }", outcome: enough }, { when: "${ item == 2 }", outcome: wrong }]
        next: { enough: done, wrong: fail, else: continue }
      - { id: work, kind: shell, run: x }
""",
        '["${ steps.each.output }", "${ steps.each.items }"]',
    )
    outputs, items = seen
    assert outputs == ["enough", None, "work"]
    assert [item["outcome"] for item in items] == ["ok", "failed", "ok"]
    message = 'The outcome "wrong" of "choose" leads to fail.'
    assert items[1]["error"] == {"code": "routed_to_fail", "step": "choose", "message": message}


def test_an_end_step_ends_the_body_it_is_in() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1, 2] }
    join: settled
    do:
      - { id: which, kind: condition, if: "${ item == 1 }", next: { then: good, else: wrong } }
      - { id: good, kind: end, status: succeeded, output: { item: "${ item }" } }
      - { id: wrong, kind: end, status: failed, reason: "not ${ item }" }
  - { id: after, kind: shell, run: x }
""",
        '["${ steps.each.output }", "${ steps.each.items[1].error }", "${ steps.after.output }"]',
    )
    error = {"code": "ended_failed", "step": "wrong", "message": "not 2"}
    assert seen == [[{"item": 1}, None], error, "after"]


def test_the_end_of_a_body_may_output_null() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ [1] }
    do: [{ id: one, kind: shell, run: x }, { id: good, kind: end, status: succeeded, output: '${ null }' }]
""",
        "${ steps.each.output }",
    )
    assert seen == [None]


# ---- nesting --------------------------------------------------------------------------------------------------------

NESTED = """
  - id: a
    kind: map
    over: ${ [1, 2] }
    as: x
    do:
      - id: b
        kind: map
        over: "${ [10 * x, 20 * x] }"
        as: y
        do:
          - id: c
            kind: map
            over: "${ [y + 1, y + 2] }"
            as: z
            do:
              - { id: leaf, kind: shell, run: x, access: read }
            collect: "${ string(x) + '/' + string(y) + '/' + string(z) + '#' + string(index) }"
        collect: "${ steps.c.output + [string(index)] }"
    collect: "${ steps.b.output }"
"""
NESTED_OUTPUT = [
    [["1/10/11#0", "1/10/12#1", "0"], ["1/20/21#0", "1/20/22#1", "1"]],
    [["2/20/21#0", "2/20/22#1", "0"], ["2/40/41#0", "2/40/42#1", "1"]],
]


@pytest.mark.parametrize("seed", range(3))
def test_maps_nest_three_deep(seed: int) -> None:
    assert ended(NESTED, "${ steps.a.output }", order=random.Random(seed)) == NESTED_OUTPUT


def test_paths_name_every_place() -> None:
    run_id = publish_run(workflow(NESTED))
    Player(run_id, order=random.Random(7)).play()
    leaves = Visit.objects.filter(run_id=run_id, step="leaf").order_by("scope").values_list("scope", flat=True)
    assert list(leaves) == [f"a[{i}]/b[{j}]/c[{k}]" for i in range(2) for j in range(2) for k in range(2)]


def test_a_map_in_a_loop_has_new_items_in_every_round() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ vars.left }
    max_visits: 3
    do: [{ id: one, kind: shell, run: x }]
    collect: ${ item }
    next: { exhausted: fail, empty: continue }
  - { id: less, kind: assign, set: { left: "${ vars.left.filter(x, x != vars.left[0]) }", seen: "${ vars.seen + [steps.each.output] }" } }
  - { id: more, kind: condition, if: "${ size(vars.left) > 0 }", next: { then: each, else: done } }
""",
            before="vars: { left: [1, 2, 3], seen: [] }",
            after='output: ["${ vars.seen }", "${ steps.each.visits }", "${ steps.each.output }"]',
        )
    )
    run = play(run_id)
    assert run.status == "succeeded"
    assert output_of(run_id) == [[[1, 2, 3], [2, 3], [3]], 3, [3]]
    assert [path for path in scopes_of(run_id) if path] == [
        "each#2[0]",
        "each#2[1]",
        "each#3[0]",
        "each[0]",
        "each[1]",
        "each[2]",
    ]
    assert_sound()


def test_a_nested_failure_names_the_whole_path() -> None:
    error = failed(
        """
  - id: a
    kind: map
    over: ${ [1, 2] }
    do:
      - id: b
        kind: map
        over: ${ [1] }
        do: [{ id: leaf, kind: shell, run: x }]
""",
        script={"leaf": lambda admission: bad(message="no") if admission.scope.path == "a[1]/b[0]" else ok()},
    )
    assert error == {
        "code": "items_failed",
        "step": "a",
        "message": "1 of 2 failed. First: a[1]/b: 1 of 1 failed. First: a[1]/b[0]/leaf: no",
    }


# ---- blocks ---------------------------------------------------------------------------------------------------------

BLOCK = """
blocks:
  greet:
    params: { who: { type: string }, times: { type: integer, default: 2 } }
    vars: { said: "${ params.who }" }
    steps:
      - { id: speak, kind: shell, run: x }
      - { id: repeat, kind: assign, set: { said: "${ vars.said + '!' }" } }
    output: ["${ vars.said }", "${ params.times }", "${ steps.speak.output }"]
"""


def test_a_block_sees_its_own_parameters_and_variables() -> None:
    seen = ended(
        """
  - { id: call, kind: block, use: greet, with: { who: "${ params.who + '?' }" } }
  - { id: last, kind: assign, set: { said: "${ vars.said + '.' }" } }
""",
        '["${ steps.call.output }", "${ vars.said }"]',
        before="params: { who: { type: string } }\nvars: { said: outer }",
        params={"who": "me"},
        after=BLOCK,
    )
    assert seen == [["me?!", 2, "speak"], "outer."]


def test_a_map_calls_a_block_for_every_item() -> None:
    seen = ended(
        """
  - id: each
    kind: map
    over: ${ ['a', 'b', 'c'] }
    use: greet
    with: { who: "${ item }", times: "${ index }" }
""",
        "${ steps.each.output }",
        after=BLOCK,
    )
    assert seen == [["a!", 0, "speak"], ["b!", 1, "speak"], ["c!", 2, "speak"]]


def test_an_item_whose_parameters_do_not_fit_the_block_fails() -> None:
    run_id = publish_run(
        workflow(
            """
  - id: each
    kind: map
    over: ${ ['a', 7] }
    join: settled
    use: greet
    with: { who: "${ item }" }
""",
            after=BLOCK + 'output: ["${ steps.each.output }", "${ steps.each.items[1].error }"]',
        )
    )
    assert play(run_id).status == "succeeded"
    outputs, error = output_of(run_id)
    assert outputs == [["a!", 2, "speak"], None]
    assert error == {"code": "bad_expression", "step": None, "message": '"who" must be text, but it is the number 7.'}
    assert_sound()


def test_the_failure_of_a_block_is_that_of_its_step() -> None:
    error = failed(
        "  - { id: call, kind: block, use: greet, with: { who: x } }", after=BLOCK, script={"speak": bad(message="no")}
    )
    assert error == {"code": "exit_nonzero", "step": "call", "message": "no"}


def test_a_block_that_takes_too_long_is_cancelled() -> None:
    run_id = publish_run(
        workflow(
            """
  - { id: call, kind: block, use: greet, with: { who: x }, timeout: 5s, next: { timed_out: continue } }
""",
            after=BLOCK + 'output: ["${ steps.call.outcome }", "${ steps.call.output }", "${ steps.call.error }"]',
        )
    )
    player = Player(run_id)
    player.step()
    player.pass_time(5_000)
    decision = player.step()
    assert decision.draft.cancelled_visits == [2]
    player.step({"v2.1": bad("cancelled", "stopped")})
    assert player.run.status == "succeeded"
    error = {"code": "timeout", "message": "The block took longer than its timeout."}
    assert output_of(run_id) == ["timed_out", None, error]
    assert path_of(run_id) == [("", "call", "timed_out"), ("call", "speak", "cancelled")]
    assert_sound()


def test_blocks_nest_and_each_call_has_a_path_of_its_own() -> None:
    seen = ended(
        """
  - { id: first, kind: block, use: outer, with: { n: 1 } }
  - { id: second, kind: block, use: outer, with: { n: 2 } }
""",
        '["${ steps.first.output }", "${ steps.second.output }"]',
        after="""
blocks:
  outer:
    params: { n: { type: integer } }
    steps: [{ id: in_it, kind: block, use: inner, with: { m: "${ params.n * 10 }" } }]
  inner:
    params: { m: { type: integer } }
    vars: { doubled: "${ params.m * 2 }" }
    steps: [{ id: work, kind: shell, run: x }]
    output: ${ vars.doubled }
""",
    )
    assert seen == [20, 40]


# ---- closing sections -----------------------------------------------------------------------------------------------


def test_maps_run_in_finally_and_on_failure() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: x }",
            after="""
on_failure:
  - { id: warn, kind: map, over: "${ ['a', 'b'] }", do: [{ id: tell, kind: shell, run: x }] }
finally:
  - id: tidy
    kind: map
    over: "${ [run.status, run.error.code] }"
    do: [{ id: sweep, kind: shell, run: x }]
    collect: ${ item }
  - { id: last, kind: shell, run: x, only_if: "${ steps.tidy.output == ['failed', 'exit_nonzero'] }" }
""",
        )
    )
    run = play(run_id, {"work": bad(message="no")})
    assert run.status == "failed"
    assert error_of(run_id) == {"code": "exit_nonzero", "step": "work", "message": "no"}
    assert path_of(run_id) == [
        ("", "work", "failed"),
        ("", "warn", "ok"),
        ("", "tidy", "ok"),
        ("", "last", "ok"),
        ("tidy[0]", "sweep", "ok"),
        ("tidy[1]", "sweep", "ok"),
        ("warn[0]", "tell", "ok"),
        ("warn[1]", "tell", "ok"),
    ]
    assert_sound()


def test_a_map_that_fails_in_finally_fails_a_run_that_had_succeeded() -> None:
    error = failed(
        "  - { id: work, kind: shell, run: x }",
        after="""
finally:
  - { id: tidy, kind: map, over: "${ [1, 2] }", do: [{ id: sweep, kind: shell, run: x }] }
  - { id: last, kind: shell, run: x }
""",
        script={"sweep": bad(message="no")},
    )
    message = "2 of 2 failed. First: tidy[0]/sweep: no"
    assert error == {"code": "finally_failed", "step": "tidy", "message": message}


# ---- events ---------------------------------------------------------------------------------------------------------


def test_events_tell_the_fan_out_and_the_end_of_every_item() -> None:
    run_id = publish_run(
        workflow("  - { id: each, kind: map, over: '${ [0,1] }', do: [{ id: one, kind: shell, run: x }] }")
    )
    play(run_id)
    assert events_of(run_id) == [
        "run_started", "step_fanned_out", "step_started", "step_started",
        "step_succeeded", "scope_ended", "step_succeeded", "scope_ended", "step_succeeded",
        "run_closing", "run_succeeded",
    ]  # fmt: skip
    payload = Event.objects.get(run_id=run_id, type="step_fanned_out").payload
    assert payload == '{"items":2,"step":"each"}'
