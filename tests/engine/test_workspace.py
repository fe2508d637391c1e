"""The workspace gate: one writer, or any number of the others, first come first served (ADM.9)."""

from __future__ import annotations

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from tests.support.rows import assert_sound
from workflows.models import Attempt

pytestmark = pytest.mark.django_db(transaction=True)


def branches(*uses: str, access: str = "read") -> Player:
    """A run with a branch for every use; each has one step, named after its place."""
    text = "\n".join(
        f"      b{index}: [{{ id: s{index}, kind: shell, run: x, workspace: {use}, access: {access} }}]"
        for index, use in enumerate(uses)
    )
    player = Player(publish_run(workflow(f"  - id: sides\n    kind: parallel\n    branches:\n{text}")))
    player.step()
    return player


def at_work(player: Player) -> list[str]:
    return sorted(one.step.id for one in player.hand.admissions.values())


def test_any_number_of_steps_that_do_not_write_run_side_by_side() -> None:
    assert at_work(branches("read", "shared", "none", "shared", "read")) == ["s0", "s1", "s2", "s3", "s4"]


def test_a_writer_runs_alone_beside_those_that_do_not_use_the_workspace() -> None:
    player = branches("write", "read", "none", "shared", "write")
    assert at_work(player) == ["s0", "s2"]
    player.settle("s0")
    assert at_work(player) == ["s1", "s2", "s3"]
    player.settle("s1")
    assert at_work(player) == ["s2", "s3"]
    player.settle("s3")
    assert at_work(player) == ["s2", "s4"]
    player.settle()
    assert player.run.status == "succeeded"
    assert_sound()


def test_a_writer_that_waits_goes_before_readers_that_came_later() -> None:
    player = branches("read", "write", "read", "read")
    assert at_work(player) == ["s0"]
    player.settle()
    assert at_work(player) == ["s1"]
    player.settle()
    assert at_work(player) == ["s2", "s3"]


def test_writers_take_their_turns_in_order() -> None:
    player = branches("write", "write", "write")
    order = []
    while player.hand.admissions:
        order += at_work(player)
        player.settle()
    assert order == ["s0", "s1", "s2"]
    assert_sound()


def test_the_window_of_a_writer_ends_with_its_settlement_whatever_it_is() -> None:
    player = branches("write", "write")
    player.step({"v2.1": bad()})
    assert at_work(player) == ["s1"]


def test_what_others_change_meanwhile_does_not_open_the_gate() -> None:
    """A driver that reads the rows again still knows what runs in its process."""
    player = branches("write", "read", "write")
    player.hand.reload()
    player.step()
    assert at_work(player) == ["s0"]
    player.hand.reload()
    player.settle("s0")
    assert at_work(player) == ["s1"]
    player.hand.reload()
    player.settle("s1")
    assert at_work(player) == ["s2"]


def test_who_waits_at_the_gate_has_no_rows_and_keeps_no_retry() -> None:
    player = branches("write", "read")
    assert list(Attempt.objects.filter(run_id=player.run_id).values_list("visit", flat=True)) == [2]
    assert player.run.visits == 2


def test_a_retry_waits_for_its_turn_too() -> None:
    text = workflow(
        """
  - id: sides
    kind: parallel
    branches:
      a: [{ id: s0, kind: shell, run: x, workspace: write, retry: { attempts: 2, wait: 1s, jitter: none } }]
      b: [{ id: s1, kind: shell, run: x, workspace: write }]
"""
    )
    player = Player(publish_run(text))
    player.step()
    player.step({"v2.1": bad()})
    assert at_work(player) == ["s1"]
    player.pass_time(1_000)
    player.step()
    assert at_work(player) == ["s1"]
    player.settle()
    assert at_work(player) == ["s0"]
    player.step({"v2.2": ok()})
    assert player.run.status == "succeeded"
    assert_sound()


def test_the_gate_opens_when_its_writer_died() -> None:
    player = branches("write", "read", access="write")
    player.die()
    player.step()
    assert at_work(player) == ["s1"]
    player.settle()
    assert player.run.status == "blocked"
    assert_sound()


def test_maps_of_shell_steps_run_side_by_side() -> None:
    text = workflow("  - { id: each, kind: map, over: '${ [0,1,2,3] }', do: [{ id: s, kind: shell, run: x }] }")
    player = Player(publish_run(text))
    player.step()
    assert len(player.hand.admissions) == 4
