"""What an expression sees: of its own scope, and read-only of those around it up to a block (docs/format.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, play
from tests.support.rows import assert_sound
from workflows.models import Visit

pytestmark = pytest.mark.django_db(transaction=True)


def ended(steps: str, output: str, *, before: str = "", after: str = "", script: Any = None, **params: Any) -> Any:
    run_id = publish_run(workflow(steps, before=before, after=f"{after}\noutput: {output}"), params)
    run = play(run_id, script)
    assert (run.status, run.error) == ("succeeded", "")
    assert_sound()
    return output_of(run_id)


def test_what_has_no_value_is_null_or_zero() -> None:
    seen = ended(
        """
  - { id: one, kind: shell, run: x, only_if: "${ false }" }
  - id: look
    kind: assign
    set:
      seen: ["${ steps.one.output }", "${ steps.one.outcome }", "${ steps.one.visits }", "${ steps.one.attempts }",
             "${ steps.one.error }", "${ steps.one.exit_code }", "${ steps.one.items }", "${ steps.one.counts }",
             "${ params.p }", "${ steps.never.output }", "${ steps.never.outcome }", "${ steps.never.visits }",
             "${ steps.never.attempts }", "${ steps.never.started_at }"]
    next: done
  - { id: never, kind: shell, run: x }
""".replace("    next: done\n", "    next: { ok: route }\n").replace(
            "  - { id: never,",
            "  - { id: route, kind: condition, if: '${ true }', next: { then: done, else: never } }\n  - { id: never,",
        ),
        "${ vars.seen }",
        before="params: { p: { type: string, optional: true } }\nvars: { seen: [] }",
        p=None,
    )
    assert seen == [None, "skipped", 1, 0, None, None, None, None, None, None, None, 0, 0, None]


def test_a_step_shows_its_latest_visit() -> None:
    seen = ended(
        """
  - { id: one, kind: shell, run: x, max_visits: 2, next: { failed: one, ok: one, exhausted: look } }
  - id: look
    kind: assign
    set: { seen: ["${ steps.one.output }", "${ steps.one.outcome }", "${ steps.one.visits }", "${ steps.one.error.code }"] }
""",
        "${ vars.seen }",
        before="vars: { seen: [] }",
        script={"one": lambda admission: ok("second") if admission.visit.round == 2 else bad()},
    )
    assert seen == ["second", "exhausted", 2, "loop_limit"]


def test_retries_are_attempts_of_one_visit() -> None:
    tries = iter([bad(), bad(), ok("third")])
    run_id = publish_run(
        workflow(
            "  - { id: one, kind: shell, run: x, retry: { attempts: 3, wait: 0s } }",
            after='output: ["${ steps.one.visits }", "${ steps.one.attempts }", "${ steps.one.output }"]',
        )
    )
    play(run_id, {"one": lambda admission: next(tries)})
    assert output_of(run_id) == [1, 3, "third"]


@pytest.mark.parametrize(
    "step",
    [
        "{ id: one, kind: wait, for: 0s }",
        "{ id: one, kind: assign, set: { seen: 1 } }",
        "{ id: one, kind: condition, if: '${ true }' }",
        "{ id: one, kind: map, over: '${ [] }', do: [{ id: x, kind: shell, run: x }] }",
        "{ id: one, kind: parallel, branches: { a: [{ id: y, kind: shell, run: x }] } }",
    ],
)
def test_kinds_without_attempts_read_one(step: str) -> None:
    assert ended(f"  - {step}", "${ steps.one.attempts }", before="vars: { seen: 0 }") == 1


def test_a_nested_body_sees_every_scope_around_it() -> None:
    seen = ended(
        """
  - { id: top, kind: shell, run: x }
  - id: a
    kind: map
    over: ${ ['p', 'q'] }
    as: x
    vars: { va: "${ x + '!' }" }
    do:
      - { id: in_a, kind: shell, run: x }
      - id: sides
        kind: parallel
        branches:
          left:
            - id: b
              kind: map
              over: ${ [1, 2] }
              as: y
              vars: { vb: "${ y * 10 }" }
              do: [{ id: in_b, kind: shell, run: x }]
              collect: "${ [params.p, vars.top, vars.va, string(vars.vb), x, string(y), string(index), steps.top.output, steps.in_a.output, steps.in_b.output] }"
    collect: ${ steps.sides.output.left }
""",
        "${ steps.a.output }",
        before="params: { p: { type: string } }\nvars: { top: T }",
        p="P",
    )
    row = ["P", "T", "p!", "10", "p", "1", "0", "top", "in_a", "in_b"]
    assert seen[0][0] == row
    assert seen[1][1] == ["P", "T", "q!", "20", "q", "2", "1", "top", "in_a", "in_b"]


def test_the_same_name_means_the_innermost_item() -> None:
    seen = ended(
        """
  - id: a
    kind: map
    over: ${ [1, 2] }
    do:
      - id: b
        kind: map
        over: "${ [item * 10, item * 100] }"
        do: [{ id: leaf, kind: shell, run: x }]
        collect: "${ [item, index] }"
    collect: "${ [item, index, steps.b.output] }"
