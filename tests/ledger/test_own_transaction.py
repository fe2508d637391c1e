"""How a batch is sent (docs/architecture.md, §5 hot path): what it says is tested in ``test_paths_agree``."""

from __future__ import annotations

import re

import pytest
from django.db import connection

from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import assert_sound
from tests.support.tap import counted
from workflows.ledger import own_transaction
from workflows.ledger.advance import advance
from workflows.ledger.hot_path import array_text
from workflows.models import Visit

TWO_STEPS = workflow(
    """
  - { id: one, kind: shell, run: make, access: read }
  - { id: two, kind: shell, run: make, access: read }
"""
)
TOGETHER = workflow(
    """
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6] }
    concurrency: 6
    do: [{ id: work, kind: shell, run: make, access: read }]
"""
)
CHAIN = workflow(
    """
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" }, max_visits: 150, next: { exhausted: done } }
  - { id: back, kind: condition, if: "${ vars.n < 100 }", next: { then: count, else: done } }
""",
    before="vars: { n: { type: integer, value: 0 } }",
)


@pytest.mark.parametrize(
    "values",
    [
        ["", None, "NULL", "null"],
        ['say "x"', "back\\slash", "\\", '"', "{a,b}", "a,b"],
        [" space ", "\t\n\r", "\u2028", "é", "\U0001f600", "'quoted'", "$1 %s"],
    ],
)
@pytest.mark.store("postgresql")
@pytest.mark.django_db(transaction=True)
def test_texts_come_out_of_an_array_as_they_went_in(values: list[str | None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[]", [array_text(values)])
        assert cursor.fetchone() == (values,)


@pytest.mark.store("postgresql")
@pytest.mark.django_db(transaction=True)
def test_numbers_and_flags_come_out_of_an_array_as_they_went_in() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s::bigint[], %s::boolean[]", [array_text([1, None, -(2**53) + 1]), array_text([True, None, False])]
        )
        assert cursor.fetchone() == ([1, None, -(2**53) + 1], [True, None, False])


@pytest.mark.store("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_sequential_step_is_one_statement_on_postgresql() -> None:
    hand = Hand(publish_run(TWO_STEPS))
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    with counted() as seen:
        advance(batch)
    assert [text.split()[0] for text in seen] == ["WITH"]


@pytest.mark.store("sqlite")
@pytest.mark.django_db(transaction=True)
def test_a_sequential_step_is_ten_statements_and_a_commit_on_sqlite() -> None:
    """BEGIN, the fence, three updates, five inserts."""
    hand = Hand(publish_run(TWO_STEPS))
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    with counted() as seen:
        advance(batch)
    assert [" ".join(text.split()[:2]) for text in seen] == [
        "BEGIN IMMEDIATE",
        'UPDATE "workflows_run"',
        'UPDATE "workflows_attempt"',
        'UPDATE "workflows_visit"',
        'UPDATE "workflows_scope"',
        "INSERT INTO",
        "INSERT INTO",
        "INSERT INTO",
        "INSERT INTO",
        "INSERT INTO",
    ]


@pytest.mark.parametrize("size", [10, 7_900, 300_000, 900_000])
@pytest.mark.django_db(transaction=True)
def test_outputs_of_any_size_that_arrive_together_are_written(size: int) -> None:
    """What a socket does not take at once must not be waited for in vain."""
    hand = Hand(publish_run(TOGETHER))
    hand.step()
    outputs = {name: ok("x" * size + name) for name in hand.running}
    assert len(outputs) == 6
    advance(hand.batch(hand.decide(outputs)))
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_the_number_of_statements_does_not_grow_with_a_chain_of_pure_steps() -> None:
    hand = Hand(publish_run(CHAIN))
    batch = hand.batch(hand.decide())
    assert len(batch.visits_new) > 50
    with counted() as seen:
        advance(batch)
    assert len(seen) <= 10
    assert_sound()
    assert Visit.objects.count() == len(batch.visits_new)


@pytest.mark.store("postgresql")
@pytest.mark.django_db(transaction=True)
def test_texts_with_many_rows_do_not_depend_on_how_many_there_are() -> None:
    """So that they stay prepared."""
    texts: list[list[str]] = []
    for limit in (40, 90):
        hand = Hand(publish_run(CHAIN.replace("vars.n < 100", f"vars.n < {limit}")))
        batch = hand.batch(hand.decide())
        with counted() as seen:
            own_transaction.write(connection, batch)
        texts.append(seen)
    assert texts[0] == texts[1]


@pytest.mark.store("postgresql")
@pytest.mark.django_db(transaction=True)
def test_no_update_of_a_kept_plan_goes_through_all_rows_of_a_run() -> None:
    """A plan is made while the tables are nearly empty and kept, so it must not depend on what they hold."""
    hand = Hand(publish_run(TWO_STEPS))
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    with counted() as seen:
        advance(batch)
    numbers = re.findall(r"\$[0-9]+", seen[0])
    with connection.cursor() as cursor:
        cursor.execute("SET plan_cache_mode = force_generic_plan")
        cursor.connection.execute(f"PREPARE kept AS {seen[0]}")
        plan = cursor.connection.execute(f"EXPLAIN EXECUTE kept({', '.join(['NULL'] * len(numbers))})").fetchall()
        cursor.execute("RESET plan_cache_mode")
        cursor.connection.execute("DEALLOCATE kept")
    conditions = [line.strip() for (line,) in plan if "Index Cond" in line]
    assert len(conditions) == 5
    assert not [line for line in conditions if re.fullmatch(r"Index Cond: \(run_id = \$[0-9]+\)", line)][1:], plan


@pytest.mark.django_db(transaction=True)
def test_a_fence_that_lets_nothing_pass_leaves_no_transaction_open() -> None:
    hand = Hand(publish_run(TWO_STEPS))
    batch = hand.batch(hand.decide())
    assert own_transaction.write(connection, batch)
    assert not own_transaction.write(connection, batch)
    driver = connection.connection
    if connection.vendor == "sqlite":
        assert not driver.in_transaction
    else:
        assert driver.info.transaction_status.name == "IDLE"
