"""What a run of one small workflow has to be after any sequence of operations, written down without the engine.

The workflow is ``look`` (a read), ``ask`` (a question), ``change`` (a write), ``nap`` (a timer), and ``tidy`` in its
``finally``. Runs share the two places of a concurrency key. Nothing here imports the product.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAIN = ("look", "ask", "change", "nap")
TIDY, OVER = "tidy", "over"
PLACES = 2
#: Minutes: how long a question is open, and how long the nap is.
DEADLINE, NAP = 60, 30

FINAL = frozenset({"succeeded", "failed", "cancelled", "abandoned"})
LIVE = frozenset({"queued", "running", "waiting", "paused", "blocked"})
#: The statuses that may be seen one after the other.
MOVES = {status: (LIVE - {"queued"}) | FINAL for status in LIVE} | {
    "succeeded": frozenset(),
    "cancelled": frozenset(),
    "failed": frozenset({"queued"}),
    "abandoned": frozenset({"queued"}),
}


@dataclass(slots=True)
class Line:
    """The places of the key: who holds one, and who waits, in order."""

    holders: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def take(self, run: int) -> bool:
        """Take a place, or stand in line; whether there was one."""
        if run not in self.holders and run not in self.waiting:
            self.waiting.append(run)
        self.give()
        return run in self.holders

    def give(self) -> list[int]:
        """Give free places to those who wait; to whom."""
        given = self.waiting[: max(0, PLACES - len(self.holders))]
        self.holders += given
        self.waiting = self.waiting[len(given) :]
        return given

    def leave(self, run: int) -> None:
        self.holders = [one for one in self.holders if one != run]
        self.waiting = [one for one in self.waiting if one != run]


@dataclass(slots=True)
class Expected:
    """One run. ``doing`` at step ``at``: ready, effect, reconcile, decided, people, answered or timer."""

    status: str = "queued"
    at: str = MAIN[0]
    doing: str = "ready"
    due: int = 0
    said: str = ""
    ending: str = ""
    is_held: bool = False
    inbox: list[str] = field(default_factory=list)
    driver: str = ""
    epoch: int = 0
    is_woken: bool = False
    attempts: Counter[str] = field(default_factory=Counter)
    failed_at: str = ""

    # ---- what people do ---------------------------------------------------------------------------------------------

    def cancel(self) -> str:
        """``new``, ``known`` or the refusal."""
        if "cancel" in self.inbox or self.ending == "cancelled":
            return "known"
        if self.status in FINAL or self.ending:
            return "run.terminal"
        self.inbox.append("cancel")
        self.is_woken = True
        if self.driver != "live":
            self.ending = "cancelled"
        return "new"

    def say(self, kind: str) -> str:
        if self.status in FINAL:
            return "run.terminal"
        self.inbox.append(kind)
        self.is_woken = True
        return "new"

    def answer(self, decision: str, now: int) -> str:
        if self.doing != "people" or now >= self.due:
            return "interrupt.closed"
        self.doing, self.said, self.is_woken = "answered", decision, True
        return "settled"

    def reconcile(self, decision: str) -> None:
        self.doing, self.said, self.is_woken = "decided", decision, True

    def abandon(self) -> str:
        if self.status in FINAL:
            return "run.terminal"
        self.status, self.driver, self.inbox, self.is_woken = "abandoned", "", [], False
        if self.doing == "effect":
            self.doing = "reconcile" if self.at == "change" else "ready"
        elif self.doing == "people":
            self.doing = "ready"
        return "abandoned"

    def reopen(self) -> None:
        """Of a failed run, at what failed; when only a closing step did, the end is redone."""
        was = self.status
        self.status, self.is_woken = "queued", False
        if was == "failed":
            self.at = self.failed_at or "end"
            self.doing = "ready"
        self.ending = self.failed_at = ""

    # ---- what drivers do --------------------------------------------------------------------------------------------

    def acquire(self, *, has_place: bool, now: int) -> str:
        """``granted`` or ``recovered``, or the refusal."""
        if self.status in FINAL:
            return "run.terminal"
        if self.driver == "live":
            return "lease.held"
        if not has_place and not self.ending:
            return "run.queued"
        is_due = self.doing in ("people", "timer") and now >= self.due and self.passes_time()
        if self.status not in ("queued", "running") and not (self.is_woken or is_due) and not self.driver:
            return "run.parked"
        was, self.driver = self.driver, "live"
        self.epoch += 1
        return "recovered" if was else "granted"

    def passes_time(self) -> bool:
        return self.doing == "people" or not self.is_held

    def decide(self, result: str = "", *, first: bool = False, now: int) -> None:
        """One decision of the driver, with the result of the effect if there is one."""
        if result:
            self._settle(result)
        self._carry_out_messages()
        if self.at != OVER:
            if first:
                self._recover()
            self._wake(now)
            self._advance(now)
        self._derive()

    def _settle(self, result: str) -> None:
        if self.at in MAIN and self.ending == "cancelled":
            self._close()
        elif result == "ok":
            self._next()
        else:
            self._fail()

    def _carry_out_messages(self) -> None:
        messages, self.inbox = self.inbox, []
        for message in messages:
            if self.at == OVER:
                self.inbox.append(message)
            elif message == "cancel" and self.ending in ("", "cancelled"):
                self.ending, self.is_held = "cancelled", False
                if self.at != TIDY and self.doing != "effect":
                    self._close()
            elif message in ("pause", "resume"):
                self.is_held = message == "pause"

    def _recover(self) -> None:
        if self.doing == "effect":
            if self.at in MAIN and self.ending == "cancelled":
                self._close()
            else:
                self.doing = "reconcile" if self.at == "change" else "ready"

    def _wake(self, now: int) -> None:
        if self.doing == "decided" and not self.is_held:
            if self.said == "did_not":
                self._start()
            elif self.said == "happened":
                self._next()
            else:
                self._fail()
        elif self.doing == "answered":
            self._next() if self.said == "go" else self._fail()
        elif self.doing in ("people", "timer") and now >= self.due and self.passes_time():
            self._next()

    def _advance(self, now: int) -> None:
        while self.doing == "ready" and self.at != OVER and not self.is_held:
            if self.at == "end":
                self._succeed()
            elif self.at == "ask":
                self.doing, self.due = "people", now + DEADLINE
                self.attempts["ask"] += 1
            elif self.at == "nap":
                self.doing, self.due = "timer", now + NAP
            else:
                self._start()

    def _start(self) -> None:
        self.attempts[self.at] += 1
        self.doing = "effect"

    def _next(self) -> None:
        self.doing = "ready"
        if self.at == TIDY:
            self.at = OVER
        elif self.at == MAIN[-1]:
            self._succeed()
        else:
            self.at = MAIN[MAIN.index(self.at) + 1]

    def _succeed(self) -> None:
        self.ending = "succeeded"
        self._close()

    def _fail(self) -> None:
        if self.at == TIDY:
            self.ending = "failed" if self.ending == "succeeded" else self.ending
            self.at = OVER
        else:
            self.ending, self.failed_at = "failed", self.at
            self._close()

    def _close(self) -> None:
        self.at, self.doing = TIDY, "ready"

    def _derive(self) -> None:
        if self.at == OVER:
            self.status = self.ending
        elif self.doing == "effect":
            self.status = "running"
        elif self.is_held:
            self.status = "paused"
        elif self.doing == "timer":
            self.status = "waiting"
        elif self.doing in ("reconcile", "decided"):
            self.status = "blocked"
        else:
            self.status = "paused" if self.doing in ("people", "answered") else "running"
        if self.at == OVER or self.doing != "effect":
            self.driver, self.is_woken = "", False
