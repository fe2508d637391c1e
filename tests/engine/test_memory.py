"""A driver's facts: read once, kept up with every commit, equal to what another driver would read (docs/architecture.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hand import Hand, expire
from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, workflow
from tests.support.tap import counted
from workflows.engine.memory import Memory
from workflows.engine.payloads import Payloads
from workflows.jsonvalue import store
from workflows.ledger.publishing import store_payloads
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Payload

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = workflow(
    """
  - { id: one, kind: shell, run: make, access: read, max_visits: 500, next: { ok: count, exhausted: done } }
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" } }
  - { id: two, kind: shell, run: make, access: read, retry: { attempts: 2, wait: 0s }, next: { ok: one } }
""",
    before="vars: { n: { type: integer, value: 0 } }",
)


def seen_by(memory: Memory) -> dict[str, Any]:
    """Everything a decision may look at."""
    scopes = dict(memory.scopes())
    visits = [scope.visit for scope in scopes.values() if scope.visit is not None]
    return {
        "state": memory.state,
        "numbers": (memory.revision, memory.next_event, memory.visits),
        "scopes": scopes,
        "variables": {path: dict(memory.variables(path)) for path in scopes},
        "visits": {number: memory.visit(number) for number in visits},
        "attempts": {number: memory.attempts(number) for number in visits},
        "settled": {step: memory.settled("", step) for step in ("one", "count", "two")},
        "refused": {step: memory.refused("", step) for step in ("one", "count", "two")},
    }


def test_memory_after_every_commit_equals_what_is_read_from_the_rows() -> None:
    hand = Hand(publish_run(TEXT))
    hand.step()
    for turn in range(12):
        (name,) = hand.running
        hand.step({name: bad() if turn in (1, 6) else ok({"turn": turn})})
        fresh = Memory(hand.memory.identity, epoch=1, worker="hand")
        assert seen_by(hand.memory) == seen_by(fresh)


def test_a_takeover_reads_the_same_number_of_rows_whatever_the_history() -> None:
    """docs/architecture.md: nothing reads O(history)."""
    run_id = publish_run(TEXT)
    hand = Hand(run_id)
    hand.step()
    counts = []
    for turn in range(60):
        (name,) = hand.running
        hand.step({name: ok(turn)})
        if turn in (5, 59):
            with counted() as seen:
                seen_by(Memory(hand.memory.identity, epoch=1, worker="hand"))
            counts.append(len(seen))
    assert counts[0] == counts[1] <= 12


def test_a_rolled_back_decision_leaves_memory_as_it_was() -> None:
    run_id = publish_run(TEXT)
    hand = Hand(run_id)
    hand.step()
    before = seen_by(hand.memory)
    hand.decide({"v1.1": ok(1)})
    assert seen_by(hand.memory) == before
    expire(run_id)
    with pytest.raises(Exception, match="the lease of epoch 1 has ended"):
        hand.step({"v1.1": ok(1)})
    assert seen_by(hand.memory) == before


def test_payloads_are_read_once_and_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [store("x" * 100 + str(number)) for number in range(5)]
    ledger_transaction(store_payloads)(values)
    monkeypatch.setattr("workflows.engine.payloads.CACHE_BYTES", 3 * values[0].size)
    payloads = Payloads()
    for value in values[:3]:
        payloads.get(value.digest)
    with counted() as seen:
        payloads.get(values[0].digest)
    assert seen == []
    payloads.get(values[3].digest)
    with counted() as seen:
        payloads.get(values[0].digest)
        payloads.get(values[1].digest)
    assert len(seen) == 1
    assert payloads.get(values[1].digest) == values[1].value()


def test_a_payload_that_is_missing_is_named() -> None:
    assert Payload.objects.count() == 0
    with pytest.raises(LookupError, match=r"^payload abc is missing$"):
        Payloads().get("abc")
