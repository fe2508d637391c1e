"""Rates of limits: so many starts in any window of the length, over all runs, first come first served (MON.11)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.processes import Processes
from tests.support.driving import driver_with
from tests.support.kinds import bad, kinds_with, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import assert_sound, events_of
from tests.support.worlds import sweep
from workflows.clock import database_now_ms
from workflows.engine.scheduler import Decision
from workflows.ledger import slots
from workflows.ledger.controlling import send
from workflows.ledger.side_rows import note_starts
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, LimitGroup, LimitStart, Run, Slot
from workflows.models.slot import LINE_READ, line_up
from workflows.statuses import ControlKind, SlotKind

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = 60_000


def rated(rate: str = "1/1m", *, more: str = "", max: str = "", name: str = "demo") -> str:
    limit = f"{{ group: g, rate: {rate}{max} }}"
    return workflow(f"  - {{ id: work, kind: shell, run: x, limit: {limit}{more} }}", name=name)


def begin(text: str) -> Player:
    """A run that has reached its step, at work if it was let."""
    player = Player(publish_run(text))
    player.step()
    if Slot.objects.filter(run_id=player.run_id, number__isnull=False).exists():
        start(player)
    return player


def start(player: Player) -> None:
    player.hand = player.take()
    player.step()
    assert player.running_in() == ["work"]


def pass_on(later_ms: int = 0) -> list[int]:
    """The runs that get a place so long after the last start."""
    latest = LimitStart.objects.order_by("-started_ms").values_list("started_ms", flat=True)[0]
    told = slots.pass_on(kind=SlotKind.LIMIT, name="g", now=START, now_ms=latest + later_ms)
    return [one.run_id for one in told]


def turn_of(player: Player) -> int | None:
    """Milliseconds between the last start and the moment that a run in line was told."""
    latest = LimitStart.objects.order_by("-started_ms").values_list("started_ms", flat=True)[0]
    due: int | None = Slot.objects.values_list("due_ms", flat=True).get(run_id=player.run_id)
    return None if due is None else due - latest


def test_the_first_in_line_is_told_its_moment_and_woken_then() -> None:
    """MON.11"""
    first, second = begin(rated()), begin(rated())
    assert first.running_in() == ["work"]
    assert second.run.status == "waiting"
    assert turn_of(second) == MINUTE
    assert second.run.wake_at_ms == Slot.objects.get(run_id=second.run_id).due_ms
    assert events_of(second.run_id) == ["run_started", "slot_awaited", "run_waiting", "slot_due"]
    first.settle()
    assert turn_of(second) == MINUTE
    assert_sound()


def test_nobody_starts_before_the_window_has_passed_also_when_the_others_have_ended() -> None:
    first, second = begin(rated()), begin(rated())
    first.settle()
    assert pass_on(MINUTE - 1) == []
    assert pass_on(MINUTE) == [second.run_id]
    start(second)
    second.settle()
    assert (second.run.status, Slot.objects.count()) == ("succeeded", 0)
    assert_sound()


def test_a_place_that_was_given_and_not_used_keeps_the_window_full() -> None:
    """A worker may take its time between the place and the start; the others still start one window after it."""
    begin(rated()).settle()
    second, third = begin(rated()), begin(rated())
    assert pass_on(MINUTE) == [second.run_id]
    told = slots.pass_on(kind=SlotKind.LIMIT, name="g", now=START, now_ms=database_now_ms() + 10 * MINUTE)
    assert told == []
    assert Slot.objects.get(run_id=third.run_id).due_ms is None
    start(second)
    assert turn_of(third) == MINUTE
    assert_sound()


def test_so_many_start_at_once_and_the_next_follows_the_first_of_them() -> None:
    players = [begin(rated("3/1m")) for _ in range(4)]
    assert [player.running_in() for player in players] == [["work"], ["work"], ["work"], []]
    first, latest = (
        LimitStart.objects.order_by(order).values_list("started_ms", flat=True)[0]
        for order in ("started_ms", "-started_ms")
    )
    assert turn_of(players[3]) == first + MINUTE - latest


def test_who_stands_behind_learns_its_moment_when_it_is_the_first() -> None:
    _, second, third = begin(rated()), begin(rated()), begin(rated())
    assert turn_of(third) is None
    assert third.run.wake_at_ms is None
    send(run_id=second.run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=datetime.now(UTC))
    assert second.again().status == "cancelled"
    assert turn_of(third) == MINUTE
    assert_sound()


def test_a_retry_is_a_start() -> None:
    """MON.11"""
    player = begin(rated(more=", retry: { attempts: 2, wait: 10s, jitter: none }"))
    player.step({"v1.1": bad()})
    player.pass_time(10_000)
    player.hand = player.take()
    assert player.step().parks
    assert turn_of(player) == MINUTE
    assert pass_on(MINUTE) == [player.run_id]
    start(player)
    assert LimitStart.objects.count() >= 1
    player.settle()
    assert player.run.status == "succeeded"
    assert_sound()


def test_an_attempt_that_repeats_a_crashed_one_is_a_start() -> None:
    """MON.11"""
    player = begin(rated(more=", access: read"))
    player.die()
    player.step()
    assert player.run.status == "waiting"
    assert turn_of(player) == MINUTE
    assert pass_on(MINUTE) == [player.run_id]
    start(player)
    assert Attempt.objects.filter(run_id=player.run_id).count() == 2
    assert_sound()


def test_steps_of_one_group_each_keep_their_own_rate() -> None:
    """Starts of the whole group count for each; who accepts fewer waits longer, and keeps its place in line."""
    begin(rated("2/1m"))
    strict = begin(rated("1/1m"))
    generous = begin(rated("2/1m"))
    assert (strict.run.status, generous.run.status) == ("waiting", "waiting")
    assert pass_on(MINUTE) == [strict.run_id, generous.run_id]


def test_a_rate_and_a_number_of_places_hold_both() -> None:
    first, second = begin(rated("5/1m", max=", max: 1")), begin(rated("5/1m", max=", max: 1"))
    assert (second.run.status, turn_of(second)) == ("waiting", None)
    first.settle()
    start(second)
    assert_sound()


def test_starts_count_from_when_the_first_rate_stands_in_line() -> None:
    plain = workflow("  - { id: work, kind: shell, run: x, limit: { group: g, max: 9 } }")
    begin(plain)
    assert LimitStart.objects.count() == 0
    first = begin(rated("2/1m"))
    assert first.running_in() == ["work"]
    begin(plain)
    assert LimitStart.objects.count() == 2
    third = begin(rated("2/1m"))
    assert third.run.status == "waiting"


def test_a_held_run_keeps_its_place_in_line_and_takes_no_turn_itself() -> None:
    """CTL.4"""
    _, second = begin(rated()), begin(rated())
    decision = say(second, ControlKind.PAUSE)
    assert (second.run.status, decision.waits_until_ms) == ("paused", None)


def test_a_held_run_is_passed_over_in_line_and_comes_first_again_when_it_goes_on() -> None:
    """CTL.4, MON.10"""
    first, second, third, fourth = (begin(rated(max=", max: 1")) for _ in range(4))
    say(second, ControlKind.PAUSE)
    first.settle()
    assert pass_on(MINUTE) == [third.run_id]
    say(second, ControlKind.RESUME)
    start(third)
    third.settle()
    assert pass_on(MINUTE) == [second.run_id]
    assert Slot.objects.get(run_id=fourth.run_id).number is None


@pytest.mark.unsound
def test_a_line_of_many_is_read_no_further_than_it_moves() -> None:
    """MON.10: the sweep and whoever gives a place read the heads of lines."""
    first = begin(rated(max=", max: 1"))
    crowd(LINE_READ * 5)
    with CaptureQueriesContext(connection) as queries:
        assert slots.groups_with_room() == []
        pass_on(MINUTE)
    read = [query["sql"] for query in queries if "workflows_slot" in query["sql"] and "SELECT" in query["sql"]]
    assert len(read) == 5, read  # heads, their rows, places taken; places taken, the beginning of the line
    assert any(f"LIMIT {LINE_READ}" in sql for sql in read)
    assert first.running_in() == ["work"]


@ledger_transaction
def crowd(number: int) -> None:
    """So many more in the line."""
    one = {"kind": SlotKind.LIMIT, "name": "g", "max": 1, "starts": 1, "per_ms": MINUTE, "entered_ms": 1}
    run_id = Run.objects.values_list("pk", flat=True).get()
    Slot.objects.bulk_create([Slot(run_id=run_id, scope=f"each[{index}]", **one) for index in range(number)])


def say(player: Player, kind: ControlKind) -> Decision:
    """Send a message to a run, and let a driver carry it out."""
    send(run_id=player.run_id, kind=kind, payload={"reason": "r"}, request_id=str(kind), sender="ann", now=START)
    player.hand = player.take()
    return player.step()


def test_what_no_window_reaches_back_to_is_forgotten() -> None:
    first = begin(rated())
    first.settle()
    begin(rated())
    assert LimitStart.objects.count() == 1
    pass_on(MINUTE)
    assert LimitStart.objects.count() == 0
    assert LimitGroup.objects.get(name="g").window_ms == MINUTE


def test_the_sweep_gives_what_is_due_when_nobody_else_does() -> None:
    first, second = begin(rated("1/1s")), begin(rated("1/1s"))
    assert sweep() == 0
    put_back(1_000)
    assert sweep() >= 1
    assert Slot.objects.get(run_id=second.run_id).number is not None
    assert first.running_in() == ["work"]


@ledger_transaction
def put_back(milliseconds: int) -> None:
    """As if so much time had passed."""
    for row in LimitStart.objects.all():
        LimitStart.objects.filter(pk=row.pk).update(started_ms=row.started_ms - milliseconds)
    for slot in Slot.objects.exclude(due_ms=None):
        Slot.objects.filter(pk=slot.pk).update(due_ms=slot.due_ms - milliseconds)


# ---- with real drivers and time ---------------------------------------------------------------------------------------


def most_in_a_window(moments: Sequence[int], window_ms: int) -> int:
    """The largest number of moments in any half-open window of this length."""
    return max(sum(1 for other in moments if first <= other < first + window_ms) for first in moments)


def starts_of(run_ids: Sequence[int]) -> list[int]:
    rows = Attempt.objects.filter(run_id__in=run_ids).values_list("started_at", flat=True)
    return sorted(int(at.timestamp() * 1000) for at in rows)


def test_a_driver_goes_on_at_the_moment_of_the_rate_without_a_poll(tmp_path: Path) -> None:
    """MON.11: it sleeps until the moment, in a lease that it keeps or by the moment at which the run is woken."""
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [0, 1, 2, 3, 4] }
    concurrency: 5
    do: [{ id: work, kind: shell, run: x, limit: { group: g, rate: 2/1s } }]
""",
        after='output: "${ steps.each.counts.ok }"',
    )
    run_id = publish_run(text)
    with driver_with(kinds_with(work=ok()), workspaces=tmp_path, poll_ms=20_000) as driver:
        deadline = datetime.now(UTC) + timedelta(seconds=30)
        while not Run.objects.get(pk=run_id).is_final and datetime.now(UTC) < deadline:
            if Run.objects.runnable().filter(pk=run_id).exists():
                driver.drive(run_id)
    assert output_of(run_id) == 5
    starts = starts_of([run_id])
    assert most_in_a_window(starts, 1_000) == 2
    assert 2_000 <= starts[-1] - starts[0] < 12_000
    assert_sound()


