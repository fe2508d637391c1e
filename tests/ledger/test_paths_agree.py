"""The generated SQL, the single statement and the managers write the same rows (docs/architecture.md, hot path)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from django.db import connection

from tests.support.hand import Hand, Write, expire
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows, assert_sound, run_rows
from tests.support.scenarios import SCENARIOS
from workflows.errors import Refusal
from workflows.ledger import hot_path
from workflows.ledger.advance import advance, advance_plainly
from workflows.ledger.batch import Batch
from workflows.ledger.controlling import send
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Payload, Run
from workflows.statuses import ControlKind

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]  # payloads are taken away in between


@ledger_transaction
def advance_in_a_transaction(batch: Batch) -> None:
    """The generated SQL, always as a sequence of statements."""
    hot_path.write(connection, batch)


WRITERS: dict[str, Write] = {
    "advance": advance,
    "a transaction": advance_in_a_transaction,
    "the managers": advance_plainly,
}


@ledger_transaction
def forget_payloads() -> None:
    """So that the next path has to write them again."""
    Payload.objects.all().delete()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_path_writes_the_same_rows(name: str) -> None:
    """SET.1, EVT.2, REV.1: and the rows tell one story."""
    written: dict[str, Any] = {}
    for path, write in WRITERS.items():
        run_id = SCENARIOS[name](write)
        assert_sound()
        written[path] = run_rows(run_id)
        forget_payloads()
    assert sum(map(len, written["the managers"].values())) > 10
    for path in WRITERS:
        for table, rows in written["the managers"].items():
            assert written[path][table] == rows, (path, table)
        assert written[path] == written["the managers"], path


def test_together_the_runs_fill_every_part_of_a_batch() -> None:
    """So that no part is compared as empty with empty. Children and places in line have tests of their own."""
    filled: set[str] = set()

    def note(batch: Batch) -> None:
        filled.update(field.name for field in fields(batch) if getattr(batch, field.name))
        advance(batch)

    for scenario in SCENARIOS.values():
        scenario(note)
    everything = {field.name for field in fields(Batch)}
    assert everything - filled == {"children", "offers", "slots_wanted", "slots_freed", "slots_used", "frees_run_slot"}


ONE_STEP = workflow("  - { id: work, kind: shell, run: make, access: read }")


def prepared() -> tuple[int, Hand, Batch]:
    """A run with a running attempt, and the batch that settles it."""
    run_id = publish_run(ONE_STEP)
    hand = Hand(run_id)
    hand.step()
    return run_id, hand, hand.batch(hand.decide({"v1.1": ok()}))


def refusal_of(write: Write, batch: Batch) -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        write(batch)
    assert all_rows() == before
    return caught.value


@pytest.mark.parametrize("path", WRITERS)
def test_a_displaced_owner_gets_the_new_epoch_and_writes_nothing(path: str) -> None:
    """LEASE.4"""
    run_id, _, batch = prepared()
    expire(run_id)
    Hand(run_id, owner="second")
    refusal = refusal_of(WRITERS[path], batch)
    assert (refusal.code, refusal.message) == (
        "lease.lost",
        f"The lease on run {run_id} was lost: epoch 2 took over from epoch 1.",
    )


@pytest.mark.parametrize("path", WRITERS)
def test_an_expired_lease_that_nobody_took_over_lets_nothing_pass(path: str) -> None:
    """LEASE.2"""
    run_id, _, batch = prepared()
    expire(run_id)
    refusal = refusal_of(WRITERS[path], batch)
    assert (refusal.code, refusal.message) == (
        "lease.lost",
        f"The lease on run {run_id} was lost: the lease of epoch 1 has ended.",
    )


@pytest.mark.parametrize("path", WRITERS)
def test_the_same_batch_again_passes_nothing_once_the_run_has_ended(path: str) -> None:
    """LEASE.2: the lease went with the end of the run, which is the reason that is told."""
    _, _, batch = prepared()
    WRITERS[path](batch)
    assert refusal_of(WRITERS[path], batch).code == "run.terminal"


@pytest.mark.parametrize("path", WRITERS)
def test_a_change_since_the_decision_is_a_conflict(path: str) -> None:
    run_id, _, batch = prepared()
    send(run_id=run_id, kind=ControlKind.PAUSE, payload={}, request_id="r", sender="bob", now=batch.events[0].at)
    refusal = refusal_of(WRITERS[path], batch)
    revision = Run.objects.get(pk=run_id).revision
    assert (refusal.code, refusal.message) == (
        "run.conflict",
        f"Run {run_id} changed in between (revision {revision}); nothing was written.",
    )


@pytest.mark.parametrize("path", ["a transaction", "the managers"])
def test_an_attempt_that_is_not_running_any_more_is_a_conflict(path: str) -> None:
    """SET.2: a row that was changed behind the ledger's back."""
    run_id, _, batch = prepared()

    @ledger_transaction
    def settle_behind_its_back() -> None:
        Attempt.objects.filter(run_id=run_id).update(status="failed", digest="0" * 64)

    settle_behind_its_back()
    refusal = refusal_of(WRITERS[path], batch)
    assert (refusal.code, refusal.message) == (
        "attempt.conflict",
        "Attempt v1.1 is already settled with another result.",
    )


class _Clock:
    """A writer whose clock stands still."""

    def __init__(self, now_ms: int) -> None:
        self.writer = hot_path.Writer(connection)
        self.writer.now = str(now_ms)

    def __enter__(self) -> None:
        self.before = hot_path.writer_for(connection)
        hot_path._writers[connection.vendor] = self.writer

    def __exit__(self, *_: object) -> None:
        hot_path._writers[connection.vendor] = self.before


@pytest.mark.parametrize(("after", "passes"), [(59_999, True), (60_000, False), (60_001, False)])
@pytest.mark.parametrize("path", WRITERS)
def test_the_fence_is_open_before_the_expiry_and_shut_exactly_at_it(path: str, after: int, passes: bool) -> None:
    """LEASE.2"""
    start = 1_900_000_000_000
    run_id = publish_run(ONE_STEP)
    hand = Hand(run_id, at_ms=start)
    batch = hand.batch(hand.decide())

    def write(given: Batch) -> None:
        if path == "the managers":
            advance_plainly(given, now=start + after)
        else:
            with _Clock(start + after):
                WRITERS[path](given)

    if passes:
        write(batch)
        assert Attempt.objects.filter(run_id=run_id, status="running").count() == 1
    elif path == "advance" and connection.vendor == "postgresql":
        # the single statement tells that nothing passed; why, it asks by the real clock
        before = all_rows()
        with pytest.raises(Refusal):
            write(batch)
        assert all_rows() == before
    else:
        before = all_rows()
        with pytest.raises(Refusal) as caught:
            write(batch)
        assert caught.value.code in ("lease.lost", "run.conflict")
        assert all_rows() == before
