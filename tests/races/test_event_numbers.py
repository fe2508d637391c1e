"""Event numbers under concurrency: a reader that asks *after n* never misses a late commit (EVT.1)."""

from __future__ import annotations

import pytest

from tests.processes import run_in_threads
from tests.races.observing import TIMEOUT_S, Gate, in_thread, stopping_before_commit, threads, wait_for_lock_waits
from tests.support.hand import Hand
from tests.support.kinds import ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import assert_sound, events_of
from workflows.errors import Refusal
from workflows.ledger.controlling import Accepted, send
from workflows.models import Event, Run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = workflow("""
  - { id: work, kind: shell, run: make, access: read, max_visits: 1000, next: { ok: work } }
""")


def steer(run_id: int, request_id: str) -> Accepted:
    return send(
        run_id=run_id, kind=ControlKind.STEER, payload={"text": "x"}, request_id=request_id, sender="bob", now=START
    )


def after(run_id: int, sequence: int) -> list[int]:
    """What a reader gets who has read up to ``sequence``."""
    events = Event.objects.filter(run_id=run_id, sequence__gt=sequence).order_by("sequence")
    return list(events.values_list("sequence", flat=True))


@pytest.mark.store("postgresql")
def test_no_event_is_seen_before_one_with_a_smaller_number() -> None:
    """EVT.1"""
    run_id, gate = publish_run(TEXT), Gate()
    with threads(2) as pool:
        first = in_thread(pool, stopping_before_commit(gate, lambda: steer(run_id, "first")))
        assert gate.reached.wait(TIMEOUT_S)
        second = in_thread(pool, lambda: steer(run_id, "second"))
        wait_for_lock_waits(1)
        assert after(run_id, 1) == []
        gate.opened.set()
        answers = [future.result(TIMEOUT_S) for future in (first, second)]
    assert [answer.sequence for answer in answers if isinstance(answer, Accepted)] == [2, 3]
    assert after(run_id, 1) == [2, 3]
    assert_sound()


def test_a_driver_and_people_write_at_once_and_a_reader_misses_nothing() -> None:
    """EVT.1: a driver settles 30 steps while three people send messages; the driver decides again on a conflict."""
    run_id = publish_run(TEXT)
    hand = Hand(run_id)
    hand.step()
    codes: set[str] = set()

    def drive() -> int:
        for _ in range(30):
            results = {hand.running[0]: ok(1)}
            while True:
                try:
                    hand.step(results)
                    break
                except Refusal as refusal:
                    codes.add(refusal.code)
                    hand.reload()
        return 30

    def talk(person: str) -> int:
        return len([steer(run_id, f"{person}{number}") for number in range(20)])

    def read() -> int:
        seen: list[int] = []
        while len(seen) < 1 + 60 + 61:
            seen += after(run_id, seen[-1] if seen else 0)
        assert seen == list(range(1, len(seen) + 1))
        return len(seen)

    answers = run_in_threads(drive, lambda: talk("a"), lambda: talk("b"), lambda: talk("c"), read)
    assert answers == [30, 20, 20, 20, 122]
    assert codes <= {"run.conflict"}
    assert Run.objects.get(pk=run_id).visits == 31
    assert events_of(run_id).count("control_accepted") == 60
    assert_sound()
