"""Two drivers on one run: one winner each time, nothing written by the loser (docs/architecture.md, LEASE 1, 4)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.processes import run_in_threads
from tests.races.observing import TIMEOUT_S
from tests.races.rounds import ROUNDS
from tests.support.driving import driver_with
from tests.support.hand import ENGINE_VERSIONS, TTL_MS, Hand, expire
from tests.support.kinds import Scripted, kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.engine.contract import EffectContext, Result
from workflows.engine.driver import Driver, Left
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.advance import advance
from workflows.models import Attempt, Run

pytestmark = pytest.mark.django_db(transaction=True)


TEXT = workflow("""
  - { id: one, kind: shell, run: make }
  - { id: two, kind: shell, run: make }
""")


def test_fifty_rounds_of_two_drivers_have_one_winner_each(tmp_path: Path) -> None:
    """LEASE.1: the winner's first effect does not return before the loser has been refused."""
    refused = threading.Event()

    def first(context: EffectContext) -> Result:
        assert refused.wait(TIMEOUT_S)
        return ok("done")

    scripted = Scripted(one=first)
    kinds = kinds_with(scripted)
    with (
        driver_with(kinds, workspaces=tmp_path, owner="left") as left,
        driver_with(kinds, workspaces=tmp_path, owner="right") as right,
    ):
        for _ in range(ROUNDS):
            refused.clear()
            scripted.calls.clear()
            run_id = publish_run(TEXT)

            def drive(driver: Driver, run_id: int = run_id) -> Left:
                try:
                    return driver.drive(run_id)
                except Refusal:
                    refused.set()
                    raise

            answers = run_in_threads(lambda: drive(left), lambda: drive(right))
            won = [answer for answer in answers if answer is Left.ENDED]
            lost = [answer for answer in answers if isinstance(answer, Refusal)]
            assert (len(won), [refusal.code for refusal in lost]) == (1, ["lease.held"]), answers
            assert scripted.executed == ["one v1", "two v2"]
            assert set(Attempt.objects.filter(run_id=run_id).values_list("worker", flat=True)) == {
                "left" if answers[0] is Left.ENDED else "right"
            }
            assert Run.objects.values_list("lease_epoch", flat=True).get(pk=run_id) == 1
            assert_sound(run_id)


def test_fifty_takeovers_of_a_dead_lease_at_once_have_one_winner_each() -> None:
    """LEASE.3: one recovery, and the losers are told who holds the run."""
    for _ in range(ROUNDS):
        run_id = publish_run(TEXT)
        Hand(run_id, owner="dead").step()
        expire(run_id)

        def take(owner: str, run_id: int = run_id) -> leases.Grant:
            return leases.acquire(run_id=run_id, owner=owner, ttl_ms=TTL_MS, engine_versions=ENGINE_VERSIONS)

        answers = run_in_threads(lambda: take("a"), lambda: take("b"), lambda: take("c"))
        grants = [answer for answer in answers if isinstance(answer, leases.Grant)]
        lost = [answer for answer in answers if isinstance(answer, Refusal)]
        assert ([grant.epoch for grant in grants], len(lost)) == ([2], 2), answers
        for refusal in lost:
            assert refusal.message.startswith(f"Run {run_id} is driven by {grants[0].owner} until ")
        assert events_of(run_id).count("lease_recovered") == 1
        assert_sound(run_id)


def test_a_zombie_and_its_successor_write_at_the_same_instant_and_only_one_counts() -> None:
    """LEASE.4, LEASE.7, SET.2"""
    for _ in range(ROUNDS):
        run_id = publish_run(TEXT)
        zombie = Hand(run_id, owner="zombie")
        zombie.step()
        late = zombie.batch(zombie.decide({"v1.1": ok("zombie")}))
        expire(run_id)
        successor = Hand(run_id, owner="successor")
        batch = successor.batch(successor.decide())
        answers = run_in_threads(lambda late=late: advance(late), lambda batch=batch: advance(batch))
        assert answers[1] is None
        assert isinstance(answers[0], Refusal)
        assert answers[0].code == "lease.lost"
        assert list(Attempt.objects.filter(run_id=run_id).values_list("status", flat=True)) == ["interrupted"]
        assert_sound(run_id)
