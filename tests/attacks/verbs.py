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
from tests.support.plans import START, publication, publish_run, store_plan, workflow
from tests.support.players import Player
from tests.support.worlds import publish_in_line
from workflows import ledger
from workflows.ledger import (
    controlling,
    leases,
    publishing,
    transactions,
)
from workflows.ledger.advance import advance, advance_plainly
from workflows.ledger.publishing import Concurrency
from workflows.statuses import ControlKind

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


def begun(text: str) -> Hand:
    hand = Hand(publish_run(text))
    hand.step()
    return hand


def say(run_id: int, kind: ControlKind, **payload: Any) -> Call:
    return partial(controlling.send, run_id=run_id, kind=kind, payload=payload, request_id="r", sender="bob", now=START)


def blocked(run_id: int | None = None) -> Player:
    """A run whose write was interrupted."""
    player = Player(run_id or publish_run(ONE))
    player.step()
    player.die()
    player.step()
    return player


def in_line(group: str) -> int:
    """A run whose step waits for the place of a group."""
    hand = begun(workflow(LIMITED.format(group)))
    return hand.run_id
