"""Who drives a run, under which epoch, and until when (promises LEASE)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.hand import ENGINE_VERSIONS, TTL_MS, Hand, expire
from tests.support.kinds import kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.tap import Injected, failing_at
from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.reopening import wake
from workflows.models import Event, Lease, RowVersion, Run

pytestmark = pytest.mark.django_db(transaction=True)

ONE_STEP = workflow("  - { id: work, kind: shell, run: make }")
TIMER = workflow("  - { id: nap, kind: wait, for: 1h }")
T0 = 1_800_000_000_000


def acquire(run_id: int, *, owner: str = "host:1:boot", now: int | None = T0, **more: Any) -> leases.Grant:
    values: dict[str, Any] = {"ttl_ms": TTL_MS, "engine_versions": ENGINE_VERSIONS, **more}
    return leases.acquire(run_id=run_id, owner=owner, now=now, **values)


def refused(run_id: int, **options: Any) -> Refusal:
    """The refusal of an acquisition, which must have written nothing."""
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        acquire(run_id, **options)
    assert all_rows() == before
    return caught.value


@pytest.mark.parametrize("owner", ["host:2:boot", "host:1:boot"], ids=["another", "the same owner"])
def test_a_live_lease_is_held_and_not_re_entrant(owner: str) -> None:
    """LEASE.1"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    refusal = refused(run_id, owner=owner, now=T0 + 1)
    assert refusal.code == "lease.held"
    assert refusal.message == f"Run {run_id} is driven by host:1:boot until 2027-01-15T08:01:00+00:00."


@pytest.mark.parametrize(("after", "gets_it"), [(TTL_MS - 1, False), (TTL_MS, True)])
def test_a_lease_is_live_before_its_expiry_and_dead_exactly_at_it(after: int, gets_it: bool) -> None:
    """LEASE.2"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    assert Lease.objects.is_live(run_id, now=T0 + after) is not gets_it
    if gets_it:
        assert acquire(run_id, owner="second", now=T0 + after).epoch == 2
    else:
        assert refused(run_id, owner="second", now=T0 + after).code == "lease.held"


@pytest.mark.parametrize(("after", "renewed"), [(TTL_MS - 1, True), (TTL_MS, False), (TTL_MS + 1, False)])
def test_an_expired_lease_cannot_be_renewed(after: int, renewed: bool) -> None:
    """LEASE.2"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    assert leases.renew(run_id=run_id, epoch=1, ttl_ms=TTL_MS, now=T0 + after) is renewed
    assert Lease.objects.get(run_id=run_id).expires_ms == T0 + TTL_MS + (after if renewed else 0)


def test_epochs_grow_and_a_clean_hand_over_is_no_recovery() -> None:
    """LEASE.3, REV.1"""
    run_id = publish_run(ONE_STEP)
    assert acquire(run_id).epoch == 1
    assert leases.release(run_id=run_id, epoch=1, now=T0 + 5)
    grant = acquire(run_id, now=T0 + 6)
    assert (grant.epoch, grant.recovered, grant.crashes, grant.active_ms) == (2, False, 0, 5)
    run = Run.objects.get(pk=run_id)
    assert (run.lease_epoch, run.revision, run.next_event) == (2, 1, 2)
    assert events_of(run_id) == ["run_started"]


def test_taking_over_a_dead_lease_is_one_recovery() -> None:
    """LEASE.3"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    grant = acquire(run_id, owner="second", now=T0 + TTL_MS)
    assert (grant.epoch, grant.recovered, grant.crashes) == (2, True, 1)
    event = Event.objects.get(run_id=run_id, sequence=2)
    assert (event.type, event.revision, json.loads(event.payload)) == (
        "lease_recovered",
        2,
        {"epoch": 2, "previous_epoch": 1},
    )
    assert Run.objects.get(pk=run_id).revision == 2
    assert_sound()


def test_a_thousand_heartbeats_move_the_expiry_and_nothing_else() -> None:
    """LEASE.5"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    before = all_rows()
    for beat in range(1, 1001):
        assert leases.renew(run_id=run_id, epoch=1, ttl_ms=TTL_MS, polled_ms=7, now=T0 + beat * 15_000)
    after = all_rows()
    lease = after["Lease"][0]
    last = T0 + 1000 * 15_000
    assert lease == {
        **before["Lease"][0],
        "heartbeat_ms": last,
        "expires_ms": last + TTL_MS,
        "last_poll_ms": 7,
    }
    assert {**after, "Lease": []} == {**before, "Lease": []}
    assert RowVersion.objects.count() == 3


def test_active_time_of_a_dead_owner_counts_up_to_its_expiry() -> None:
    """LEASE.6"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id, now=T0)
    leases.renew(run_id=run_id, epoch=1, ttl_ms=TTL_MS, now=T0 + 15_000)
    assert acquire(run_id, owner="second", now=T0 + 200_000).active_ms == 75_000
    leases.release(run_id=run_id, epoch=2, now=T0 + 201_000)
    assert Lease.objects.get(run_id=run_id).active_ms == 76_000


def test_parked_time_is_not_active_time() -> None:
    """LEASE.6"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id, now=T0)
    leases.release(run_id=run_id, epoch=1, now=T0 + 1_000)
    assert acquire(run_id, now=T0 + 999_000).active_ms == 1_000


