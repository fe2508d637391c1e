"""Random workflows of nested bodies, and a player that does whatever has to be done to take them to their end."""

from __future__ import annotations

import random
import zlib
from typing import Any

from tests.support.kinds import bad, interrupted, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of
from workflows.clock import unix_ms
from workflows.engine.contract import Result
from workflows.engine.draft import Admission
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.models import Interrupt, Run, Scope
from workflows.statuses import ControlKind

LEAVES = ("work", "work", "work", "limited", "wait", "ask", "hear", "retry", "choose", "write")
CONTAINERS = ("map", "map", "parallel", "block")


class Mixture:
    """A workflow drawn from a seed. Every map and every parallel settles, so its end depends on no order."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.blocks: list[str] = []
        self.number = 0
        self.maps = 0
        steps = self.steps("  ", depth=0)
        blocks = "blocks:\n" + "\n".join(self.blocks) if self.blocks else ""
        last = "[" + ", ".join(f'"${{ steps.{name}.output }}"' for name in self.top) + "]"
        tidy = "finally:\n  - { id: tidy, kind: shell, run: x, access: read }"
        self.text = workflow(steps, after=f"{blocks}\n{tidy}\noutput: {last}")

    def name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}_{self.number}"

    def steps(self, pad: str, *, depth: int) -> str:
        names: list[str] = []
        lines = []
        for _ in range(self.draw.randint(1, 3)):
            is_container = depth < 3 and self.draw.random() < (0.8 if depth == 0 else 0.4)
            kind = self.draw.choice(CONTAINERS if is_container else LEAVES)
            if kind == "map" and self.maps >= 3:
                kind = "work"
            name = self.name(kind)
            names.append(name)
            lines.append(getattr(self, kind)(name, pad, depth))
        if depth == 0:
            self.top = names
        return "\n".join(lines)

    def map(self, name: str, pad: str, depth: int) -> str:
        size, places = self.draw.randint(0, 4), self.draw.randint(1, 3)
        self.maps += 1
        body = self.steps(f"{pad}    ", depth=depth + 1)
        self.maps -= 1
        return (
            f"{pad}- id: {name}\n{pad}  kind: map\n{pad}  over: '${{ {list(range(size))} }}'\n{pad}  join: settled\n"
            f"{pad}  as: i_{name}\n{pad}  concurrency: {places}\n{pad}  do:\n{body}"
        )

    def parallel(self, name: str, pad: str, depth: int) -> str:
        branches = "\n".join(
            f"{pad}    {name}_{branch}:\n{self.steps(f'{pad}      ', depth=depth + 1)}"
            for branch in "ab"[: self.draw.randint(1, 2)]
        )
        return f"{pad}- id: {name}\n{pad}  kind: parallel\n{pad}  join: settled\n{pad}  branches:\n{branches}"

    def block(self, name: str, pad: str, depth: int) -> str:
        maps, self.maps = self.maps, self.maps
        body = self.steps("      ", depth=depth + 1)
        self.maps = maps
        self.blocks.append(f"  b_{name}:\n    vars: {{ seen: 1 }}\n    steps:\n{body}")
        return f"{pad}- {{ id: {name}, kind: block, use: b_{name}, next: {{ failed: continue }} }}"

    def work(self, name: str, pad: str, depth: int) -> str:
        return f"{pad}- {{ id: {name}, kind: shell, run: x, access: read, next: {{ failed: {self.failed()} }} }}"

    def write(self, name: str, pad: str, depth: int) -> str:
        return f"{pad}- {{ id: {name}, kind: shell, run: x, idempotent: true, next: {{ failed: {self.failed()} }} }}"

    def failed(self) -> str:
        return self.draw.choice(["continue", "fail", "done"])

    def limited(self, name: str, pad: str, depth: int) -> str:
        limit = f"{{ group: g{self.draw.randint(1, 2)}, max: {self.draw.randint(1, 2)} }}"
        return (
            f"{pad}- {{ id: {name}, kind: shell, run: x, access: read, limit: {limit}, next: {{ failed: continue }} }}"
        )

    def retry(self, name: str, pad: str, depth: int) -> str:
        return (
            f"{pad}- {{ id: {name}, kind: shell, run: x, access: read, retry: {{ attempts: 2, wait: 1s, jitter: none }},"
            " next: { failed: continue } }"
        )

    def wait(self, name: str, pad: str, depth: int) -> str:
        return f"{pad}- {{ id: {name}, kind: wait, for: {self.draw.choice(['0s', '5s', '20s'])} }}"

    def ask(self, name: str, pad: str, depth: int) -> str:
        return f"{pad}- {{ id: {name}, kind: question, ask: 'Well?', choices: [yes_, no_], next: {{ yes_: continue, no_: continue }} }}"

    def hear(self, name: str, pad: str, depth: int) -> str:
        return f"{pad}- {{ id: {name}, kind: wait, signal: {name}, timeout: 20d, next: {{ expired: continue }} }}"

    def choose(self, name: str, pad: str, depth: int) -> str:
        route = self.draw.choice(["continue", "done", "fail"])
        return f"{pad}- {{ id: {name}, kind: condition, if: '${{ {str(self.draw.random() < 0.5).lower()} }}', next: {{ then: {route}, else: continue }} }}"


def result_of(admission: Admission) -> Result:
    """What an effect gives depends on where it is, and on nothing else."""
    place = f"{admission.scope.path}/{admission.step.id}"
    number = zlib.crc32(place.encode())
    if number % 4 == 0 and not (admission.step.retry and admission.visit.attempts):
        return bad(message=f"no {place}")
    return ok(place)


class MixturePlayer(Player):
    """Plays to the end: answers, signals and lets time pass. ``disturb`` draws what goes wrong on the way."""

    def __init__(self, run_id: int, *, disturb: random.Random | None = None, **options: Any) -> None:
        self.disturb = disturb
        super().__init__(run_id, **options)

    def result(self, name: str) -> Result:
        visit, _, attempt = name.removeprefix("v").partition(".")
        return result_of(self.hand.admissions[int(visit), int(attempt)])

    def play_through(self, *, moves: int = 3_000) -> Run:
        """At most so many moves; the run may be left alive when they are used up."""
        decision = self.step()
        while not decision.draft.ended and moves > 0:
            moves -= 1
            if decision.parks:
                self.go_on()
                decision = self.step()
            elif self.disturb is not None and self.disturb.random() < 0.15:
                self.die()
                decision = self.step()
            elif self.disturb is not None and self.disturb.random() < 0.1 and self.running():
                decision = self.step({self.running()[0]: interrupted()})
            else:
                decision = self.step(self.results())
        return self.run

    def results(self) -> dict[str, Result]:
        names = self.running()
        if not names:
            self.hand.reload()
            return {}
        if self.disturb is None:
            return {names[0]: self.result(names[0])}
        chosen = self.disturb.sample(names, self.disturb.randint(1, len(names)))
        return {name: self.result(name) for name in chosen}

    def go_on(self) -> None:
        """Do what a parked run waits for, and take it again. The player's clock never falls behind the database's."""
        runnable = Run.objects.runnable().filter(pk=self.run_id).exists()
        if not runnable:
            asked = list(Interrupt.objects.filter(run_id=self.run_id, status="open").values_list("visit", flat=True))
            heard = list(Scope.objects.filter(run_id=self.run_id, waits_for="signal").values_list("step", flat=True))
            draw = self.disturb or random.Random(0)
            if asked and (not heard or draw.random() < 0.5):
                self.say(draw.choice(asked))
            elif heard:
                self.send(draw.choice(heard))
        wake_at_ms = Run.objects.values_list("wake_at_ms", flat=True).get(pk=self.run_id)
        if wake_at_ms is not None:
            self.pass_time(max(0, wake_at_ms - unix_ms(self._now)))
        else:
            assert runnable, self.run.reasons
        self.hand = self.take()

    def say(self, visit: int) -> None:
        scope = Interrupt.objects.get(run_id=self.run_id, visit=visit, status="open")
        reply = Reply(voter="ann", recorded_by="ann", decision="yes_", shown_digest=scope.shown_digest)
        answer(run_id=self.run_id, visit=visit, reply=reply, now=self._now, now_ms=0)

    def send(self, name: str) -> None:
        content: dict[str, Any] = {"name": name, "payload": name}
        key = f"{name} {Run.objects.get(pk=self.run_id).revision}"
        send(run_id=self.run_id, kind=ControlKind.SIGNAL, payload=content, request_id=key, sender="ann", now=self._now)


def end_of(text: str, disturb: random.Random | None = None) -> tuple[Any, ...]:
    """How a run of a mixture ended: status, error, output, path."""
    run_id = publish_run(text)
    player = MixturePlayer(run_id, disturb=disturb)
    run = player.play_through()
    return run.status, error_of(run_id), output_of(run_id), path_of(run_id)
