"""Runs that have ended, to be forked: with maps, with questions, with children."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.support.kinds import bad, ok
from tests.support.mixtures import MixturePlayer
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, play
from tests.support.worlds import publish_parent
from workflows.models import Run, Visit

MAPS = workflow(
    """
  - { id: begin, kind: assign, set: { n: "${ vars.n + 1 }" } }
  - id: each
    kind: map
    over: [1, 2, 3, 4]
    as: item
    concurrency: 3
    join: settled
    vars: { twice: { type: integer, value: "${ item * 2 }" } }
    do:
      - { id: read, kind: shell, run: x, access: read, workspace: none, retry: { attempts: 2, wait: 0s, jitter: none } }
      - { id: more, kind: assign, set: { twice: "${ vars.twice + 1 }" } }
      - { id: write, kind: shell, run: x, workspace: none, next: { failed: continue } }
      - id: inner
        kind: parallel
        branches:
          left: [ { id: one, kind: shell, run: x, access: read, workspace: none } ]
          right: [ { id: two, kind: block, use: helper, with: { n: "${ vars.twice }" } } ]
  - { id: first, kind: parallel, join: any, branches: { a: [ { id: fast, kind: shell, run: x, access: read, workspace: none } ], b: [ { id: slow, kind: shell, run: x, access: read, workspace: none } ] } }
  - { id: again, kind: shell, run: x, max_visits: 2, next: { ok: again, exhausted: continue } }
  - { id: last, kind: condition, if: "${ vars.n == 3 }", next: { then: done, else: fail } }
""",
    before="vars: { n: { type: integer, value: 2 } }",
    after="""
output: { n: "${ vars.n }", all: "${ steps.each.counts }" }
blocks:
  helper:
    params: { n: { type: integer } }
    vars: { seen: { type: integer, value: "${ params.n }" } }
    steps:
      - { id: deep, kind: assign, set: { seen: "${ vars.seen * 10 }" } }
    output: { seen: "${ vars.seen }" }
finally: [{ id: tidy, kind: shell, run: x }]
""",
)

PEOPLE = workflow(
    """
  - id: each
    kind: map
    over: [1, 2]
    do:
      - { id: well, kind: question, ask: "Well?", choices: [yes_, no_], next: { yes_: continue, no_: continue } }
      - { id: work, kind: shell, run: x, workspace: none }
  - { id: nap, kind: wait, for: 5s }
  - { id: late, kind: question, ask: "Still?", timeout: 1m, choices: [yes_, no_], next: { yes_: continue, no_: continue, expired: continue } }
  - { id: heard, kind: wait, signal: heard, timeout: 20d, next: { expired: fail } }
  - { id: limited, kind: shell, run: x, limit: { group: g, max: 1 } }
""",
    after='output: "${ steps.heard.output }"',
)

KID = workflow(
    """
  - { id: one, kind: shell, run: x, access: read }
  - { id: two, kind: shell, run: x, access: read }
""",
    name="kid",
    after='output: "${ steps.two.output }"',
)
PARENT = workflow(
    """
  - { id: before, kind: shell, run: x }
  - id: both
    kind: parallel
    branches:
      left: [ { id: call, kind: workflow, ref: kid } ]
      right: [ { id: work, kind: shell, run: x, access: read, workspace: none }, { id: more, kind: assign, set: { n: 2 } } ]
  - { id: again, kind: workflow, ref: kid }
  - { id: after, kind: shell, run: x }
""",
    before="vars: { n: { type: integer, value: 1 } }",
    name="parent",
    after='output: "${ steps.again.output }"',
)


def maps() -> int:
    """A map whose items have bodies in bodies, a decided join, a loop that is exhausted, a closing step."""
    run_id = publish_run(MAPS)
    tried: list[int] = []

    def once(admission: object) -> object:
        tried.append(1)
        return bad() if len(tried) == 1 else ok("read")

    script = {"read": once, "write": lambda one: bad() if one.scope.index == 1 else ok([one.scope.index])}
    play(run_id, script, order=random.Random(3))
    return run_id


def people() -> int:
    """Questions in items, a timer, a question that expires, a signal, a step with a limit."""
    run_id = publish_run(PEOPLE)
    player = MixturePlayer(run_id)
    asked = player.say
    player.say = lambda visit: None if _step(run_id, visit) == "late" else asked(visit)  # type: ignore[method-assign]
    player.play_through()
    return run_id


def _step(run_id: int, visit: int) -> str:
    return str(Visit.objects.get(run_id=run_id, number=visit).step)


def children() -> int:
    """Child runs, one of them beside a branch that goes on meanwhile."""
    run_id = publish_parent(PARENT, KID)
    player = Player(run_id)
    player.play()
    while not player.run.is_final:
        for child in Run.objects.filter(parent_run=run_id).order_by("pk"):
            if not child.is_final:
                play(child.pk)
        player.again()
    return run_id


WORLDS: Mapping[str, Callable[[], int]] = {"maps": maps, "people": people, "children": children}
