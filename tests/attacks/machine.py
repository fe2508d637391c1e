"""A machine that does to a few runs whatever people and drivers may do, in any order, and compares with the model."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests import stores_of_tests
from tests.attacks.model import FINAL, MOVES, Expected, Line
from tests.support.hand import TTL_MS, Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import workflow
from tests.support.rows import assert_sound
from tests.support.worlds import publish_in_line
from workflows.clock import unix_ms
from workflows.engine import consequences
from workflows.errors import Refusal
from workflows.jsonvalue import store
from workflows.ledger import slots
from workflows.ledger.abandoning import abandon
from workflows.ledger.advance import advance
from workflows.ledger.answering import Reply, answer
from workflows.ledger.batch import Batch
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Event, Interrupt, Lease, Run, Slot, Visit
from workflows.statuses import ControlKind, SlotKind

TEXT = workflow(
    """
  - { id: look, kind: shell, run: x, access: read }
  - id: ask
    kind: question
    ask: "Shall it go on?"
    choices: { go: Go, stop: Stop }
    timeout: 60m
    next: { go: change, stop: fail, expired: change }
  - { id: change, kind: shell, run: x, access: write }
  - { id: nap, kind: wait, for: 30m }
""",
    after="finally: [{ id: tidy, kind: shell, run: x, access: read }]",
)
KEY = "shared"
MOST_RUNS = 3
PICK = st.integers(0, 59)


class LedgerMachine(RuleBasedStateMachine):
    """Rules pick a run and do one thing to it; what the ledger answers is what the model says."""

    def __init__(self) -> None:
        super().__init__()
        stores_of_tests.wipe()
        self.began = datetime.now(UTC) + timedelta(minutes=1)
        self.minutes = 0
        self.ids: list[int] = []
        self.expected: dict[int, Expected] = {}
        self.hands: dict[int, Hand] = {}
        self.zombies: dict[int, Batch] = {}
        self.seen: dict[int, tuple[str, int, int]] = {}
        self.tried: dict[int, Counter[str]] = {}
        self.line = Line()
        self.requests = itertools.count()

    def teardown(self) -> None:
        assert_sound()

    @property
    def now(self) -> datetime:
        return self.began + timedelta(minutes=self.minutes)

    def pick(self, number: int, *, among: str = "") -> tuple[int, Expected]:
        """One of the runs, mostly one with which something can be done: ``among`` names what it has to be."""
        fit = [run_id for run_id in self.ids if number % 5 and self.fits(self.expected[run_id], among)]
        chosen = fit or self.ids
        run_id = chosen[number % len(chosen)]
        return run_id, self.expected[run_id]

    @staticmethod
    def fits(run: Expected, among: str) -> bool:
        return {
            "": True,
            "at work": run.driver == "live",
            "undriven": run.driver != "live" and run.status not in FINAL,
            "asking": run.doing == "people" and run.status not in FINAL,
            "uncertain": run.doing == "reconcile",
            "over": run.status in ("failed", "abandoned"),
        }[among]

    # ---- rules ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.ids) < MOST_RUNS)
    @rule(depth=st.integers(0, 4))
    def start(self, depth: int) -> None:
        """A new run, which may have come some way already."""
        run_id = publish_in_line(TEXT, KEY, max=2).run_id
        self.ids.append(run_id)
        self.expected[run_id] = Expected()
        self.seen[run_id] = ("queued", 1, 2)
        self.line.take(run_id)
        if depth and run_id in self.line.holders:
            self.drive_run(run_id)
            for move in (
                lambda: self.decide(run_id, "ok"),
                lambda: self.reply_to(run_id, "go"),
                lambda: self.drive_run(run_id),
            )[: depth - 1]:
                move()

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def drive(self, number: int) -> None:
        """Somebody takes a run and makes a first decision."""
        self.drive_run(self.pick(number, among="undriven")[0])

    def drive_run(self, run_id: int) -> None:
        run = self.expected[run_id]
        wanted = run.acquire(has_place=run_id in self.line.holders, now=self.minutes)
        taken: list[Hand] = []
        owner, at_ms = f"driver {run.epoch}", unix_ms(self.now)
        code = refusal_of(lambda: taken.append(Hand(run_id, owner=owner, at_ms=at_ms, now=self.now)))
        answers = [code] if code else ["recovered" if hand.grant.recovered else "granted" for hand in taken]
        assert answers == [wanted], run
        for hand in taken:
            assert hand.grant.epoch == run.epoch
            self.hands[run_id] = hand
            self.decide(run_id, first=True)

    @precondition(lambda self: self.ids)
    @rule(number=PICK, result=st.sampled_from(["ok", "ok", "ok", "bad"]))
    def settle(self, number: int, result: str) -> None:
        """The effect that runs ends."""
        run_id, run = self.pick(number, among="at work")
        if run.driver == "live" and run.doing == "effect":
            self.decide(run_id, result)

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def drive_on(self, number: int) -> None:
        """The same as two rules: most of what happens to runs is that they go on."""
        self.drive(number)
        self.settle(number, "ok")

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def look_for_messages(self, number: int) -> None:
        run_id, run = self.pick(number, among="at work")
        if run.driver == "live":
            self.decide(run_id)

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def die(self, number: int) -> None:
        """The driver dies with a result in hand."""
        run_id, run = self.pick(number, among="at work")
        if run.driver == "live":
            hand = self.hands.pop(run_id)
            (name,) = hand.running
            self.zombies[run_id] = hand.batch(hand.decide({name: ok("from the grave")}))
            expire(run_id)
            run.driver = "dead"

    @precondition(lambda self: self.zombies)
    @rule(number=PICK)
    def write_late(self, number: int) -> None:
        """A dead driver was only frozen, and writes what it had in hand."""
        run_id, _ = self.pick(number)
        if run_id not in self.zombies:
            return
        assert refusal_of(lambda: advance(self.zombies[run_id])) == "lease.lost"

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def cancel(self, number: int) -> None:
        if number % 3:
            return
        run_id, run = self.pick(number)
        assert self.tell(run_id, ControlKind.CANCEL) == run.cancel(), run

    @precondition(lambda self: self.ids)
    @rule(number=PICK, kind=st.sampled_from([ControlKind.PAUSE, ControlKind.RESUME]))
    def hold(self, number: int, kind: ControlKind) -> None:
        run_id, run = self.pick(number)
        if run.status != "blocked":
            assert self.tell(run_id, kind) == run.say(str(kind)), run

    @precondition(lambda self: self.ids)
    @rule(number=PICK, decision=st.sampled_from(["go", "go", "stop"]))
    def reply(self, number: int, decision: str) -> None:
        self.reply_to(self.pick(number, among="asking")[0], decision)

    def reply_to(self, run_id: int, decision: str) -> None:
        run = self.expected[run_id]
        question = Interrupt.objects.filter(run_id=run_id).order_by("-attempt").first()
        if question is None or run.doing == "answered" or question.status == "answered":
            return
        said = Reply(voter="ann", recorded_by="ann", decision=decision, shown_digest=question.shown_digest)
        moment_ms = unix_ms(self.now)
        code = refusal_of(
            lambda: answer(run_id=run_id, visit=question.visit, reply=said, now=self.now, now_ms=moment_ms)
        )
        assert (code or "settled") == run.answer(decision, self.minutes), run

    @precondition(lambda self: self.ids)
    @rule(number=PICK, decision=st.sampled_from(["happened", "did_not", "stop"]))
    def say_what_happened(self, number: int, decision: Any) -> None:
        run_id, run = self.pick(number, among="uncertain")
        outcome = "ok" if decision == "happened" else ""
        told = Reconciliation(decision=decision, actor="bob", reason="looked", outcome=outcome, output=store(1))
        visit = Attempt.objects.filter(run_id=run_id, status="interrupted").order_by("-visit").values("visit").first()
        code = refusal_of(
            lambda: reconcile(run_id=run_id, visit=visit["visit"] if visit else 1, reconciliation=told, now=self.now)
        )
        if run.status in FINAL:
            assert code == "run.terminal"
        elif run.doing != "reconcile":
            assert code == "attempt.not_interrupted", run
        else:
            assert code == "", run
            if run.status == "blocked" and not run.ending:
                self.line.take(run_id)
            run.reconcile(decision)

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def open_again(self, number: int) -> None:
        run_id, run = self.pick(number, among="over")
        if run.status == "abandoned" and (run.ending or run.is_held):
            return
        code = refusal_of(lambda: reopen(run_id=run_id, actor="bob", reason="again", now=self.now))
        if run.status not in ("failed", "abandoned"):
            assert code == "run.not_reopenable", run
        elif self.line.take(run_id):
            assert code == "", run
            run.reopen()
        else:
            assert code == "run.concurrency_full", run
            self.line.leave(run_id)

    @precondition(lambda self: self.ids)
    @rule(number=PICK)
    def give_up(self, number: int) -> None:
        if number % 3:
            return
        run_id, run = self.pick(number)
        code = refusal_of(lambda: abandon(run_id=run_id, actor="bob", reason="enough", now=self.now))
        assert (code or "abandoned") == run.abandon(), run
        if not code:
            self.hands.pop(run_id, None)
            self.pass_place_on(run_id)
            slots.pass_on(kind=SlotKind.CONCURRENCY, name=KEY, now=self.now)

    @rule()
    def pass_time(self) -> None:
        self.minutes += 35
        for hand in self.hands.values():
            hand.now = self.now
        keep_alive(list(self.hands), unix_ms(self.now) + TTL_MS)

    @rule()
    def sweep(self) -> None:
        """Nothing is left to a sweep that a commit has not done already."""
        assert consequences.sweep() == 0

    # ---- what is done with them -------------------------------------------------------------------------------------

    def decide(self, run_id: int, result: str = "", *, first: bool = False) -> None:
        run, hand = self.expected[run_id], self.hands[run_id]
        results = {name: ok() if result == "ok" else bad() for name in hand.running} if result else {}
        if not first:
            hand.reload()
        decision = hand.step(results)
        consequences.carry_out(Run.objects.get(pk=run_id), decision.draft)
        run.decide(result, first=first, now=self.minutes)
        assert decision.parks == (run.driver == ""), run
        if decision.parks:
            del self.hands[run_id]
        if run.status in FINAL or run.status == "blocked":
            self.pass_place_on(run_id)

    def pass_place_on(self, run_id: int) -> None:
        self.line.leave(run_id)
        for given in self.line.give():
            self.expected[given].is_woken = True

    def tell(self, run_id: int, kind: ControlKind) -> str:
        request = f"r{next(self.requests)}"
        new: list[bool] = []

        def say() -> None:
            new.append(send(run_id=run_id, kind=kind, payload={}, request_id=request, sender="ann", now=self.now).new)

        return refusal_of(say) or ("new" if new == [True] else "known")

    # ---- what holds always ------------------------------------------------------------------------------------------

    @invariant()
    def every_run_is_as_the_model_says(self) -> None:
        for run in Run.objects.filter(pk__in=self.ids).select_related("lease").order_by("pk"):
            wanted = self.expected[run.pk]
            found = (run.status, run.lease_epoch, bool(run.held), run.lease.expires_ms > 0)
            assert found == (wanted.status, wanted.epoch, wanted.is_held, bool(wanted.driver)), wanted
            if run.revision != self.seen[run.pk][1]:
                self.moves_on(run)
                self.tried[run.pk] = attempts_of(run.pk)
            assert self.tried.get(run.pk, Counter()) == wanted.attempts, wanted

    def moves_on(self, run: Run) -> None:
        """Statuses move as they may; numbers only grow, and every revision has an event."""
        status, revision, next_event = self.seen[run.pk]
        assert run.status == status or run.status in MOVES[status]
        assert run.revision > revision
        new = Event.objects.filter(run=run, sequence__gte=next_event).order_by("sequence")
        events = list(new.values_list("sequence", "revision"))
        assert [number for number, _ in events] == list(range(next_event, run.next_event))
        assert {number for _, number in events} == set(range(revision + 1, run.revision + 1))
        self.seen[run.pk] = (run.status, run.revision, run.next_event)

    @invariant()
    def places_are_held_and_waited_for_in_order(self) -> None:
        rows = list(Slot.objects.order_by("id").values_list("run_id", "number"))
        assert {run for run, number in rows if number is not None} == set(self.line.holders)
        assert [run for run, number in rows if number is None] == self.line.waiting


@ledger_transaction
def keep_alive(run_ids: list[int], expires_ms: int) -> None:
    """As if every heartbeat between had come: the clock jumps, and the lease of a living driver with it."""
    Lease.objects.filter(run_id__in=run_ids).update(expires_ms=expires_ms)


def attempts_of(run_id: int) -> Counter[str]:
    """How often each step was tried."""
    steps = dict(Visit.objects.filter(run_id=run_id).values_list("number", "step"))
    return Counter(steps[visit] for visit in Attempt.objects.filter(run_id=run_id).values_list("visit", flat=True))


def refusal_of(call: Any) -> str:
    """The code of the refusal of a call, empty when it succeeds."""
    try:
        call()
    except Refusal as refusal:
        return refusal.code
    return ""
