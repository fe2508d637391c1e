"""Programs against each other and against the driver, in both orders and at the same instant: one wins, the other one
is told (promises EXT)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest

from tests.races.rounds import ROUNDS, Order, Race, in_order, pair
from tests.support.hand import Hand
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.clock import unix_ms
from workflows.jsonvalue import store
from workflows.ledger.abandoning import abandon
from workflows.ledger.advance import advance
from workflows.ledger.controlling import send
from workflows.ledger.external import Brought, Finished, finish, hash_of, lapse, reserve
from workflows.models import ExternalOffer, Run, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

WORK = workflow(
    "  - { id: it, kind: external, queue: q, lease: 1m, timeout: 1h, next: { timed_out: continue } }", name="external"
)
HOUR = 3_600_000


def offer() -> int:
    """An offer of a new run."""
    run_id = publish_run(WORK)
    Hand(run_id).step()
    number: int = ExternalOffer.objects.values_list("pk", flat=True).get(run_id=run_id)
    return number


def reserving(offer_id: int, token: str, **more: int) -> Callable[[], object]:
    return partial(
        reserve, offer_id=offer_id, token_hash=hash_of(token), worker=token, recorded="ann", now=START, **more
    )


def reserved(**more: int) -> tuple[ExternalOffer, str]:
    """An offer that a program has, and its token."""
    offer_id, token = offer(), uuid4().hex
    reserving(offer_id, token, **more)()
    return ExternalOffer.objects.get(pk=offer_id), token


def bringing(token: str, output: str = "done") -> Callable[[], str]:
    """Finish, and say how that went."""

    def call() -> str:
        brought = Brought(outcome="ok", output=store(output))
        told: Finished = finish(token_hash=hash_of(token), brought=brought, recorded="ann", now=START)
        return Said("lost" if told.lost else "stored" if told.new else "known")

    return call


class Said(str):
    """An answer that a race tells by its text."""

    @property
    def new(self) -> str:
        return str(self)


def standing(offer: ExternalOffer) -> str:
    offer.refresh_from_db()
    outcome = Visit.objects.values_list("outcome", flat=True).get(run_id=offer.run_id)
    return f"{offer.status}, {outcome or 'open'}"


def a_result_against_the_timeout() -> Race:
    """The timeout is a driver's decision: it was made before, and is written now."""
    found, token = reserved(now_ms=unix_ms(START))
    hand = Hand(found.run_id, now=START)
    hand.pass_time(HOUR)
    ending = hand.batch(hand.decide())
    return Race(left=bringing(token), right=lambda: advance(ending), end=lambda: standing(found))


def a_result_against_a_cancel() -> Race:
    """The result is stored in both orders, and a cancel that is carried out before it was used beats it."""
    found, token = reserved()
    message = {"kind": ControlKind.CANCEL, "payload": {}, "request_id": "c", "sender": "bob", "now": START}

    def end() -> str:
        Hand(found.run_id).step()
        return f"{Run.objects.values_list('status', flat=True).get(pk=found.run_id)}, {standing(found)}"

    return Race(left=bringing(token), right=partial(send, run_id=found.run_id, **message), end=end)


def a_result_against_an_abandon() -> Race:
    found, token = reserved()
    abandoning = partial(abandon, run_id=found.run_id, actor="bob", reason="enough", now=START)
    return Race(left=bringing(token), right=abandoning, end=lambda: standing(found))


def a_result_against_another_one() -> Race:
    found, token = reserved()
    return Race(left=bringing(token, "a"), right=bringing(token, "b"), end=lambda: standing(found))


def a_result_against_the_same_one() -> Race:
    found, token = reserved()
    told = partial(events_of, found.run_id)
    return Race(left=bringing(token), right=bringing(token), end=lambda: told().count("work_finished"))


def a_result_against_the_end_of_its_lease() -> Race:
    found, token = reserved()
    lapsing = partial(lapse, offer_id=found.pk, now=START, now_ms=found.lease_until_ms)
    return Race(left=bringing(token), right=lapsing, end=lambda: standing(found))


def a_program_against_another_one() -> Race:
    offer_id = offer()

    def took(token: str) -> Callable[[], bool]:
        return lambda: reserving(offer_id, token)() is not None

    left, right = uuid4().hex, uuid4().hex
    holder = ExternalOffer.objects.filter(pk=offer_id).values_list("worker", flat=True)
    return Race(left=took(left), right=took(right), end=lambda: {left: "left", right: "right"}[holder.get()])


def a_program_against_a_cancel() -> Race:
    offer_id = offer()
    run_id = ExternalOffer.objects.values_list("run_id", flat=True).get(pk=offer_id)
    message = {"kind": ControlKind.CANCEL, "payload": {}, "request_id": "c", "sender": "bob", "now": START}
    status = ExternalOffer.objects.filter(pk=offer_id).values_list("status", flat=True)
    taking = reserving(offer_id, uuid4().hex)
    return Race(
        left=lambda: taking() is not None, right=partial(send, run_id=run_id, **message), end=lambda: status.get()
    )


#: The answers of both and the end, when the left one is first, and when the right one is.
RACES: dict[Callable[[], Race], tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    a_result_against_the_timeout: (
        ("new stored", "run.conflict", "finished, open"),
        ("new lost", "None", "withdrawn, timed_out"),
    ),
    a_result_against_a_cancel: (
        ("new stored", "new True", "cancelled, finished, cancelled"),
        ("new stored", "new True", "cancelled, finished, cancelled"),
    ),
    a_result_against_an_abandon: (
        ("new stored", "done", "finished, open"),
        ("new lost", "done", "withdrawn, open"),
    ),
    a_result_against_another_one: (
        ("new stored", "attempt.conflict", "finished, open"),
        ("attempt.conflict", "new stored", "finished, open"),
    ),
    a_result_against_the_same_one: (("new stored", "new known", "1"), ("new known", "new stored", "1")),
    a_result_against_the_end_of_its_lease: (
        ("new stored", "False", "finished, open"),
        ("new lost", "True", "lapsed, open"),
    ),
    a_program_against_another_one: (("True", "False", "left"), ("False", "True", "right")),
    a_program_against_a_cancel: (("True", "new True", "reserved"), ("False", "new True", "open")),
}


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("prepare", RACES)
def test_the_second_one_waits_for_the_first_and_is_told(prepare: Callable[[], Race], order: Order) -> None:
    """EXT.2, EXT.4, EXT.5, EXT.8, SET.3"""
    expected = RACES[prepare][0 if order is Order.LEFT_FIRST else 1]
    assert in_order(prepare(), order) == expected
    assert_sound()


@pytest.mark.parametrize("prepare", RACES)
def test_at_the_same_instant_it_ends_as_in_one_of_the_orders(prepare: Callable[[], Race]) -> None:
    """EXT.2, EXT.4, EXT.5, EXT.8, SET.3"""
    with pair() as two:
        for _ in range(ROUNDS):
            assert two.run(prepare()) in RACES[prepare]
    assert_sound()
