"""Limits: shared places of attempts over all runs, first come first served, always given back (MON.10)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.driving import driver_with
from tests.support.hand import expire
from tests.support.kinds import bad, kinds_with, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import assert_sound, events_of
from tests.support.worlds import Gauge, drive_all, sweep
from workflows.engine import recovery
from workflows.engine.draft import Draft
from workflows.ledger.advance import advance
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Lease, Run, Slot
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)


def limited(*, max: int = 1, more: str = "", group: str = "g", name: str = "demo") -> str:
    return workflow(
        f"  - {{ id: work, kind: shell, run: x, limit: {{ group: {group}, max: {max} }}{more} }}", name=name
    )


def mapped(items: int, *, max: int, concurrency: int = 8) -> str:
    return workflow(
        f"""
  - id: each
    kind: map
    over: ${{ {list(range(items))} }}
    concurrency: {concurrency}
    do: [{{ id: work, kind: shell, run: x, limit: {{ group: g, max: {max} }} }}]
""",
        after='output: "${ steps.each.counts.ok }"',
    )


def holders() -> list[tuple[int, str]]:
    """(run, scope) of every place that is given, in order of the places."""
    given = Slot.objects.filter(number__isnull=False).order_by("number")
    return list(given.values_list("run_id", "scope"))


def line() -> list[tuple[int, str]]:
    return list(Slot.objects.filter(number=None).order_by("id").values_list("run_id", "scope"))


def at_work(text: str) -> Player:
    """A run whose limited step runs."""
    player = Player(publish_run(text))
    stand(player)
    assert player.running_in() == ["work"]
    return player


def stand(player: Player) -> None:
    """Decide until the run runs an effect, has ended, or has only to wait."""
    while True:
        if not Lease.objects.get(run_id=player.run_id).expires_ms:
            if not Run.objects.runnable().filter(pk=player.run_id).exists():
                return
            player.hand = player.take()
        decision = player.step()
        if player.hand.admissions or decision.draft.ended:
            return
        if not decision.parks:
            player.hand.reload()


def cancel(run_id: int) -> None:
    now = datetime.now(UTC)
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=now)


def test_a_step_takes_its_place_before_it_is_admitted() -> None:
    player = Player(publish_run(limited()))
    player.step()
    assert events_of(player.run_id) == ["run_started", "slot_awaited", "run_waiting", "slot_given"]
    assert holders() == [(player.run_id, "")]
    assert player.run.visits == 0
    player.hand = player.take()
    player.step()
    assert events_of(player.run_id)[4:] == ["slot_taken", "step_started"]
    player.settle()
    assert (holders(), line()) == ([], [])
    assert_sound()


def test_places_are_given_first_come_first_served_over_several_runs() -> None:
    first = at_work(limited())
    others = [Player(publish_run(limited())) for _ in range(3)]
    for other in others:
        assert other.step().parks
        assert other.run.status == "waiting"
    assert line() == [(other.run_id, "") for other in others]
    for current, following in zip([first, *others], others, strict=False):
        current.settle()
        assert holders() == [(following.run_id, "")]
        following.hand = following.take()
        following.step()
        assert following.running_in() == ["work"]
    others[-1].settle()
    assert (holders(), line()) == ([], [])
    assert_sound()


def test_never_more_attempts_than_the_limit_run_at_once(tmp_path: Path) -> None:
    text = mapped(6, max=2)
    runs = [publish_run(text) for _ in range(3)]
    gauge = Gauge(ok(), hold_s=0.1)  # longer than it takes to admit the next one
    drive_all(tmp_path, drivers=3, work=gauge, limit_s=60)
    assert gauge.most["work"] == 2
    assert [output_of(run) for run in runs] == [6, 6, 6]
    assert Slot.objects.count() == 0
    assert_sound()


def test_a_driver_waits_for_no_poll_when_its_own_run_frees_a_place(tmp_path: Path) -> None:
    """docs/architecture.md: told at once by the process that accepted it."""
    run_id = publish_run(mapped(8, max=1))
    began = datetime.now(UTC)
    with driver_with(kinds_with(work=ok()), workspaces=tmp_path, poll_ms=20_000) as driver:
        while Run.objects.runnable().filter(pk=run_id).exists():
            driver.drive(run_id)
    assert output_of(run_id) == 8
    assert (datetime.now(UTC) - began).total_seconds() < 15


def test_each_group_has_its_own_places() -> None:
    at_work(limited(group="a"))
    at_work(limited(group="b"))
    assert len(holders()) == 2


def test_a_run_that_accepts_fewer_holders_waits_and_keeps_its_place_in_line() -> None:
    """Each entry names the max it accepts; the first that does not fit keeps the others waiting."""
    first, second = at_work(limited(max=3)), at_work(limited(max=3))
    picky = Player(publish_run(limited(max=1)))
    picky.step()
    generous = Player(publish_run(limited(max=3)))
    generous.step()
    assert line() == [(picky.run_id, ""), (generous.run_id, "")]
    first.settle()
    assert line() == [(picky.run_id, ""), (generous.run_id, "")]
    second.settle()
    assert (picky.run_id, "") in holders()


def test_a_retry_gives_its_place_back_and_stands_in_line_again() -> None:
    text = limited(more=", retry: { attempts: 2, wait: 10s, jitter: none }")
    player, other = at_work(text), Player(publish_run(limited()))
    other.step()
    player.step({"v1.1": bad()})
    assert holders() == [(other.run_id, "")]
    player.pass_time(10_000)
    player.hand = player.take()
    assert player.step().parks
    assert (player.run.status, line()) == ("waiting", [(player.run_id, "")])
    other.hand = other.take()
    other.step()
    other.settle()
    player.hand = player.take()
    player.step()
    player.settle()
    assert (player.run.status, Slot.objects.count()) == ("succeeded", 0)
    assert_sound()


@pytest.mark.parametrize("access", ["read", "write"])
def test_an_interrupted_attempt_gives_its_place_back(access: str) -> None:
    player, other = at_work(limited(more=f", access: {access}")), Player(publish_run(limited()))
    other.step()
    player.die()
    player.step()
    assert holders() == [(other.run_id, "")]
    assert line() == ([(player.run_id, "")] if access == "read" else [])
    other.hand = other.take()
    other.step()
    other.settle()
    if access == "write":
        assert player.run.status == "blocked"
        told = Reconciliation(decision="did_not", actor="ann", reason="r")
        reconcile(run_id=player.run_id, visit=1, reconciliation=told, now=START)
    player.hand = player.take()
    stand(player)
    player.settle()
    assert (player.run.status, Slot.objects.count()) == ("succeeded", 0)
    assert_sound()


def test_a_cancelled_attempt_gives_its_place_back_when_it_has_ended() -> None:
    player, other = at_work(limited()), Player(publish_run(limited()))
    other.step()
    cancel(player.run_id)
    player.hand.reload()
    player.step()
    assert holders() == [(player.run_id, "")]
    player.step({"v1.1": bad("cancelled", "stopped")})
    assert holders() == [(other.run_id, "")]
    assert_sound()


def test_who_waits_in_line_and_is_cancelled_leaves_it() -> None:
    first, second, third = at_work(limited()), Player(publish_run(limited())), Player(publish_run(limited()))
    second.step()
    third.step()
    cancel(second.run_id)
    assert second.again().status == "cancelled"
    assert line() == [(third.run_id, "")]
    first.settle()
    assert holders() == [(third.run_id, "")]
    assert_sound()


def test_who_has_a_place_and_is_cancelled_before_using_it_gives_it_back() -> None:
    first, second, third = at_work(limited()), Player(publish_run(limited())), Player(publish_run(limited()))
    second.step()
    third.step()
    first.settle()
    assert holders() == [(second.run_id, "")]
    cancel(second.run_id)
    assert second.again().status == "cancelled"
    assert holders() == [(third.run_id, "")]


def test_a_place_that_was_taken_and_not_used_is_given_back_with_its_scope() -> None:
    """A scope that got its place waits for the workspace when its container is stopped."""
    text = workflow(
        """
  - id: sides
    kind: parallel
    timeout: 1m
    next: { timed_out: continue }
    branches:
      writes: [{ id: write, kind: shell, run: x, workspace: write }]
      limited: [{ id: work, kind: shell, run: x, workspace: shared, limit: { group: g, max: 1 } }]
