"""Runs played by hand: every effect ends when and how the test says, in any order, with other drivers taking over.

Wakes, places and the ends of children go their real ways: what a commit means for other runs is carried out after it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.hand import Hand, Write, expire
from tests.support.kinds import kinds_with, ok
from workflows.clock import unix_ms
from workflows.engine import consequences
from workflows.engine.contract import Kinds, Result
from workflows.engine.draft import Admission
from workflows.engine.scheduler import Decision
from workflows.errors import Refusal
from workflows.ledger.advance import advance
from workflows.models import Payload, Run, Scope, Visit

Script = Mapping[str, Any]


class Player:
    """Drives one run. ``script``: per step id a result, or a function of the admission; others output their step's id.

    ``order`` shuffles which running effect ends next (None: the oldest). ``takeover``: after how many decisions the
    driver dies and another one goes on, 0 for never. ``most`` is the largest number of effects at work at once.
    """

    def __init__(
        self,
        run_id: int,
        script: Script | None = None,
        *,
        kinds: Kinds | None = None,
        order: random.Random | None = None,
        takeover: int = 0,
        now: datetime | None = None,
        write: Write = advance,
    ) -> None:
        self.run_id = run_id
        self.script = script or {}
        self.kinds = kinds or kinds_with()
        self.order = order
        self.takeover = takeover
        self.write = write
        self.drivers = 0
        self._now = now or datetime.now(UTC)
        self.most = 0
        self.started: list[tuple[str, str]] = []
        self.decisions = 0
        self.hand = self.take()

    def take(self) -> Hand:
        """The run's lease for another driver, at the moment of this one."""
        at_ms = max(unix_ms(datetime.now(UTC)) + 1_000, unix_ms(self._now))
        self.drivers += 1
        hand = Hand(
            self.run_id,
            kinds=self.kinds,
            now=self._now,
            owner=f"player {self.drivers}",
            at_ms=at_ms,
            write=self.write,
        )
        hand.memory.takes_slot = bool(Run.objects.get(pk=self.run_id).concurrency_max)
        return hand

    def pass_time(self, milliseconds: int) -> None:
        self._now += timedelta(milliseconds=milliseconds)
        self.hand.now = self._now

    # ---- one move at a time -----------------------------------------------------------------------------------------

    def step(self, results: Mapping[str, Result] | None = None, **more: Any) -> Decision:
        """One decision, as a driver makes it: again when somebody else changed the run in between."""
        self.decisions += 1
        while True:
            try:
                decision = self.hand.step(results, **more)
                break
            except Refusal as refusal:
                if refusal.code != "run.conflict":
                    raise
                self.hand.reload()
        for admission in decision.draft.admissions:
            self.started.append((admission.scope.path, admission.step.id))
        self.most = max(self.most, len(self.hand.admissions))
        consequences.carry_out(Run.objects.get(pk=self.run_id), decision.draft)
        return decision

    def die(self) -> None:
        """The driver dies with what it had in hand; another one takes over."""
        expire(self.run_id)
        self.hand = self.take()

    def settle(self, *steps: str) -> Decision:
        """End every running effect of these steps (default: all) at the same moment."""
        return self.step({name: self.result(name) for name in self.running(*steps)})

    def running(self, *steps: str) -> list[str]:
        """The attempts at work, ``v1.1``, of these steps or of all."""
        return [
            f"v{visit}.{attempt}"
            for (visit, attempt), admission in self.hand.admissions.items()
            if not steps or admission.step.id in steps
        ]

    def running_in(self) -> list[str]:
        """``scope/step`` of the attempts at work."""
        return [f"{one.scope.path}/{one.step.id}".lstrip("/") for one in self.hand.admissions.values()]

    def attempt_in(self, path: str) -> str:
        """The attempt at work in a scope."""
        (name,) = [
            f"v{visit}.{attempt}"
            for (visit, attempt), admission in self.hand.admissions.items()
            if admission.scope.path == path
        ]
        return name

    def result(self, name: str) -> Result:
        visit, _, attempt = name.removeprefix("v").partition(".")
        admission = self.hand.admissions[int(visit), int(attempt)]
        scripted = self.script.get(admission.step.id)
        if scripted is None:
            return ok(admission.step.id)
        result: Result = scripted(admission) if callable(scripted) else scripted
        return result

    # ---- as far as it goes ------------------------------------------------------------------------------------------

    def play(self, *, most_decisions: int = 100_000) -> Run:
        """Until the run ends or parks; one effect ends per decision."""
        decision = self.step()
        while not (decision.parks and self.rests(decision)) and most_decisions > 0:
            most_decisions -= 1
            if decision.parks:
                self.hand = self.take()
                decision = self.step()
                continue
            if decision.draft.is_cut:
                decision = self.step()
                continue
            if self.takeover and self.decisions % self.takeover == 0:
                self.die()
                decision = self.step()
                continue
            names = self.running()
            assert names or self.hand.memory.revision != self.revision(), "nothing runs, and nothing parks"
            if names:
                name = self.order.choice(names) if self.order else names[0]
                decision = self.step({name: self.result(name)})
            else:
                self.hand.reload()
                decision = self.step()
        return self.run

    def rests(self, decision: Decision) -> bool:
        """Whether a parked run has ended or waits for something else than this very moment."""
        until = decision.waits_until_ms
        return decision.draft.ended or until is None or until > unix_ms(self._now)

    def again(self) -> Run:
        """Take the parked run and play on."""
        self.hand = self.take()
        return self.play()

    # ---- what came of it --------------------------------------------------------------------------------------------

    def revision(self) -> int:
        return int(Run.objects.values_list("revision", flat=True).get(pk=self.run_id))

    @property
    def run(self) -> Run:
        run: Run = Run.objects.get(pk=self.run_id)
        return run


def play(run_id: int, script: Script | None = None, **options: Any) -> Run:
    return Player(run_id, script, **options).play()


def output_of(run_id: int) -> Any:
    """The run's output."""
    digest = Run.objects.values_list("output_digest", flat=True).get(pk=run_id)
    return None if digest is None else payload(digest)


def payload(digest: str) -> Any:
    return json.loads(Payload.objects.values_list("text", flat=True).get(digest=digest))


def error_of(run_id: int) -> dict[str, Any]:
    """``{code, step, message}`` of a failed run."""
    error = json.loads(Run.objects.values_list("error", flat=True).get(pk=run_id) or "{}")
    return {name: error[name] for name in ("code", "step", "message")} if error else {}


def path_of(run_id: int) -> list[tuple[str, str, str]]:
    """(scope, step, outcome) of every visit, in order of the scopes."""
    rows = Visit.objects.filter(run_id=run_id).order_by("scope", "number")
    return list(rows.values_list("scope", "step", "outcome"))


def scopes_of(run_id: int) -> dict[str, str]:
    """Outcome of every scope by path."""
    return dict(Scope.objects.filter(run_id=run_id).order_by("path").values_list("path", "outcome"))


def of_index(results: Iterable[Any]) -> Callable[[Admission], Result]:
    """A script that gives the n-th result to the n-th item."""
    listed = list(results)

    def scripted(admission: Admission) -> Result:
        index = admission.scope.index
        assert index is not None
        result: Result = listed[index]
        return result

    return scripted
