"""Verbs of people, and those between runs, in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial

from tests.attacks.verbs import (
    APPROVES,
    ASKS,
    BOTH_ASK,
    CLOSES,
    KID,
    MAPS,
    ONE,
    PARENT,
    RETRIES,
    Call,
    attacked,
    begun,
    blocked,
    fresh,
    in_line,
    say,
)
from tests.support.forks import fork_at, wish_at
from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run
from tests.support.players import Player
from tests.support.worlds import publish_in_line, publish_parent
from workflows.clock import unix_ms
from workflows.jsonvalue import store
from workflows.ledger import (
    abandoning,
    adopting,
    answering,
    auditing,
    children,
    controlling,
    forking,
    late_results,
    reconciling,
    reopening,
)
from workflows.ledger import slots as slot_verbs
from workflows.ledger.answering import Reply
from workflows.ledger.reconciling import Reconciliation
from workflows.models import Interrupt, Run
from workflows.statuses import ControlKind, SlotKind


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


from tests.attacks import operators  # noqa: E402, F401 - registers its worlds with the names above

# ---- forks and what is given up -------------------------------------------------------------------------------------


@attacked(abandoning.abandon)
def abandons_a_run_at_work() -> Call:
    return partial(abandoning.abandon, run_id=begun(ONE).run_id, actor="bob", reason="enough", now=START)


@attacked(abandoning.abandon)
def abandons_a_run_that_asks_and_holds_a_slot() -> Call:
    run_id = publish_in_line(ASKS, fresh()).run_id
    Hand(run_id).step()
    return partial(abandoning.abandon, run_id=run_id, actor="bob", reason="enough", now=START)


@attacked(reopening.reopen)
def reopens_what_was_abandoned() -> Call:
    run_id = begun(ONE).run_id
    abandoning.abandon(run_id=run_id, actor="bob", reason="enough", now=START)
    return partial(reopening.reopen, run_id=run_id, actor="bob", reason="not yet", now=START)


@attacked(forking.fork)
def forks() -> Call:
    run_id = failed(CLOSES)
    return partial(forking.fork, wish_at(run_id, 2))


@attacked(forking.fork)
def forks_in_the_middle_of_a_map() -> Call:
    run_id = failed(MAPS)
    return partial(forking.fork, wish_at(run_id, Run.objects.get(pk=run_id).revision - 3))


@attacked(adopting.hear_of_adopted)
def hears_of_the_child_of_its_origin() -> Call:
    player = Player(publish_parent(PARENT, KID))
    player.play()
    child = Run.objects.get(parent_run_id=player.run_id).pk
    revision = Run.objects.get(pk=player.run_id).revision
    fork_id = fork_at(player.run_id, revision, child="take").run_id
    Player(fork_id).play()
    hand = Hand(child)
    hand.step()
    hand.step({"v1.1": ok()})
    return partial(adopting.hear_of_adopted, run_id=fork_id, child_id=child, now=START)
