"""Advance: all or nothing, at a constant number of statements (promise SET 1, 2; ADM 4; EVT 2; REV 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import IntegrityError, connection

from tests.ledger.test_paths_agree import WRITERS
from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.scenarios import SCENARIOS
from tests.support.tap import Injected, counted, failing_at
from workflows.ledger.advance import advance, was_committed
from workflows.ledger.batch import Batch
from workflows.ledger.listeners import listeners
from workflows.models import Attempt, Event, RowVersion, Run

pytestmark = pytest.mark.django_db(transaction=True)

LOOP = workflow("""
  - { id: work, kind: shell, run: make, access: read, max_visits: 1000, next: { ok: work, exhausted: done } }
""")


@pytest.mark.parametrize("path", WRITERS)
@pytest.mark.parametrize("name", ["chain", "retried", "interrupted_write", "closed", "controlled", "fanned_out"])
def test_a_failure_at_any_statement_of_any_batch_leaves_nothing(name: str, path: str) -> None:
    """SET.1: every statement of every batch of a run fails once; then the batch is written and the run goes on."""
    write, injected = WRITERS[path], 0

    def fail_everywhere(batch: Batch) -> None:
        nonlocal injected
        before = all_rows()
        for number in range(1, 60):
            try:
                with failing_at(number) as seen:
                    write(batch)
            except Injected:
                injected += 1
                assert all_rows() == before, seen[-1]
            else:
                return
        raise AssertionError("a batch has more than 60 statements")

    SCENARIOS[name](fail_everywhere)
    assert injected > 5
    assert_sound()


@pytest.mark.parametrize("path", WRITERS)
@pytest.mark.parametrize("table", ["Event", "RowVersion", "Attempt", "Visit"])
def test_a_row_that_the_database_refuses_undoes_the_whole_batch(table: str, path: str) -> None:
    """SET.1: also inside one statement."""
    run_id = publish_run(LOOP)
    hand = Hand(run_id)
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    broken = {
        "Event": lambda: replace(batch, events=(*batch.events, batch.events[0])),
        "RowVersion": lambda: replace(batch, versions=(*batch.versions, batch.versions[0])),
        "Attempt": lambda: replace(batch, attempts_new=(*batch.attempts_new, batch.attempts_new[0])),
        "Visit": lambda: replace(batch, visits_new=(*batch.visits_new, batch.visits_new[0])),
    }[table]()
    before = all_rows()
    with pytest.raises(IntegrityError):
        WRITERS[path](broken)
    assert all_rows() == before
    WRITERS[path](batch)
    assert_sound()


@pytest.mark.parametrize("path", WRITERS)
def test_a_second_running_attempt_of_a_visit_is_refused_by_the_database(path: str) -> None:
    """ADM.4"""
    run_id = publish_run(LOOP)
    hand = Hand(run_id)
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    second = replace(batch.attempts_new[0], visit=1, number=2)
    before = all_rows()
    with pytest.raises(IntegrityError):
        WRITERS[path](replace(batch, attempts_settled=(), attempts_new=(second,)))
    assert all_rows() == before


def test_one_transaction_commits_several_consecutive_revisions() -> None:
    """SET.1, REV.1, EVT.2"""
    run_id = SCENARIOS["chain"](advance)
    rows = Event.objects.filter(run_id=run_id).order_by("sequence").values_list("revision", "type", "visit", "attempt")
    assert list(rows) == [
        (1, "run_started", None, None),
        (2, "variables_set", None, None),
        (3, "step_started", 1, 1),
        (4, "step_succeeded", 1, 1),
        (5, "step_succeeded", 2, None),
        (6, "step_started", 3, 1),
        (7, "step_succeeded", 3, 1),
        (8, "step_started", 4, 1),
        (9, "step_succeeded", 4, 1),
        (9, "run_closing", None, None),
        (9, "run_succeeded", None, None),
    ]


def count_of(write: Callable[[], object]) -> int:
    with counted() as seen:
        write()
    return len(seen)


@pytest.mark.parametrize("path", WRITERS)
def test_a_step_takes_the_same_statements_at_round_2_and_at_round_1000(path: str) -> None:
    """docs/architecture.md: constant cost per step. On PostgreSQL a usual step is one statement."""
    run_id = publish_run(LOOP)
    counts: dict[int, int] = {}
    round = 1

    def write(batch: Batch) -> None:
        if round in (2, 3, 500, 999, 1000):
            counts[round] = count_of(lambda: WRITERS[path](batch))
        else:
            advance(batch)

    hand = Hand(run_id, write=write)
    hand.step()
    for round in range(2, 1001):  # noqa: B007  # read by write
        (name,) = hand.running
        hand.step({name: ok(1)})
    assert len(set(counts.values())) == 1, counts
    if path == "advance":
        assert counts[1000] == (1 if connection.vendor == "postgresql" else 10)


def test_deciding_reads_nothing_while_the_driver_knows_the_run() -> None:
    """docs/architecture.md: nothing reads O(history) per step."""
    hand = Hand(publish_run(LOOP))
    hand.step()
    for round in range(1, 30):
        with counted() as seen:
            decision = hand.decide({f"v{round}.1": ok(round)}, messages=())
        assert seen == []
        hand.write(hand.batch(decision))
        hand.memory.absorb(decision.draft)


def test_a_lost_reply_is_resolved_by_the_random_id_of_the_commit() -> None:
    run_id = publish_run(LOOP)
    hand = Hand(run_id)
    batch = hand.batch(hand.decide())
    assert not was_committed(batch)
    advance(batch)
    assert was_committed(batch)
    assert Run.objects.get(pk=run_id).last_commit == batch.commit_id


def test_a_settlement_is_written_once_also_when_its_batch_comes_again() -> None:
    """SET.2"""
    run_id = publish_run(LOOP)
    hand = Hand(run_id)
    hand.step()
    batch = hand.batch(hand.decide({"v1.1": ok(1)}))
    hand.write(batch)
    before = all_rows()
    for write in WRITERS.values():
        with pytest.raises(Exception, match=r"changed in between"):
            write(batch)
    assert all_rows() == before
    assert events_of(run_id).count("step_succeeded") == 1


def test_events_name_each_settled_attempt_once() -> None:
    """EVT.2"""
    for name, scenario in SCENARIOS.items():
        run_id = scenario(advance)
        for attempt in Attempt.objects.filter(run_id=run_id).exclude(status__in=["running", "paused"]):
            ends = Event.objects.filter(
                run_id=run_id,
                visit=attempt.visit,
                attempt=attempt.number,
                type__in=["step_succeeded", "step_failed", "step_cancelled", "step_retrying", "step_interrupted"],
            )
            expected = 1 if attempt.status in ("interrupted", "cancelled") or '"uncertain"' not in attempt.marks else 2
            assert ends.count() == expected, (name, attempt)


def test_no_event_and_no_version_carries_an_output() -> None:
    """EVT.4, REV.1"""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make }", after="output: ${ steps.work.output }"))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok("a secret of some length", log="another secret\n")})
    texts = [
        *Event.objects.filter(run_id=run_id).values_list("payload", flat=True),
        *RowVersion.objects.filter(run_id=run_id).values_list("row", flat=True),
    ]
    assert [text for text in texts if "secret" in text] == []


def test_listeners_are_not_part_of_the_transaction(caplog: pytest.LogCaptureFixture) -> None:
    """EVT.3"""
    heard: list[int] = []
    listeners.extend([lambda run, revision: 1 / 0, lambda run, revision: heard.append(run)])
    try:
        run_id = publish_run(LOOP)
    finally:
        del listeners[-2:]
    assert heard == [run_id]
    assert Run.objects.filter(pk=run_id).exists()
    assert [record.message for record in caplog.records] == ["A listener of a committed ledger transaction failed."]
