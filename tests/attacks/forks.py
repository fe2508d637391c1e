"""Forks in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from tests.attacks.verbs import Call, attacked
from tests.support.kinds import bad
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, play
from tests.support.worlds import publish_parent
from workflows.jsonvalue import store
from workflows.ledger import adopting, forking
from workflows.ledger.publishing import Concurrency
from workflows.models import Run, Visit

KID = workflow("  - { id: work, kind: shell, run: x }", name="kid_of_forks")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid_of_forks }", name="parent_of_forks")
EACH = workflow(
    """
  - id: each
    kind: map
    over: [1, 2]
    do: [ { id: work, kind: shell, run: x, access: read, workspace: none }, { id: ask, kind: question, ask: "Well?" } ]
""",
    before="vars: { n: 1 }",
)


def _forking(origin: int, revision: int, **more: object) -> Call:
    run = Run.objects.get(pk=origin)
    wish = {
        "origin": origin,
        "revision": revision,
        "visit": None,
        "request_id": uuid4().hex,
        "asked": "a",
        "record": {},
        "actor": "ann",
        "started_by": "ann",
        "commit_id": uuid4().hex,
        "now": START,
        "plan_id": run.plan_id,
        "engine_version": run.engine_version,
    }
    return partial(forking.fork, forking.Fork(**{**wish, **more}))  # type: ignore[arg-type]


@attacked(forking.fork)
def forks_a_run_with_edits_and_a_slot() -> Call:
    origin = publish_run(EACH)
    play(origin)
    return _forking(
        origin,
        Run.objects.get(pk=origin).revision,
        params=store({}),
        variables={"": store({"n": 2})},
        concurrency=Concurrency(key=uuid4().hex, max=1),
    )


@attacked(forking.fork)
def forks_a_failed_run_before_its_step() -> Call:
    origin = publish_run(workflow("  - { id: one, kind: shell, run: x }\n  - { id: two, kind: shell, run: x }"))
    play(origin, {"two": bad()})
    cut = Visit.objects.get(run_id=origin, number=2).revision_before
    return _forking(origin, cut, visit=2, outputs={1: store("edited")}, record={"edits": {"outputs": {"v1": "d"}}})


@attacked(forking.fork)
def forks_a_run_with_its_child() -> Call:
    parent = publish_parent(PARENT, KID)
    play(parent)
    return _forking(parent, Run.objects.get(pk=parent).revision, child="fork")


@attacked(adopting.hear_of_adopted)
def tells_a_fork_that_its_origins_child_has_ended() -> Call:
    parent = publish_parent(PARENT, KID)
    play(parent)
    fork = _forking(parent, Run.objects.get(pk=parent).revision, child="take")().run_id
    play(fork)
    child = Run.objects.get(parent_run=parent).pk
    player = Player(child)
    while not player.hand.step({name: player.result(name) for name in player.hand.running}).draft.ended:
        pass
    return partial(adopting.hear_of_adopted, run_id=fork, child_id=child, now=START)
