"""The picker: whose turn it is, by priority, then by workflow, then by waiting time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.plans import START, publish_run, workflow
from workflows.clock import database_now_ms
from workflows.ledger.leases import acquire, release
from workflows.ledger.transactions import run_ledger_transaction
from workflows.models import Lease, Run
from workflows.operations.picking import Picker

# some tests plant states that no verb leaves
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

KNOWN = frozenset({1})
STEP = "  - { id: work, kind: shell, run: make }"


def text(name: str = "demo", before: str = "") -> str:
    return workflow(STEP, name=name, before=before)


def change(run_id: int, **columns: Any) -> None:
    """Plant what other verbs would write."""
    run_ledger_transaction(lambda: Run.objects.filter(pk=run_id).update(**columns), verb="plant")


def pick(count: int = 10, **options: Any) -> list[int]:
    crowd = options.pop("crowd", 1)
    return Picker(engine_versions=options.pop("engine_versions", KNOWN), **options).pick(count, crowd=crowd)


def drive(run_id: int, *, now: int | None = None) -> int:
    return acquire(run_id=run_id, owner="w", ttl_ms=60_000, engine_versions=KNOWN, now=now).epoch


def test_nothing_is_proposed_where_nothing_is() -> None:
    assert pick() == []


def test_the_oldest_comes_first_and_a_higher_priority_before_it() -> None:
    first, second = publish_run(text()), publish_run(text())
    urgent = publish_run(text(), priority=5)
    assert pick() == [urgent, first, second]
    assert pick(2) == [urgent, first]
    assert pick(0) == []


def test_what_is_skipped_driven_or_of_an_unknown_engine_is_not_proposed() -> None:
    """PLAN.6"""
    skipped, driven, other, free = (publish_run(text()) for _ in range(4))
    drive(driven)
    change(other, engine_version=9)
    assert pick(skip=[skipped]) == [free]
    assert pick(engine_versions=frozenset({9})) == [other]


def test_a_workflow_with_a_thousand_runs_does_not_keep_the_only_run_of_another_waiting() -> None:
    """LEASE.11"""
    many = [publish_run(text("busy")) for _ in range(30)]
    only = publish_run(text("quiet"))
    assert pick(2) == [many[0], only]
    assert pick(4) == [many[0], only, many[1], many[2]]
    drive(many[0])
    drive(many[1])
    assert pick(1) == [only]


def test_the_workflow_of_which_the_fewest_runs_are_driven_is_next() -> None:
    """LEASE.11"""
    ours = [publish_run(text("a")) for _ in range(4)]
    theirs = [publish_run(text("b")) for _ in range(4)]
    drive(ours[0])
    drive(ours[1])
    assert pick(4) == [theirs[0], theirs[1], ours[2], theirs[2]]


def test_priority_goes_before_fairness() -> None:
    urgent = [publish_run(text("a"), priority=1) for _ in range(3)]
    other = publish_run(text("b"))
    assert pick(4) == [*urgent, other]


def test_who_was_handed_back_waits_from_then_on() -> None:
    handed_back, fresh = publish_run(text()), publish_run(text(), now=START + timedelta(seconds=1))
    epoch = drive(handed_back)
    change(handed_back, status="running")
    release(run_id=handed_back, epoch=epoch)
    assert pick() == [fresh, handed_back]


def test_a_parked_run_is_proposed_when_it_is_woken_or_its_driver_died() -> None:
    now = database_now_ms()
    parked, woken, orphaned = (publish_run(text()) for _ in range(3))
    for run in (parked, woken, orphaned):
        change(run, status="waiting", wake_at_ms=now + 60_000)
    change(woken, wake_at_ms=now - 1)
    run_ledger_transaction(
        lambda: Lease.objects.filter(run_id=orphaned).update(expires_ms=now - 1, owner="dead"), verb="plant"
    )
    assert sorted(pick()) == [woken, orphaned]
    assert sorted(pick(now_ms=now + 60_000)) == [parked, woken, orphaned]
    assert sorted(pick()) == sorted(Run.objects.runnable().values_list("pk", flat=True))


def test_a_run_without_its_slot_or_before_its_moment_is_not_proposed() -> None:
    now = database_now_ms()
    later, full = publish_run(text()), publish_run(text())
    change(later, start_at_ms=now + 1_000)
    change(full, concurrency_key="door", concurrency_max=1)
    assert pick() == []
    assert pick(now_ms=now + 1_000) == [later]
    change(full, closing='{"status":"cancelled"}')
    assert pick() == [full]


def test_workers_that_met_others_choose_among_more_and_keep_the_order() -> None:
    runs = [publish_run(text()) for _ in range(12)]
    found = pick(3, crowd=4)
    assert len(set(found)) == 3
    assert found == [run for run in runs if run in found]
    assert sorted(pick(12, crowd=4)) == runs


def test_the_number_of_queries_does_not_grow_with_the_queue() -> None:
    for _ in range(3):
        publish_run(text())
    with CaptureQueriesContext(connection) as few:
        pick(4)
    for _ in range(40):
        publish_run(text())
    with CaptureQueriesContext(connection) as many:
        assert len(pick(4)) == 4
    assert len(many) == len(few) <= 8
