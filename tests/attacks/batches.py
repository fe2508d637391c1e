"""The transaction of a driver in worlds where it has something to write. See ``verbs``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.attacks.verbs import (
    ASKS,
    CLOSES,
    KID,
    LIMITED,
    MAPS,
    ONE,
    PARENT,
    RETRIES,
    TWO,
    Call,
    attacked,
    begun,
    fresh,
    in_line,
    say,
)
from tests.support.hand import Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.worlds import publish_in_line, publish_parent
from workflows.clock import database_now_ms
from workflows.ledger import slots as slot_verbs
from workflows.ledger.advance import advance, advance_plainly
from workflows.statuses import ControlKind, SlotKind


def writing(hand: Hand, results: Any = None, write: Callable[..., Any] = advance) -> Call:
    """The next decision of ``hand``, made now and written by the call."""
    return partial(write, hand.batch(hand.decide(results)))


@attacked(advance)
def admits() -> Call:
    return writing(Hand(publish_run(ONE)))


@attacked(advance)
def settles_and_admits() -> Call:
    return writing(begun(TWO), {"v1.1": ok({"a": 1}, log="said")})


@attacked(advance)
def settles_three_items_at_once() -> Call:
    return writing(begun(MAPS), {"v2.1": ok(1), "v3.1": bad(), "v4.1": ok(3)})


@attacked(advance)
def settles_and_ends() -> Call:
    return writing(begun(ONE), {"v1.1": ok("end")})


@attacked(advance)
def settles_and_waits_to_retry() -> Call:
    return writing(begun(RETRIES), {"v1.1": bad()})


@attacked(advance)
def settles_and_begins_to_close() -> Call:
    return writing(begun(CLOSES), {"v1.1": bad()})


@attacked(advance)
def recovers_a_read() -> Call:
    hand = begun(TWO)
    expire(hand.run_id)
    return writing(Hand(hand.run_id))


@attacked(advance)
def parks_an_interrupted_write() -> Call:
    hand = begun(ONE)
    expire(hand.run_id)
    return writing(Hand(hand.run_id))


@attacked(advance)
def asks() -> Call:
    return writing(Hand(publish_run(ASKS)))


@attacked(advance)
def expires_a_question() -> Call:
    hand = begun(ASKS)
    later = Hand(hand.run_id, at_ms=database_now_ms() + 1)
    later.pass_time(3_600_000)
    return writing(later)


@attacked(advance)
def carries_out_a_cancel() -> Call:
    hand = begun(ASKS)
    say(hand.run_id, ControlKind.CANCEL)()
    return writing(Hand(hand.run_id))


@attacked(advance)
def publishes_a_child() -> Call:
    return writing(Hand(publish_parent(PARENT, KID)))


@attacked(advance)
def stands_in_line_for_a_place() -> Call:
    return writing(Hand(publish_run(workflow(LIMITED.format(fresh())))))


@attacked(advance)
def frees_a_place() -> Call:
    group = fresh()
    run_id = in_line(group)
    slot_verbs.pass_on(kind=SlotKind.LIMIT, name=group, now=START)
    hand = Hand(run_id)
    hand.step()
    assert hand.running == ["v1.1"]
    return writing(hand, {"v1.1": ok()})


@attacked(advance)
def ends_a_run_with_a_slot() -> Call:
    hand = Hand(publish_in_line(ONE, fresh()).run_id)
    hand.step()
    return writing(hand, {"v1.1": ok()})


@attacked(advance_plainly)
def settles_and_admits_with_the_managers() -> Call:
    return writing(begun(TWO), {"v1.1": ok({"a": 1})}, advance_plainly)
