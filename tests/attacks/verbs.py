"""Every verb of the ledger in a world where it has something to do, for attacks that treat all verbs alike.

``@attacked(verb)`` registers a function that makes such a world and returns the call of the verb. The call can be made
again after it failed: its arguments are fixed. A verb that no attack knows fails ``test_every_verb_is_attacked``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import uuid4

from tests.support.hand import ENGINE_VERSIONS, TTL_MS, Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import START, publication, publish_run, store_plan, workflow
from tests.support.players import Player
from tests.support.worlds import publish_in_line, publish_parent
from workflows import ledger
from workflows.clock import database_now_ms, unix_ms
from workflows.jsonvalue import store
from workflows.ledger import (
    answering,
    auditing,
    children,
    controlling,
    late_results,
    leases,
    publishing,
    reconciling,
    reopening,
    transactions,
)
from workflows.ledger import slots as slot_verbs
from workflows.ledger.advance import advance, advance_plainly
from workflows.ledger.answering import Reply
from workflows.ledger.publishing import Concurrency
from workflows.ledger.reconciling import Reconciliation
from workflows.models import Interrupt, Run
from workflows.statuses import ControlKind, SlotKind

Call = Callable[[], Any]
World = Callable[[], Call]

ATTACKS: dict[str, World] = {}
ATTACKED: set[Callable[..., Any]] = set()

ONE = workflow("  - { id: work, kind: shell, run: x }")
TWO = workflow("  - { id: one, kind: shell, run: x, access: read }\n  - { id: two, kind: shell, run: x }")
ASKS = workflow('  - { id: ask, kind: question, ask: "Well?", timeout: 1h, next: { expired: continue } }')
BOTH_ASK = workflow("""
  - id: both
    kind: parallel
    branches:
      left: [ { id: one, kind: question, ask: "One?" } ]
      right: [ { id: two, kind: question, ask: "Two?" } ]
""")
APPROVES = workflow('  - { id: ask, kind: approval, ask: "Well?", quorum: 2 }')
RETRIES = workflow("  - { id: work, kind: shell, run: x, retry: { attempts: 3, wait: 1h, jitter: none } }")
MAPS = workflow("""
  - id: each
    kind: map
    over: [1, 2, 3]
    concurrency: 3
    join: settled
    do: [{ id: work, kind: shell, run: x, access: read, workspace: none }]
  - { id: stop, kind: end, status: failed, message: "no" }
