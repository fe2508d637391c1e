"""The fence on PostgreSQL: the run row is held across an expiry and a takeover, with every form of waiting (LEASE.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.ledger.test_paths_agree import WRITERS
from tests.races.observing import TIMEOUT_S, Gate, in_thread, stopping_before_commit, threads, wait_for_lock_waits
from tests.support.hand import ENGINE_VERSIONS, TTL_MS, Hand, expire
from tests.support.kinds import ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import assert_sound, events_of, run_rows
from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.facts import PayloadRow
from workflows.ledger import leases
from workflows.ledger.batch import Batch
from workflows.ledger.controlling import Accepted, send
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Lease, Payload, Run
from workflows.statuses import ControlKind

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("postgresql")]

TEXT = workflow("""
  - { id: one, kind: shell, run: make, access: read }
  - { id: two, kind: shell, run: make, access: read }
""")
LOST = "The lease on run {} was lost: epoch 2 took over from epoch 1."


def prepared() -> tuple[int, Batch]:
    run_id = publish_run(TEXT)
    hand = Hand(run_id, owner="first")
    hand.step()
    return run_id, hand.batch(hand.decide({"v1.1": ok()}))


def takeover(run_id: int, ahead_ms: int = 10 * TTL_MS) -> Callable[[], leases.Grant]:
    """The takeover of somebody whose clock says that the lease has ended long ago."""
    return lambda: leases.acquire(
        run_id=run_id,
        owner="second",
        ttl_ms=TTL_MS,
        engine_versions=ENGINE_VERSIONS,
        now=database_now_ms() + ahead_ms,
    )


def send_pause(run_id: int) -> Accepted:
    return send(run_id=run_id, kind=ControlKind.PAUSE, payload={}, request_id="r", sender="bob", now=START)


def driver_rows(run_id: int) -> dict[str, Any]:
    """What only a driver writes."""
    return {name: rows for name, rows in run_rows(run_id).items() if name in ("Attempt", "Visit", "Scope", "ScopeVars")}


@ledger_transaction
def hold_row_and_roll_back(run_id: int, gate: Gate) -> None:
    """Somebody who locks the run, stops, and changes nothing."""
    Run.objects.lock(run_id)
    gate.stop_here()
    raise LookupError("rolled back")


def assert_lost(answer: object, run_id: int) -> None:
    assert isinstance(answer, Refusal), answer
    assert (answer.code, answer.message) == ("lease.lost", LOST.format(run_id))


@pytest.mark.parametrize("path", WRITERS)
def test_a_write_that_waits_for_a_takeover_is_lost_whatever_the_clocks_say(path: str) -> None:
    """LEASE.4: the lease is live by the database clock all the time; only the epoch on the locked row protects."""
    run_id, batch = prepared()
    before, gate = driver_rows(run_id), Gate()
    with threads(2) as pool:
        taking = in_thread(pool, stopping_before_commit(gate, takeover(run_id)))
        assert gate.reached.wait(TIMEOUT_S)
        writing = in_thread(pool, lambda: WRITERS[path](batch))
        wait_for_lock_waits(1)
        gate.opened.set()
        lost, taken = writing.result(TIMEOUT_S), taking.result(TIMEOUT_S)
    assert isinstance(taken, leases.Grant), taken
    assert_lost(lost, run_id)
    assert driver_rows(run_id) == before
    assert events_of(run_id)[-1] == "lease_recovered"
    assert_sound()


@pytest.mark.parametrize("path", WRITERS)
def test_a_write_that_stands_in_line_behind_a_takeover_is_lost(path: str) -> None:
    """LEASE.4: a third one holds the row across the expiry; the takeover waits first, the former owner second."""
    run_id, batch = prepared()
    before, gate = driver_rows(run_id), Gate()
    with threads(3) as pool:
        holding = in_thread(pool, lambda: hold_row_and_roll_back(run_id, gate))
        assert gate.reached.wait(TIMEOUT_S)
        taking = in_thread(pool, takeover(run_id))
        wait_for_lock_waits(1)
        writing = in_thread(pool, lambda: WRITERS[path](batch))
        wait_for_lock_waits(2)
        expire(run_id)
        gate.opened.set()
        lost, taken = writing.result(TIMEOUT_S), taking.result(TIMEOUT_S)
        assert isinstance(holding.result(TIMEOUT_S), LookupError)
    assert isinstance(taken, leases.Grant), taken
    assert_lost(lost, run_id)
    assert driver_rows(run_id) == before
    assert_sound()


@pytest.mark.parametrize("path", WRITERS)
def test_a_write_that_stands_in_line_before_a_takeover_is_whole_or_refused(path: str) -> None:
    """LEASE.4: it began before the expiry, and nobody has taken over when it gets the row."""
    run_id, batch = prepared()
    gate = Gate()
    with threads(3) as pool:
        holding = in_thread(pool, lambda: hold_row_and_roll_back(run_id, gate))
        assert gate.reached.wait(TIMEOUT_S)
        writing = in_thread(pool, lambda: WRITERS[path](batch))
        wait_for_lock_waits(1)
        expire(run_id)
        taking = in_thread(pool, takeover(run_id))
        wait_for_lock_waits(2)
        gate.opened.set()
        answer, taken = writing.result(TIMEOUT_S), taking.result(TIMEOUT_S)
        holding.result(TIMEOUT_S)
    assert isinstance(taken, leases.Grant), taken
    assert answer is None or (isinstance(answer, Refusal) and answer.code == "lease.lost"), answer
    attempt = Attempt.objects.get(run_id=run_id, visit=1)
    assert attempt.status == ("succeeded" if answer is None else "running")
    assert Run.objects.get(pk=run_id).lease_epoch == 2
    assert_sound()


@pytest.mark.parametrize("path", WRITERS)
def test_a_write_that_begins_after_the_expiry_is_refused_though_nobody_took_over(path: str) -> None:
    """LEASE.2, LEASE.4: it waits for the row, and the lease had ended before it began."""
    run_id, batch = prepared()
    expire(run_id)
    before, gate = run_rows(run_id), Gate()
    with threads(2) as pool:
        holding = in_thread(pool, lambda: hold_row_and_roll_back(run_id, gate))
        assert gate.reached.wait(TIMEOUT_S)
        writing = in_thread(pool, lambda: WRITERS[path](batch))
        gate.opened.set()
        answer = writing.result(TIMEOUT_S)
        holding.result(TIMEOUT_S)
    assert isinstance(answer, Refusal)
    assert answer.message == f"The lease on run {run_id} was lost: the lease of epoch 1 has ended."
    assert run_rows(run_id) == before


@pytest.mark.parametrize("path", WRITERS)
def test_a_write_that_waits_for_a_message_decides_again(path: str) -> None:
    """docs/architecture.md: the message is committed while the driver waits for the row."""
    run_id, batch = prepared()
    before, gate = driver_rows(run_id), Gate()
    with threads(2) as pool:
        sending = in_thread(pool, stopping_before_commit(gate, lambda: send_pause(run_id)))
        assert gate.reached.wait(TIMEOUT_S)
        writing = in_thread(pool, lambda: WRITERS[path](batch))
        wait_for_lock_waits(1)
        gate.opened.set()
        answer, sent = writing.result(TIMEOUT_S), sending.result(TIMEOUT_S)
    assert isinstance(sent, Accepted), sent
    assert isinstance(answer, Refusal)
    assert (answer.code, driver_rows(run_id)) == ("run.conflict", before)
    assert_sound()


@pytest.mark.parametrize("path", ["a transaction", "the managers"])
def test_a_takeover_waits_for_a_write_that_has_passed_its_fence(path: str) -> None:
    """LEASE.4, LEASE.7: and the write after that one is lost."""
    run_id, batch = prepared()
    gate = Gate()
    with threads(2) as pool:
        writing = in_thread(pool, stopping_before_commit(gate, lambda: WRITERS[path](batch)))
        assert gate.reached.wait(TIMEOUT_S)
        taking = in_thread(pool, takeover(run_id))
        wait_for_lock_waits(1)
        assert Run.objects.get(pk=run_id).lease_epoch == 1
        gate.opened.set()
        assert writing.result(TIMEOUT_S) is None
        taken = taking.result(TIMEOUT_S)
    assert isinstance(taken, leases.Grant)
    assert (taken.epoch, Attempt.objects.get(run_id=run_id, visit=1).status) == (2, "succeeded")
    for write in WRITERS.values():
        with pytest.raises(Refusal) as caught:
            write(replace(batch, expected=Run.objects.get(pk=run_id).revision))
        assert_lost(caught.value, run_id)
    assert_sound()


def test_a_statement_that_waits_behind_its_fence_keeps_the_takeover_out() -> None:
    """LEASE.4: the single statement waits for a payload that somebody else is writing, with the run locked."""
    run_id, batch = prepared()
    gate = Gate()
    payload = PayloadRow(digest="a" * 64, text="1", size=1)

    @ledger_transaction
    def write_payload() -> None:
        Payload.objects.create(digest=payload.digest, text=payload.text, size=payload.size)

    with threads(3) as pool:
        storing = in_thread(pool, stopping_before_commit(gate, write_payload))
        assert gate.reached.wait(TIMEOUT_S)
        writing = in_thread(pool, lambda: WRITERS["advance"](replace(batch, payloads=(payload,))))
        wait_for_lock_waits(1)
        taking = in_thread(pool, takeover(run_id))
        wait_for_lock_waits(2)
        gate.opened.set()
        assert (storing.result(TIMEOUT_S), writing.result(TIMEOUT_S)) == (None, None)
        taken = taking.result(TIMEOUT_S)
    assert isinstance(taken, leases.Grant)
    assert (taken.epoch, Attempt.objects.get(run_id=run_id, visit=1).status) == (2, "succeeded")
    assert_sound()


def test_a_heartbeat_never_stands_in_line_behind_a_transaction_of_the_run() -> None:
    """LEASE.5"""
    run_id, batch = prepared()
    gate = Gate()
    with threads(1) as pool:
        writing = in_thread(pool, stopping_before_commit(gate, lambda: WRITERS["a transaction"](batch)))
        assert gate.reached.wait(TIMEOUT_S)
        before = Lease.objects.get(run_id=run_id).expires_ms
        assert leases.renew(run_id=run_id, epoch=1, ttl_ms=2 * TTL_MS) is True
        assert Lease.objects.get(run_id=run_id).expires_ms > before
        gate.opened.set()
        assert writing.result(TIMEOUT_S) is None


def test_a_release_that_waits_for_a_takeover_is_quiet_and_leaves_the_new_lease() -> None:
    """LEASE.9"""
    run_id, _ = prepared()
    gate = Gate()
    with threads(2) as pool:
        taking = in_thread(pool, stopping_before_commit(gate, takeover(run_id)))
        assert gate.reached.wait(TIMEOUT_S)
        releasing = in_thread(pool, lambda: leases.release(run_id=run_id, epoch=1))
        wait_for_lock_waits(1)
        gate.opened.set()
        assert releasing.result(TIMEOUT_S) is False
        assert isinstance(taking.result(TIMEOUT_S), leases.Grant)
    lease = Lease.objects.get(run_id=run_id)
    assert (lease.owner, lease.epoch, lease.expires_ms > 0) == ("second", 2, True)