def test_releasing_a_lost_lease_is_quiet_and_writes_nothing() -> None:
    """LEASE.9"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    acquire(run_id, owner="second", now=T0 + TTL_MS)
    before = all_rows()
    assert leases.release(run_id=run_id, epoch=1, now=T0 + TTL_MS + 1) is False
    assert all_rows() == before
    assert leases.release(run_id=run_id, epoch=2, now=T0 + 2 * TTL_MS) is False
    assert all_rows() == before


def test_a_parked_run_is_refused_until_it_is_woken() -> None:
    """LEASE.10"""
    run_id = publish_run(TIMER)
    hand = Hand(run_id)
    assert hand.step().parks
    until = hand.memory.scopes()[""].wake_at_ms
    assert until is not None
    lease = Lease.objects.get(run_id=run_id)
    assert (lease.expires_ms, lease.owner, lease.epoch) == (0, "", 1)
    refusal = refused(run_id, now=until - 1)
    assert refusal.code == "run.parked"
    reasons = f'[{{"cause":"timer","step":"nap","until_ms":{until},"visit":1}}]'
    assert refusal.message == f"Run {run_id} is waiting and waits: {reasons}."
    assert acquire(run_id, now=until).epoch == 2


def test_a_finished_run_is_refused_and_has_released_its_lease() -> None:
    """LEASE.10"""
    run_id = publish_run(ONE_STEP)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok()})
    refusal = refused(run_id)
    assert (refusal.code, refusal.message) == ("run.terminal", f"Run {run_id} is already succeeded.")
    lease = Lease.objects.get(run_id=run_id)
    assert (lease.expires_ms, lease.owner) == (0, "")
    assert Run.objects.get(pk=run_id).active_ms == lease.active_ms
    assert_sound()


def test_a_run_of_another_engine_version_waits_untouched() -> None:
    """PLAN.6"""
    run_id = publish_run(ONE_STEP, engine_version=9)
    refusal = refused(run_id)
    assert refusal.code == "run.unknown_engine"
    assert refusal.message == f"Run {run_id} was published by engine version 9, which this worker does not know."
    assert acquire(run_id, engine_versions=frozenset({1, 9})).epoch == 1


def test_an_unknown_run_is_told() -> None:
    assert refused(4711).message == "There is no run 4711."


def test_a_failure_at_any_statement_of_an_acquisition_leaves_nothing() -> None:
    """LEASE.3, SET.1"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    before = all_rows()
    for number in range(1, 30):
        try:
            with failing_at(number) as seen:
                acquire(run_id, owner="second", now=T0 + TTL_MS)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 4
    assert Run.objects.get(pk=run_id).lease_epoch == 2


def test_crashes_in_a_row_count_only_while_the_run_gets_no_further() -> None:
    """ADM.8"""
    run_id = publish_run(
        workflow("  - { id: a, kind: shell, run: x, access: read }\n  - { id: b, kind: shell, run: y }")
    )
    kinds, now = kinds_with(), database_now_ms()
    counts = []
    for turn in range(3):
        hand = Hand(run_id, kinds=kinds, at_ms=now - 10 * TTL_MS + turn * TTL_MS)
        counts.append(hand.grant.crashes)
    hand = Hand(run_id, kinds=kinds, at_ms=now)
    counts.append(hand.grant.crashes)
    hand.step()
    expire(run_id)
    hand = Hand(run_id, kinds=kinds)
    counts.append(hand.grant.crashes)
    assert counts == [0, 1, 2, 3, 1]


def test_an_error_of_the_engine_counts_like_a_crash() -> None:
    """ADM.8"""
    run_id = publish_run(ONE_STEP)
    acquire(run_id)
    assert [leases.count_crash(run_id=run_id, epoch=1) for _ in range(3)] == [1, 2, 3]
    run = Run.objects.get(pk=run_id)
    assert (run.revision, run.crashes, run.crashed_at_visits) == (1, 3, 0)
    acquire(run_id, owner="second", now=T0 + TTL_MS)
    with pytest.raises(Refusal) as caught:
        leases.count_crash(run_id=run_id, epoch=1)
    assert caught.value.message == f"The lease on run {run_id} was lost: epoch 2 took over from epoch 1."


def test_waking_a_parked_run_makes_it_runnable_without_a_revision() -> None:
    run_id = publish_run(TIMER)
    Hand(run_id).step()
    revision = Run.objects.get(pk=run_id).revision
    assert wake(run_id=run_id) is True
    assert Run.objects.get(pk=run_id).revision == revision
    assert acquire(run_id, now=None).epoch == 2