def test_several_processes_keep_one_rate(processes: Processes, tmp_path: Path) -> None:
    """MON.11: over all workers"""
    text = rated("3/1s", name="quick").replace("run: x", "run: 'true'")
    runs = [publish_run(text) for _ in range(8)]
    env = {"WAYPOST_VAR": str(tmp_path)}
    workers = [processes.start("run_worker", "--burst", env=env) for _ in range(3)]
    for worker in workers:
        worker.communicate(timeout=60)
    assert set(Run.objects.filter(pk__in=runs).values_list("status", flat=True)) == {"succeeded"}
    assert most_in_a_window(starts_of(runs), 1_000) == 3
    assert_sound()


# ---- any sequence -----------------------------------------------------------------------------------------------------

_MOVES = some.lists(
    some.one_of(
        some.tuples(some.just("join"), some.sampled_from([(1, 5), (2, 5), (3, 10)])),
        some.tuples(some.just("start"), some.integers(0, 9)),
        some.tuples(some.just("end"), some.integers(0, 9)),
        some.tuples(some.just("pass"), some.integers(1, 7)),
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(moves=_MOVES)
def test_no_window_ever_holds_more_starts_than_its_rate(moves: list[tuple[str, object]]) -> None:
    """MON.11: whatever the order of joining, starting, ending and passing time; and the line keeps its order."""
    clear()
    now_ms, joined, given_order = 1_000_000, 0, []
    rates: dict[int, tuple[int, int]] = {}
    started: list[tuple[int, int]] = []
    for move, what in moves:
        if move == "join":
            joined += 1
            rates[joined] = what  # type: ignore[assignment]
            join(joined, *rates[joined], now_ms)
        elif move == "pass":
            now_ms += int(str(what))
        else:
            held = list(
                Slot.objects.filter(number__isnull=False, started_ms__isnull=move == "start").order_by("number")
            )
            if held and move == "start":
                slot = held[int(str(what)) % len(held)]
                began(slot, now_ms)
                started.append((now_ms, slot.run_id))
            elif held:
                leave(held[int(str(what)) % len(held)])
        given_order += [one.run_id for one in give(now_ms) if one.due_ms is None]
    assert given_order == sorted(given_order)
    for place, (at_ms, run) in enumerate(started):
        starts, per_ms = rates[run]
        before = [other for other, _ in started[: place + 1] if other > at_ms - per_ms]
        assert len(before) <= starts
    assert all(earlier <= later for (earlier, _), (later, _) in pairwise(started))
    clear()


@ledger_transaction
def clear() -> None:
    Slot.objects.all().delete()
    LimitStart.objects.all().delete()
    LimitGroup.objects.all().delete()


@ledger_transaction
def join(run: int, starts: int, per_ms: int, now_ms: int) -> None:
    line_up(kind=SlotKind.LIMIT, name="g", max=0, starts=starts, per_ms=per_ms, run_id=run, scope="", entered_ms=now_ms)


@ledger_transaction
def began(slot: Slot, now_ms: int) -> None:
    """What ``note_starts`` does, at a moment of the test."""
    note_starts(slot.run_id, ("",), now_ms)


@ledger_transaction
def leave(slot: Slot) -> None:
    Slot.objects.filter(pk=slot.pk).delete()


def give(now_ms: int) -> list[slots.Given]:
    if not LimitGroup.objects.filter(name="g").exists():
        return []
    return slots.give_places(kind=SlotKind.LIMIT, name="g", now_ms=now_ms)