""",
        "${ steps.a.output }",
    )
    assert seen == [[1, 0, [[10, 0], [100, 1]]], [2, 1, [[20, 0], [200, 1]]]]


def test_items_set_their_own_variables_and_never_each_others() -> None:
    seen = ended(
        """
  - id: a
    kind: map
    over: ${ [1, 2, 3] }
    vars: { sum: 0 }
    do:
      - { id: add, kind: assign, set: { sum: "${ vars.sum + item }" }, max_visits: 3, next: { exhausted: done } }
      - { id: again, kind: shell, run: x, next: add }
    collect: ${ vars.sum }
""",
        '["${ steps.a.output }", "${ vars.sum }"]',
        before="vars: { sum: 100 }",
    )
    assert seen == [[3, 6, 9], 100]


def test_an_assign_in_a_branch_sets_what_is_declared_nearest() -> None:
    seen = ended(
        """
  - id: a
    kind: map
    over: ${ [1] }
    vars: { mine: 0 }
    do:
      - id: call
        kind: block
        use: body
        with: { n: "${ item }" }
      - { id: take, kind: assign, set: { mine: "${ steps.call.output }" } }
    collect: ${ vars.mine }
""",
        "${ steps.a.output }",
        after="""
blocks:
  body:
    params: { n: { type: integer } }
    vars: { mine: 5 }
    steps: [{ id: change, kind: assign, set: { mine: "${ vars.mine + params.n }" } }]
    output: ${ vars.mine }
""",
    )
    assert seen == [6]


def test_a_block_called_from_an_item_sees_nothing_of_it() -> None:
    """The validator refuses the name; what reaches the engine all the same is a name without a value."""
    run_id = publish_run(
        workflow(
            "  - { id: a, kind: map, over: '${ [7] }', join: settled, use: body }",
            after="""
blocks:
  body:
    steps: [{ id: look, kind: condition, if: "${ item == 7 }" }]
output: ${ steps.a.items[0].error.code }
""",
        )
    )
    play(run_id)
    assert output_of(run_id) == "bad_expression"


def test_run_has_status_and_error_only_while_it_closes() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: work, kind: shell, run: x }",
            after="""
on_failure:
  - id: each
    kind: map
    over: "${ [run.status, run.error.code, run.error.step, run.error.message] }"
    do: [{ id: leaf, kind: shell, run: x, only_if: "${ run.status == 'failed' }" }]
    collect: ${ [item, run.status] }
finally:
  - { id: look, kind: shell, run: x, only_if: "${ steps.each.output == [['failed', 'failed'], ['exit_nonzero', 'failed'], ['work', 'failed'], ['no', 'failed']] }" }
""",
        )
    )
    play(run_id, {"work": bad(message="no")})
    assert Visit.objects.get(run_id=run_id, step="look").outcome == "ok"
    assert error_of(run_id) == {"code": "exit_nonzero", "step": "work", "message": "no"}


def test_times_are_those_of_the_decisions_that_began_and_ended_a_visit() -> None:
    run_id = publish_run(
        workflow(
            "  - { id: one, kind: shell, run: x }",
            after='output: ["${ run.started_at }", "${ steps.one.started_at }", "${ steps.one.finished_at }"]',
        )
    )
    player = Player(run_id, now=START)
    player.step()
    player.pass_time(1_500)
    player.settle()
    assert output_of(run_id) == [
        "2026-01-31T09:30:00.000Z",
        "2026-01-31T09:30:00.000Z",
        "2026-01-31T09:30:01.500Z",
    ]


def test_results_are_seen_after_a_takeover_as_before_it() -> None:
    run_id = publish_run(
        workflow(
            """
  - { id: each, kind: map, over: "${ [1, 0] }", join: settled, do: [{ id: leaf, kind: shell, run: x, access: read }], collect: "${ 10 / item }" }
  - { id: rest, kind: shell, run: x, access: read }
""",
            after='output: ["${ steps.each.output }", "${ steps.each.counts }", "${ steps.each.items.map(i, i.outcome) }", "${ steps.each.visits }", "${ steps.each.outcome }"]',
        )
    )
    player = Player(run_id)
    player.step()
    player.settle()
    player.die()
    player.step()
    player.settle()
    counts = {"ok": 1, "failed": 1, "cancelled": 0, "not_started": 0, "total": 2}
    assert output_of(run_id) == [[10, None], counts, ["ok", "failed"], 1, "ok"]
    assert_sound()
