"""Forks played with what happened in their origin: every effect ends as it did there, people say what they said.

So a fork that was not edited must end like its origin, whatever effects are random, slow or not repeatable.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from tests.crashes.ends import end_of
from tests.support.players import Player
from workflows.clock import unix_ms
from workflows.engine.contract import Result
from workflows.engine.scheduler import Decision
from workflows.errors import Failure
from workflows.jsonvalue import decode, store
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Attempt, Interrupt, Payload, Run, Scope, Visit, Vote
from workflows.statuses import AttemptStatus, ControlKind, InterruptStatus, WaitsFor
from workflows.steps import KINDS

Place = tuple[str, str, int]


class Book:
    """What happened in a run: how each try of each visit ended, by scope, step and round."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self.visits = {place_of(visit): visit for visit in Visit.objects.filter(run_id=run_id, round__isnull=False)}
        self.tries: dict[int, list[Attempt]] = defaultdict(list)
        for attempt in Attempt.objects.filter(run_id=run_id).order_by("visit", "number"):
            if attempt.status != AttemptStatus.INTERRUPTED:
                self.tries[attempt.visit].append(attempt)

    def result(self, place: Place, number: int) -> tuple[int, Result]:
        """The result of the n-th try, with the revision at which it was settled."""
        visit = self.visits[place]
        attempt = self.tries[visit.number][number - 1]
        assert attempt.revision_settled is not None
        if attempt.status == AttemptStatus.CANCELLED:
            return attempt.revision_settled, Result(outcome="cancelled", failure=Failure(code="cancelled", message="x"))
        error = json.loads(attempt.error) if attempt.error else None
        is_last = number == len(self.tries[visit.number])
        digest = visit.output_digest if is_last and error is None else None
        return attempt.revision_settled, Result(
            outcome=attempt.outcome,
            output=None if digest is None else store(decode(Payload.objects.get(digest=digest).text)),
            failure=Failure(code=error["code"], message=error["message"]) if error else None,
            exit_code=visit.exit_code if is_last else None,
        )

    def question(self, place: Place) -> Interrupt:
        """The last question of a visit."""
        question: Interrupt = Interrupt.objects.filter(run_id=self.run_id, visit=self.visits[place].number).latest(
            "attempt"
        )
        return question

    def child(self, place: Place) -> int:
        """The last child run of a visit."""
        visit = self.visits[place].number
        number: int = Run.objects.filter(parent_run=self.run_id, parent_visit=visit).latest("pk").pk
        return number


def place_of(visit: Any) -> Place:
    return visit.scope, visit.step, visit.round or 1


class Replay(Player):
    """Drives a fork. ``executed`` are the numbers of the visits whose effects began in it, in order."""

    def __init__(self, run_id: int, origin_id: int) -> None:
        self.book = Book(origin_id)
        self.executed: list[int] = []
        super().__init__(run_id, kinds=KINDS, now=datetime.now(UTC))

    def step(self, results: Any = None, **more: Any) -> Decision:
        decision = super().step(results, **more)
        self.executed += [admission.visit.number for admission in decision.draft.admissions]
        return decision

    def play_out(self) -> Run:
        decision = self.step()
        for _ in range(2_000):
            if decision.draft.ended:
                return self.run
            if decision.parks:
                self.go_on()
                decision = self.step()
            elif decision.draft.is_cut:
                decision = self.step()
            else:
                decision = self.step(self.next_result())
        raise AssertionError(f"run {self.run_id} does not come to its end: {self.run.status} {self.run.reasons}")

    def next_result(self) -> dict[str, Result]:
        """The result of the running effect that ended first in the origin."""
        found = []
        for name in self.running():
            visit, _, attempt = name.removeprefix("v").partition(".")
            row = self.hand.admissions[int(visit), int(attempt)].visit
            revision, result = self.book.result(place_of(row), row.attempts + 1)
            found.append((revision, name, result))
        if not found:
            self.hand.reload()
            return {}
        _, name, result = min(found, key=lambda one: (one[0], one[1]))
        return {name: result}

    # ---- what a parked run waits for --------------------------------------------------------------------------------

    def go_on(self) -> None:
        for scope in Scope.objects.filter(run_id=self.run_id, phase="waiting").order_by("pk"):
            if scope.waits_for == WaitsFor.RECONCILE:
                self.reconcile(scope)
            elif scope.waits_for == WaitsFor.PEOPLE:
                self.answer(scope)
            elif scope.waits_for == WaitsFor.CHILD:
                self.play_child(scope)
            elif scope.waits_for == WaitsFor.SIGNAL:
                self.send(scope)
        wake_at_ms = Run.objects.values_list("wake_at_ms", flat=True).get(pk=self.run_id)
        assert wake_at_ms is not None, self.run.reasons
        self.pass_time(max(0, wake_at_ms - unix_ms(self._now)))
        self.hand = self.take()

    def visit_of(self, scope: Scope) -> Visit:
        visit: Visit = Visit.objects.get(run_id=self.run_id, number=scope.visit)
        return visit

    def reconcile(self, scope: Scope) -> None:
        """It happened, as it did in the origin."""
        visit = self.visit_of(scope)
        _, result = self.book.result(place_of(visit), visit.attempts + 1)
        failure = {"code": result.failure.code, "message": result.failure.message} if result.failure else None
        told = Reconciliation(
            decision="happened",
            actor="ann",
            reason="the origin shows it",
            outcome=result.outcome,
            output=result.output,
            failure=failure,
            exit_code=result.exit_code,
        )
        reconcile(run_id=self.run_id, visit=visit.number, reconciliation=told, now=self._now)

    def answer(self, scope: Scope) -> None:
        visit = self.visit_of(scope)
        asked = Interrupt.objects.filter(run_id=self.run_id, visit=visit.number, status=InterruptStatus.OPEN).first()
        former = self.book.question(place_of(visit))
        if asked is None or former.status != InterruptStatus.ANSWERED:
            return
        for vote in Vote.objects.filter(run_id=self.book.run_id, visit=former.visit, attempt=former.attempt):
            reply = Reply(
                voter=vote.voter,
                recorded_by=vote.recorded_by,
                decision=vote.decision,
                fields=json.loads(vote.answer),
                comment=vote.comment,
                shown_digest=asked.shown_digest,
            )
            answer(run_id=self.run_id, visit=visit.number, reply=reply, now=self._now, now_ms=0)

    def play_child(self, scope: Scope) -> None:
        """Play the child that a scope waits for, if it is this run's own and has not ended."""
        children = Run.objects.filter(parent_run=self.run_id, parent_visit=scope.visit)
        child = children.order_by("-pk").first()
        if child is None or child.is_final:
            return
        Replay(child.pk, self.book.child(place_of(self.visit_of(scope)))).play_out()

    def send(self, scope: Scope) -> None:
        former = self.book.visits[place_of(self.visit_of(scope))]
        if former.outcome != "received":
            return
        value = None if former.output_digest is None else decode(Payload.objects.get(digest=former.output_digest).text)
        content = {"name": scope.step, "payload": value}
        key = f"{scope.path} {scope.visit}"
        send(run_id=self.run_id, kind=ControlKind.SIGNAL, payload=content, request_id=key, sender="ann", now=self._now)


def comparable(run_id: int) -> Any:
    """How a run ended, without the numbers of runs."""
    text = json.dumps(end_of(run_id), sort_keys=True)
    return json.loads(re.sub(r"(Child run |run_id\W+)\d+", r"\1N", text))
