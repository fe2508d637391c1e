"""Large fan-outs: correct, linear, and with nothing kept in memory that has ended (docs/architecture.md)."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.driving import drive
from tests.support.kinds import Scripted, kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of, output_of, play
from tests.support.rows import assert_sound
from tests.support.tap import counted
from workflows.models import Payload, RowVersion, Run, Scope, Visit

pytestmark = pytest.mark.django_db(transaction=True)

XS = "params: { xs: { type: array, items: { type: integer } } }"


def effects(more: str = "", concurrency: int = 8) -> str:
    return workflow(
        f"""
  - id: each
    kind: map
    over: ${{ params.xs }}
    concurrency: {concurrency}
    max_items: 10000
    {more}
    do: [{{ id: work, kind: shell, run: x, access: read, env: {{ N: "${{ item }}" }} }}]
    collect: "${{ [item, steps.work.output] }}"
""",
        before=XS,
        after='output: ["${ size(steps.each.output) }", "${ steps.each.output[0] }", "${ steps.each.counts.ok }"]',
    )


PURE = workflow(
    """
  - id: each
    kind: map
    over: ${ params.xs }
    concurrency: 64
    max_items: 10000
    vars: { twice: 0 }
    do: [{ id: twice, kind: assign, set: { twice: "${ item * 2 }" } }]
    collect: ${ vars.twice }
""",
    before=XS,
    after='output: ["${ size(steps.each.output) }", "${ steps.each.output[9999] }", "${ steps.each.counts.ok }"]',
)


def test_a_thousand_items_with_effects_are_correct(tmp_path: Path) -> None:
    run_id = publish_run(effects(concurrency=16), {"xs": list(range(1000))})

    def work(context: Any) -> Any:
        return ok(int(context.inputs["env"]["N"]) + 1)

    scripted = Scripted(work=work)
    drive(run_id, tmp_path, kinds_with(scripted))
    assert output_of(run_id) == [1000, [0, 1], 1000]
    visit = Visit.objects.get(run_id=run_id, step="each")
    assert visit.output_digest is not None
    output = json.loads(Payload.objects.get(digest=visit.output_digest).text)
    assert output == [[number, number + 1] for number in range(1000)]
    assert Counter(call.path for call in scripted.calls).most_common(1)[0][1] == 1
    assert_sound(run_id)


def test_ten_thousand_pure_items_are_correct(tmp_path: Path) -> None:
    run_id = publish_run(PURE, {"xs": list(range(10_000))})
    # a run makes ten thousand visits unless it says otherwise; the map's own is one more
    assert drive(run_id, tmp_path).value == "ended"
    assert Run.objects.get(pk=run_id).status == "failed"
    run_id = publish_run(PURE.replace("params:", "budget: { visits: 20000 }\nparams:"), {"xs": list(range(10_000))})
    drive(run_id, tmp_path)
    assert output_of(run_id) == [10_000, 19_998, 10_000]
    assert Scope.objects.filter(run_id=run_id, outcome="ok").count() == 10_000
    assert_sound(run_id)


@pytest.mark.parametrize("more", ["", "budget: { visits: 5000 }", "key: 'k${ item }'"])
def test_an_item_costs_the_same_statements_whatever_was_before_it(more: str) -> None:
    player = Player(publish_run(effects(more), {"xs": list(range(300))}))
    player.step()
    costs = []
    for _ in range(280):
        with counted() as seen:
            name = player.running()[0]
            player.hand.step({name: ok(1)})
        costs.append(len([sql for sql in seen if "SAVEPOINT" not in sql]))
    assert len(set(costs[2:])) == 1, Counter(costs)


def test_no_row_is_written_again_per_item() -> None:
    """A map that keeps its list and its counters in one row is quadratic."""
    run_id = publish_run(effects(), {"xs": list(range(200))})
    play(run_id)
    scopes = RowVersion.objects.filter(run_id=run_id, table="scope", key="").count()
    assert scopes <= 4
    versions = RowVersion.objects.filter(run_id=run_id, table="scope").values_list("key", flat=True)
    assert max(Counter(versions).values()) <= 4
    assert not [row for row in RowVersion.objects.filter(run_id=run_id) if len(row.row) > 2_000]


def test_items_that_have_ended_are_forgotten() -> None:
    player = Player(publish_run(effects(), {"xs": list(range(300))}))
    player.step()
    sizes = []
    for number in range(280):
        player.step({player.running()[0]: ok(1)})
        if number % 40 == 39:
            memory = player.hand.memory
            sizes.append(
                (
                    len(memory._scopes),
                    len(memory._open),
                    len(memory._settled),
                    len(memory._attempts),
                    len(memory._variables),
                    len(memory._steps_of),
                )
            )
    assert len(set(sizes)) == 1, sizes


def test_the_memory_of_a_driver_does_not_grow_with_the_items() -> None:
    player = Player(publish_run(effects(), {"xs": list(range(330))}))
    player.step()

    def settle(count: int) -> None:
        for _ in range(count):
            player.hand.step({player.running()[0]: ok(1)})

    settle(60)
    tracemalloc.start()
    settle(60)
    early = tracemalloc.get_traced_memory()[0]
    settle(180)
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # payloads of results are kept up to a bound; everything else is dropped with its item
    assert late - early < 800_000


def test_results_that_are_too_large_together_fail_the_map_before_they_are_read() -> None:
    text = effects("next: { failed: continue }", concurrency=64).replace(
        'output: ["${ size(steps.each.output) }", "${ steps.each.output[0] }", "${ steps.each.counts.ok }"]',
        'output: ["${ steps.each.outcome }", "${ steps.each.error.code }", "${ steps.each.output }"]',
    )
    run_id = publish_run(text, {"xs": list(range(40))})
    play(run_id, {"work": lambda admission: ok("x" * 900_000 + str(admission.scope.index))})
    assert output_of(run_id) == ["failed", "output_too_large", None]
    error = json.loads(Visit.objects.get(run_id=run_id, step="each").error)
    assert error["message"] == (
        "The joined output cannot be kept: The results of the items are 36,000,340 bytes as JSON; "
        "the limit is 33,554,432 bytes."
    )
    assert error_of(run_id) == {}
