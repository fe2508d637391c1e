"""Runs that start later: nobody drives them before their moment, whatever is said to them (PUB.11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.plans import START, publication, workflow
from tests.support.players import play
from tests.support.rows import all_rows, assert_sound
from tests.support.worlds import sweep
from workflows.clock import database_now_ms, moment
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.abandoning import abandon
from workflows.ledger.controlling import send
from workflows.ledger.publishing import Concurrency, publish
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Run, Slot
from workflows.queries.why_rows import why_run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

ONE = workflow("  - { id: work, kind: shell, run: x }")
HOUR = 3_600_000


def later(in_ms: int = HOUR, **more: Any) -> int:
    """A run that starts so long from now."""
    return publish(publication(ONE, start_at_ms=database_now_ms() + in_ms, **more)).run_id


def runnable(in_ms: int = 0) -> list[int]:
    found = Run.objects.runnable(database_now_ms() + in_ms).order_by("pk").values_list("pk", flat=True)
    return list(found)


def take(run_id: int, in_ms: int = 0) -> None:
    now = database_now_ms() + in_ms
    leases.acquire(run_id=run_id, owner="w", ttl_ms=60_000, engine_versions=frozenset({1}), now=now)


@ledger_transaction
def let_pass(run_id: int) -> None:
    """As if the moment had come."""
    Run.objects.filter(pk=run_id).update(start_at_ms=database_now_ms() - 1)


def say(run_id: int, kind: ControlKind, **payload: Any) -> None:
    send(run_id=run_id, kind=kind, payload=payload, request_id=str(kind), sender="ann", now=datetime.now(UTC))


def test_a_run_is_not_taken_before_its_moment() -> None:
    """PUB.11"""
    run = later()
    before = all_rows()

    with pytest.raises(Refusal) as caught:
        take(run)

    start_at_ms = Run.objects.values_list("start_at_ms", flat=True).get(pk=run)
    assert (caught.value.code, caught.value.message) == (
        "run.later",
        f"Run {run} starts at {moment(start_at_ms).isoformat('T', 'seconds')}.",
    )
    assert all_rows() == before
    assert (runnable(), runnable(HOUR + 1_000)) == ([], [run])
    take(run, HOUR + 1_000)


@pytest.mark.parametrize(
    ("kind", "payload"), [(ControlKind.PAUSE, {"reason": "r"}), (ControlKind.SIGNAL, {"name": "go", "data": None})]
)
def test_no_message_starts_it_earlier(kind: ControlKind, payload: dict[str, Any]) -> None:
    """PUB.11"""
    run = later()
    say(run, kind, **payload)
    sweep()
    assert runnable() == []
    with pytest.raises(Refusal, match="starts at"):
        take(run)


def test_a_run_that_is_cancelled_before_its_moment_ends_at_once() -> None:
    """PUB.11"""
    run = later()
    say(run, ControlKind.CANCEL)
    assert runnable() == [run]
    assert play(run).status == "cancelled"
    assert_sound()


def test_a_run_can_be_abandoned_before_its_moment() -> None:
    """PUB.11, ABR.1"""
    run = later()
    abandon(run_id=run, actor="ann", reason="not needed", now=START)
    assert Run.objects.get(pk=run).status == "abandoned"
    assert runnable(HOUR + 1_000) == []
    assert_sound()


def test_it_stands_in_no_line_before_its_moment_and_is_the_last_of_it_then() -> None:
    """PUB.11"""
    key = Concurrency(key="k", max=1)
    first = later(concurrency=key)
    second = publish(publication(ONE, concurrency=key)).run_id
    assert list(Slot.objects.values_list("run_id", flat=True)) == [second]
    third = publish(publication(ONE, concurrency=key)).run_id
    let_pass(first)

    sweep()

    assert list(Slot.objects.order_by("id").values_list("run_id", flat=True)) == [second, third, first]
    assert [play(run).status for run in (second, third, first)] == ["succeeded"] * 3
    assert Slot.objects.count() == 0
    assert_sound()


def test_a_key_that_rejects_is_not_asked_before_the_moment() -> None:
    key = Concurrency(key="k", max=1, when_full="reject")
    publish(publication(ONE, concurrency=key))
    run = later(concurrency=key)
    let_pass(run)
    sweep()
    assert Slot.objects.get(run_id=run).number is None


def test_the_same_key_finds_a_run_that_starts_later() -> None:
    """PUB.3"""
    key = Concurrency(key="k", max=1)
    first = publish(publication(ONE, key="order 7", concurrency=key, start_at_ms=database_now_ms() + HOUR))
    again = publish(publication(ONE, key="order 7", concurrency=key))
    assert (again.run_id, again.created, again.queued, again.oldest) == (first.run_id, False, False, None)


def test_why_it_does_not_move_says_when_it_starts() -> None:
    """WEB.5"""
    run = Run.objects.get(pk=later())
    (because,) = why_run(run)
    assert (because.code, because.sentence, because.passes) == (
        "later",
        "It starts later, as whoever started it wished.",
        True,
    )
    assert because.until is not None
    assert because.until - datetime.now(UTC) > timedelta(minutes=59)