"""
    )
    player = Player(publish_run(text))
    player.step()
    player.hand.reload()
    player.step()
    assert (player.running_in(), holders()) == (["sides[0]/write"], [(player.run_id, "sides[1]")])
    player.hand.reload()
    player.pass_time(60_000)
    player.step()
    player.step({player.attempt_in("sides[0]"): bad("cancelled", "stopped")})
    assert (player.run.status, Slot.objects.count()) == ("succeeded", 0)
    assert_sound()


def test_a_place_survives_a_takeover_between_place_and_admission() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    branches:
      writes: [{ id: write, kind: shell, run: x, workspace: write, access: read }]
      limited: [{ id: work, kind: shell, run: x, workspace: shared, limit: { group: g, max: 1 } }]
"""
    )
    player = Player(publish_run(text))
    player.step()
    player.hand.reload()
    player.step()
    assert holders() == [(player.run_id, "sides[1]")]
    player.die()
    player.step()
    while player.hand.admissions:
        player.settle()
    assert (player.run.status, Slot.objects.count()) == ("succeeded", 0)
    assert_sound()


def test_a_refused_entry_gives_its_place_back() -> None:
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1] }
    join: settled
    do: [{ id: work, kind: shell, run: x, limit: { group: g, max: 1 } }]
""",
        before="budget: { visits: 2 }",
        after='output: "${ steps.each.counts }"',
    )
    player = Player(publish_run(text))
    stand(player)
    player.settle()
    stand(player)
    assert output_of(player.run_id) == {"ok": 1, "failed": 1, "cancelled": 0, "not_started": 0, "total": 2}
    assert Slot.objects.count() == 0
    assert_sound()


def test_a_poisoned_run_gives_its_places_back() -> None:
    player, other = at_work(limited()), Player(publish_run(limited()))
    other.step()
    hand = player.hand
    draft = Draft(hand.plan, hand.memory, hand.kinds, now=hand.now, new_id=hand.new_id)
    recovery.poison(draft, 5)
    advance(draft.batch(commit_id=hand.new_id(), parks=True, release=True, wake_at_ms=None))
    assert holders() == []
    assert sweep() >= 1
    assert holders() == [(other.run_id, "")]
    assert_sound(player.run_id)


def test_what_a_crash_kept_from_the_next_in_line_is_repeated_by_the_sweep() -> None:
    first, second = at_work(limited()), Player(publish_run(limited()))
    second.step()
    first.hand.step({"v1.1": ok()})  # committed; its consequences die with the driver
    assert (holders(), line()) == ([], [(second.run_id, "")])
    assert sweep() >= 1
    assert holders() == [(second.run_id, "")]
    assert Run.objects.runnable().filter(pk=second.run_id).exists()
    second.hand = second.take()
    second.step()
    assert second.running_in() == ["work"]


def test_a_dead_holder_keeps_its_place_until_somebody_drives_it_on() -> None:
    player, other = at_work(limited()), Player(publish_run(limited()))
    other.step()
    expire(player.run_id)
    sweep()
    assert holders() == [(player.run_id, "")]
    player.hand = player.take()
    player.step()
    assert holders() == [(other.run_id, "")]


def test_waiting_for_a_place_is_no_part_of_the_timeout_of_a_step() -> None:
    """docs/format.md, Timeouts"""
    first, second = at_work(limited()), Player(publish_run(limited(more=", timeout: 1s")))
    second.step()
    assert second.run.wake_at_ms is None
    second.pass_time(60_000)
    first.settle()
    second.hand = second.take()
    second.step()
    assert second.running_in() == ["work"]


def test_a_run_that_got_its_place_is_told_once_while_nobody_drives_it() -> None:
    """MON.10: every worker sweeps every few seconds, and the run may be held for days."""
    first, second = at_work(limited()), Player(publish_run(limited(name="other")))
    stand(second)
    assert line() == [(second.run_id, "")]
    first.step({"v1.1": ok()})
    assert holders() == [(second.run_id, "")]

    told = [sweep() for _ in range(3)]

    assert told == [0, 0, 0]
    assert events_of(second.run_id).count("slot_given") == 1
    stand(second)
    assert second.running_in() == ["work"]
    assert_sound()