""")
LIMITED = "  - {{ id: work, kind: shell, run: x, limit: {{ group: {}, max: 1 }} }}"
CLOSES = workflow(
    "  - { id: work, kind: shell, run: x }", after="finally: [{ id: tidy, kind: shell, run: x, access: read }]"
)
KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")


def fresh() -> str:
    """A name that nothing has yet: a world is made more than once in a database."""
    return f"n{uuid4().hex}"


def attacked(verb: Callable[..., Any]) -> Callable[[World], World]:
    """Register a world for ``verb``; its name says what the verb does there."""

    def register(world: World) -> World:
        ATTACKS[world.__name__] = world
        ATTACKED.add(verb)
        return world

    return register


def ledger_verbs() -> Iterator[Callable[..., Any]]:
    """Every function of ``workflows.ledger`` that opens a transaction."""
    for module in pkgutil.walk_packages(ledger.__path__, f"{ledger.__name__}."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isfunction):
            if member.__module__ == module.name and _is_verb(member):
                yield member


def _is_verb(member: Callable[..., Any]) -> bool:
    if member in (advance, advance_plainly):
        return True
    return member.__code__.co_filename == transactions.__file__ and hasattr(member, "__wrapped__")


# ---- publishing -----------------------------------------------------------------------------------------------------


@attacked(publishing.publish)
def publishes_a_run() -> Call:
    return partial(publishing.publish, publication(ONE, {"n": 3}, key=fresh()))


@attacked(publishing.publish)
def publishes_a_run_that_takes_a_slot() -> Call:
    return partial(publishing.publish, publication(ONE, concurrency=Concurrency(key=fresh(), max=1)))


@attacked(publishing.publish)
def publishes_a_run_that_stands_in_line() -> Call:
    key = fresh()
    publish_in_line(ONE, key)
    return partial(publishing.publish, publication(ONE, concurrency=Concurrency(key=key, max=1)))


@attacked(publishing.publish_plan)
def publishes_a_version() -> Call:
    store_plan(ONE, private=False)
    return partial(store_plan, TWO, private=False)


# ---- leases ---------------------------------------------------------------------------------------------------------


def acquiring(run_id: int) -> Call:
    return partial(leases.acquire, run_id=run_id, owner="next", ttl_ms=TTL_MS, engine_versions=ENGINE_VERSIONS)


@attacked(leases.acquire)
def acquires_a_new_run() -> Call:
    return acquiring(publish_run(ONE))


@attacked(leases.acquire)
def takes_over_from_a_dead_owner() -> Call:
    run_id = publish_run(ONE)
    Hand(run_id).step()
    expire(run_id)
    return acquiring(run_id)


@attacked(leases.count_crash)
def counts_a_crash() -> Call:
    run_id = publish_run(ONE)
    return partial(leases.count_crash, run_id=run_id, epoch=Hand(run_id).grant.epoch)


@attacked(leases.renew)
def renews() -> Call:
    run_id = publish_run(ONE)
    return partial(leases.renew, run_id=run_id, epoch=Hand(run_id).grant.epoch, ttl_ms=2 * TTL_MS)


@attacked(leases.release)
def releases() -> Call:
    run_id = publish_run(ONE)
    return partial(leases.release, run_id=run_id, epoch=Hand(run_id).grant.epoch)


# ---- the driver's transaction ---------------------------------------------------------------------------------------


def writing(hand: Hand, results: Any = None, write: Callable[..., Any] = advance) -> Call:
    """The next decision of ``hand``, made now and written by the call."""
    return partial(write, hand.batch(hand.decide(results)))


def begun(text: str) -> Hand:
    hand = Hand(publish_run(text))
    hand.step()
    return hand


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


# ---- people ---------------------------------------------------------------------------------------------------------


def reply(run_id: int, who: str, decision: str) -> Reply:
    shown = Interrupt.objects.filter(run_id=run_id, status="open").values_list("shown_digest", flat=True).first()
    return Reply(voter=who, recorded_by=who, decision=decision, shown_digest=shown)


@attacked(answering.answer)
def answers() -> Call:
    run_id = begun(ASKS).run_id
    said = reply(run_id, "ann", "answered")
    return partial(answering.answer, run_id=run_id, visit=1, reply=said, now=START, now_ms=unix_ms(START))


@attacked(answering.answer)
def votes() -> Call:
    run_id = begun(APPROVES).run_id
    said = reply(run_id, "ann", "approved")
    return partial(answering.answer, run_id=run_id, visit=1, reply=said, now=START, now_ms=unix_ms(START))


@attacked(answering.answer_all)
def answers_two_questions() -> Call:
    run_id = begun(BOTH_ASK).run_id
    visits = Interrupt.objects.filter(run_id=run_id).order_by("visit").values_list("visit", flat=True)
    said = [(visit, reply(run_id, "ann", "answered")) for visit in visits]
    assert len(said) == 2
    return partial(answering.answer_all, run_id=run_id, replies=said, now=START, now_ms=unix_ms(START))


def say(run_id: int, kind: ControlKind, **payload: Any) -> Call:
    return partial(controlling.send, run_id=run_id, kind=kind, payload=payload, request_id="r", sender="bob", now=START)


@attacked(controlling.send)
def holds_a_driven_run() -> Call:
    return say(begun(ONE).run_id, ControlKind.PAUSE, reason="r")


@attacked(controlling.send)
def cancels_a_run_that_nobody_drives() -> Call:
    return say(publish_run(ONE), ControlKind.CANCEL)


@attacked(controlling.send)
def signals() -> Call:
    return say(publish_run(ONE), ControlKind.SIGNAL, name="go", data={"a": [1]})


@attacked(reconciling.reconcile)
def says_that_it_happened() -> Call:
    given = Reconciliation(decision="happened", actor="bob", reason="saw", outcome="ok", output=store([1]))
    return partial(reconciling.reconcile, run_id=blocked().run_id, visit=1, reconciliation=given, now=START)


@attacked(reconciling.reconcile)
def says_that_it_did_not_and_takes_the_slot_again() -> Call:
    given = Reconciliation(decision="did_not", actor="bob", reason="looked")
    run_id = blocked(publish_in_line(ONE, fresh()).run_id).run_id
    return partial(reconciling.reconcile, run_id=run_id, visit=1, reconciliation=given, now=START)


def blocked(run_id: int | None = None) -> Player:
    """A run whose write was interrupted."""
    player = Player(run_id or publish_run(ONE))
    player.step()
    player.die()
    player.step()
    return player


def failed(text: str) -> int:
    """A run whose steps fail, and whose closing steps do not."""
    hand = begun(text)
    hand.step({name: bad() for name in hand.running})
    while hand.running:
        hand.step({name: ok() for name in hand.running})
    assert Run.objects.get(pk=hand.run_id).status == "failed"
    return hand.run_id


@attacked(reopening.reopen)
def reopens() -> Call:
    return partial(reopening.reopen, run_id=failed(CLOSES), actor="bob", reason="again", now=START)


@attacked(reopening.reopen)
def reopens_and_skips() -> Call:
    return partial(reopening.reopen, run_id=failed(ONE), actor="bob", reason="not needed", now=START, skip=True)


@attacked(reopening.reopen)
def reopens_a_map() -> Call:
    text = MAPS.replace("join: settled", "join: all")
    return partial(reopening.reopen, run_id=failed(text), actor="bob", reason="again", now=START)


@attacked(reopening.hurry)
def hurries() -> Call:
    hand = begun(RETRIES)
    hand.step({"v1.1": bad()})
    return partial(reopening.hurry, run_id=hand.run_id, actor="bob", now=START)


@attacked(reopening.wake)
def wakes() -> Call:
    return partial(reopening.wake, run_id=begun(ASKS).run_id)


@attacked(auditing.audit)
def records_what_was_denied() -> Call:
    return partial(auditing.audit, actor="eve", action="run.abandon", at=START, run=publish_run(ONE), allowed=False)


@attacked(late_results.keep_late_result)
def keeps_a_late_result() -> Call:
    run_id = blocked().run_id
    return partial(
        late_results.keep_late_result, run_id=run_id, visit=1, number=1, outcome="ok", output=store({"late": True})
    )


# ---- between runs ---------------------------------------------------------------------------------------------------


@attacked(children.hear_of_child)
def hears_of_a_child() -> Call:
    player = Player(publish_parent(PARENT, KID))
    player.play()
    child = Run.objects.get(parent_run_id=player.run_id).pk
    hand = Hand(child)
    hand.step()
    hand.step({"v1.1": ok()})
    return partial(children.hear_of_child, child_id=child, now=START)


def in_line(group: str) -> int:
    """A run whose step waits for the place of a group."""
    hand = begun(workflow(LIMITED.format(group)))
    return hand.run_id


@attacked(slot_verbs.give_places)
def gives_a_place() -> Call:
    group = fresh()
    in_line(group)
    return partial(slot_verbs.give_places, kind=SlotKind.LIMIT, name=group)


@attacked(slot_verbs.hear_of_slot)
def hears_of_a_place() -> Call:
    group = fresh()
    in_line(group)
    (given,) = slot_verbs.give_places(kind=SlotKind.LIMIT, name=group)
    return partial(slot_verbs.hear_of_slot, run_id=given.run_id, kind=SlotKind.LIMIT, scope=given.scope, now=START)


@attacked(slot_verbs.stand_in_line_again)
def stands_in_line_again() -> Call:
    key = fresh()
    player = blocked(publish_in_line(ONE, key).run_id)
    publish_in_line(ONE, key)
    say(player.run_id, ControlKind.PAUSE)()
    assert player.run_id in slot_verbs.without_place()
    return partial(slot_verbs.stand_in_line_again, run_id=player.run_id)
