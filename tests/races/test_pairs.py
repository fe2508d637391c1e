"""Verbs against each other on one run, in both orders and at the same instant: one wins, the other one is told.

``python -m tests.races --rounds 1000`` plays more rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest

from tests.races.rounds import ROUNDS, Order, Race, in_order, pair
from tests.support.forks import fork_at
from tests.support.hand import ENGINE_VERSIONS, TTL_MS, Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publication, publish_run, workflow
from tests.support.players import Player
from tests.support.rows import assert_sound, events_of
from tests.support.worlds import publish_parent
from workflows.clock import database_now_ms, unix_ms
from workflows.ledger import leases
from workflows.ledger.abandoning import abandon
from workflows.ledger.advance import advance
from workflows.ledger.answering import Reply, answer
from workflows.ledger.children import hear_of_child
from workflows.ledger.controlling import send
from workflows.ledger.publishing import Concurrency, publish
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.ledger.reopening import reopen
from workflows.models import Attempt, Interrupt, Run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

ONE = workflow("  - { id: work, kind: shell, run: x }")
ASKS = workflow("""
  - { id: ask, kind: question, ask: "Well?", choices: [go, stop], timeout: 1h, next: { go: done, stop: done, expired: done } }
""")
KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")
HOUR = 3_600_000


def status_of(run_id: int) -> str:
    return str(Run.objects.values_list("status", flat=True).get(pk=run_id))


def saying(run_id: int, kind: ControlKind) -> Callable[[], object]:
    return partial(send, run_id=run_id, kind=kind, payload={}, request_id=uuid4().hex, sender="bob", now=START)


def at_work(text: str = ONE) -> Hand:
    hand = Hand(publish_run(text))
    hand.step()
    return hand


def cancel_against_success() -> Race:
    """What wins decides the status; a success that lost is kept as a late result."""
    hand = at_work()
    settling = hand.batch(hand.decide({"v1.1": ok("done")}))

    def end() -> str:
        if status_of(hand.run_id) == "running":
            hand.reload()
            hand.step()
            hand.step({"v1.1": ok("done")})
        attempt = Attempt.objects.get(run_id=hand.run_id)
        return f"{status_of(hand.run_id)}, {attempt.status}, late {attempt.late_outcome or 'nothing'}"

    return Race(left=lambda: advance(settling), right=saying(hand.run_id, ControlKind.CANCEL), end=end)


def asked() -> int:
    run_id = publish_run(ASKS)
    Hand(run_id).step()
    return run_id


def replying(run_id: int, who: str, decision: str) -> Callable[[], object]:
    shown = Interrupt.objects.get(run_id=run_id).shown_digest
    said = Reply(voter=who, recorded_by=who, decision=decision, shown_digest=shown)
    return partial(answer, run_id=run_id, visit=1, reply=said, now=START, now_ms=unix_ms(START))


def answer_against_deadline() -> Race:
    run_id = asked()
    hand = Hand(run_id, at_ms=database_now_ms() + 1)
    hand.pass_time(HOUR)
    passing = hand.batch(hand.decide())
    return Race(
        left=lambda: advance(passing),
        right=replying(run_id, "ann", "go"),
        end=lambda: f"{status_of(run_id)}, {Interrupt.objects.get(run_id=run_id).status}",
    )


def answer_against_answer() -> Race:
    run_id = asked()
    return Race(
        left=replying(run_id, "ann", "go"),
        right=replying(run_id, "bob", "stop"),
        end=lambda: Interrupt.objects.get(run_id=run_id).answered_by,
    )


def start_against_start_on_one_key() -> Race:
    key = uuid4().hex
    wishes = [publication(ONE, concurrency=Concurrency(key=key, max=1, when_full="reject")) for _ in range(2)]
    return Race(
        left=lambda: publish(wishes[0]),
        right=lambda: publish(wishes[1]),
        end=lambda: Run.objects.filter(concurrency_key=key).count(),
    )


def start_against_the_same_start() -> Race:
    key = uuid4().hex
    wishes = [publication(ONE, key=key) for _ in range(2)]
    return Race(
        left=lambda: publish(wishes[0]),
        right=lambda: publish(wishes[1]),
        end=lambda: Run.objects.filter(idempotency_key=key).count(),
    )


def takeover_against_takeover() -> Race:
    run_id = at_work().run_id
    expire(run_id)
    take = partial(leases.acquire, run_id=run_id, ttl_ms=TTL_MS, engine_versions=ENGINE_VERSIONS)
    return Race(
        left=partial(take, owner="a"),
        right=partial(take, owner="b"),
        end=lambda: events_of(run_id).count("lease_recovered"),
    )


def abandon_against_settlement() -> Race:
    hand = at_work()
    settling = hand.batch(hand.decide({"v1.1": ok("done")}))
    return Race(
        left=lambda: advance(settling),
        right=partial(abandon, run_id=hand.run_id, actor="bob", reason="enough", now=START),
        end=lambda: f"{status_of(hand.run_id)}, {Attempt.objects.get(run_id=hand.run_id).status}",
    )


def parent_and_child() -> tuple[int, Hand]:
    player = Player(publish_parent(PARENT, KID))
    player.play()
    hand = Hand(Run.objects.get(parent_run_id=player.run_id).pk)
    hand.step()
    return player.run_id, hand


def end_of_a_child_against_cancel_of_its_parent() -> Race:
    parent, hand = parent_and_child()
    hand.step({"v1.1": ok()})

    def end() -> str:
        Hand(parent).step()
        return f"{status_of(parent)}, {status_of(hand.run_id)}, told {events_of(parent).count('child_ended')}"

    return Race(
        left=partial(hear_of_child, child_id=hand.run_id, now=START),
        right=saying(parent, ControlKind.CANCEL),
        end=end,
    )


def sweep_against_the_driver_who_tells_the_parent() -> Race:
    parent, hand = parent_and_child()
    hand.step({"v1.1": ok()})
    tell = partial(hear_of_child, child_id=hand.run_id, now=START)
    return Race(left=tell, right=tell, end=lambda: events_of(parent).count("child_ended"))


def reopening_against_reopening() -> Race:
    hand = at_work()
    hand.step({"v1.1": bad()})
    again = partial(reopen, run_id=hand.run_id, reason="again", now=START)
    return Race(
        left=partial(again, actor="ann"),
        right=partial(again, actor="bob"),
        end=lambda: events_of(hand.run_id).count("run_reopened"),
    )


def reconciliation_against_reconciliation() -> Race:
    hand = at_work()
    expire(hand.run_id)
    Hand(hand.run_id).step()

    def saying_that(decision: str) -> Callable[[], object]:
        said = Reconciliation(decision=decision, actor="bob", reason="looked", outcome="ok")  # type: ignore[arg-type]
        return partial(reconcile, run_id=hand.run_id, visit=1, reconciliation=said, now=START)

    return Race(
        left=saying_that("happened"),
        right=saying_that("did_not"),
        end=lambda: events_of(hand.run_id).count("attempt_reconciled"),
    )


def cancel_against_cancel() -> Race:
    run_id = publish_run(ONE)
    return Race(
        left=saying(run_id, ControlKind.CANCEL),
        right=saying(run_id, ControlKind.CANCEL),
        end=lambda: events_of(run_id).count("control_accepted"),
    )


def fork_against_the_same_fork() -> Race:
    hand = at_work()
    hand.step({"v1.1": ok()})
    same = partial(fork_at, hand.run_id, 1, request_id=uuid4().hex, asked="the same")
    return Race(left=same, right=same, end=lambda: Run.objects.filter(fork_of=hand.run_id).count())


#: The answers of both and the end, when the left one is first, and when the right one is.
RACES: dict[Callable[[], Race], tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    cancel_against_success: (
        ("None", "run.terminal", "succeeded, succeeded, late nothing"),
        ("run.conflict", "new True", "cancelled, cancelled, late ok"),
    ),
    answer_against_deadline: (
        ("None", "interrupt.closed", "succeeded, expired"),
        ("run.conflict", "new True", "paused, answered"),
    ),
    answer_against_answer: (("new True", "interrupt.answered", "ann"), ("interrupt.answered", "new True", "bob")),
    start_against_start_on_one_key: (
        ("created True", "run.concurrency_full", "1"),
        ("run.concurrency_full", "created True", "1"),
    ),
    start_against_the_same_start: (("created True", "created False", "1"), ("created False", "created True", "1")),
    takeover_against_takeover: (("recovered True", "lease.held", "1"), ("lease.held", "recovered True", "1")),
    abandon_against_settlement: (
        ("None", "run.terminal", "succeeded, succeeded"),
        ("run.terminal", "done", "abandoned, interrupted"),
    ),
    end_of_a_child_against_cancel_of_its_parent: (
        ("True", "new True", "cancelled, succeeded, told 1"),
        ("True", "new True", "cancelled, succeeded, told 1"),
    ),
    sweep_against_the_driver_who_tells_the_parent: (("True", "False", "1"), ("False", "True", "1")),
    reopening_against_reopening: (("done", "run.not_reopenable", "1"), ("run.not_reopenable", "done", "1")),
    reconciliation_against_reconciliation: (
        ("done", "attempt.not_interrupted", "1"),
        ("attempt.not_interrupted", "done", "1"),
    ),
    cancel_against_cancel: (("new True", "new False", "1"), ("new False", "new True", "1")),
    fork_against_the_same_fork: (("created True", "created False", "1"), ("created False", "created True", "1")),
}


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("prepare", RACES)
def test_the_second_one_waits_for_the_first_and_is_told(prepare: Callable[[], Race], order: Order) -> None:
    """SET.3, INT.3, INT.8, PUB.3, PUB.4, LEASE.3, ABR.1, CHD.1, CHD.3, ADM.6, CTL.2, FORK.7"""
    expected = RACES[prepare][0 if order is Order.LEFT_FIRST else 1]
    assert in_order(prepare(), order) == expected
    assert_sound()


@pytest.mark.parametrize("prepare", RACES)
def test_at_the_same_instant_it_ends_as_in_one_of_the_orders(prepare: Callable[[], Race]) -> None:
    """SET.3, INT.3, INT.8, PUB.3, PUB.4, LEASE.3, ABR.1, CHD.1, CHD.3, ADM.6, CTL.2, FORK.7"""
    with pair() as two:
        for _ in range(ROUNDS):
            assert two.run(prepare()) in RACES[prepare]
    assert_sound()
