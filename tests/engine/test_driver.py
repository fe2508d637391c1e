"""The driver with real threads and a real pool (promise LEASE 7, 9; SET 2, 4; CTL 3, 4; ADM 8; PLAN 2)."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.races.observing import TIMEOUT_S, in_thread, threads
from tests.support.driving import drive, driver_with
from tests.support.hand import Hand, expire
from tests.support.kinds import Scripted, bad, kinds_with, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows, assert_sound, events_of
from workflows.engine.contract import EffectContext, Result
from workflows.engine.driver import Left
from workflows.engine.observing import SilentObserver
from workflows.engine.results import stopped_result
from workflows.errors import Refusal
from workflows.facts import EventRow, RunState
from workflows.jsonvalue import store
from workflows.ledger.controlling import send
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Lease, Plan, Run, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

TWO = workflow("  - { id: one, kind: shell, run: x, access: read }\n  - { id: two, kind: shell, run: x, access: read }")


class Held:
    """An effect that begins, says so, and returns when the test lets it."""

    def __init__(self, result: Result | None = None, *, obeys: bool = True) -> None:
        self.result = result or ok("held")
        self.obeys = obeys
        self.began = threading.Event()
        self.released = threading.Event()
        self.returned = threading.Event()

    def __call__(self, context: EffectContext) -> Result:
        self.began.set()
        try:
            waited_for = context.stop if self.obeys else self.released
            while not (self.released.is_set() or (self.obeys and context.stop.is_set())):
                waited_for.wait(0.02)
            reason = context.stop_reason()
            return stopped_result(reason) if self.obeys and reason and not self.released.is_set() else self.result
        finally:
            self.returned.set()


def say(run_id: int, kind: ControlKind, request_id: str = "r") -> None:
    send(run_id=run_id, kind=kind, payload={}, request_id=request_id, sender="bob", now=START)


def status_of(run_id: int) -> str:
    return str(Run.objects.values_list("status", flat=True).get(pk=run_id))


def driving(pool: ThreadPoolExecutor, run_id: int, tmp_path: Path, **options: Any) -> Future[Left | Exception]:
    return in_thread(pool, lambda: drive(run_id, tmp_path, **options))


def test_an_observer_that_fails_disturbs_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
            raise BrokenPipeError

        def progress(self, run_id: int, visit: int, text: str) -> None:
            raise BrokenPipeError

    run_id = publish_run(TWO)
    assert drive(run_id, tmp_path, observer=Broken()) is Left.ENDED
    assert Run.objects.get().status == "succeeded"
    assert [record.message for record in caplog.records] == [
        f"What happens in run {run_id} cannot be shown; it goes on."
    ]
    assert_sound()


def test_a_run_is_driven_to_its_end_and_an_observer_hears_what_is_committed(tmp_path: Path) -> None:
    class Observer(SilentObserver):
        def __init__(self) -> None:
            self.heard: list[tuple[str, str]] = []

        def committed(self, run_id: int, events: tuple[EventRow, ...], state: RunState) -> None:
            committed = set(events_of(run_id))
            assert {event.type for event in events} <= committed
            self.heard += [(event.type, state.status) for event in events]

    run_id, scripted, observer = publish_run(TWO), Scripted(), Observer()
    assert drive(run_id, tmp_path, kinds_with(scripted), observer=observer) is Left.ENDED
    assert scripted.executed == ["one v1", "two v2"]
    assert [name for name, _ in observer.heard] == events_of(run_id)[1:]
    assert observer.heard[-1] == ("run_succeeded", "succeeded")
    assert [call.attempt for call in scripted.calls] == [1, 1]
    assert_sound()


def test_an_effect_knows_its_dispatch_id_and_its_try(tmp_path: Path) -> None:
    """ADM.4"""
    run_id = publish_run(workflow("  - { id: one, kind: shell, run: x, retry: { attempts: 2, wait: 0s } }"))
    scripted = Scripted(one=[bad(), ok()])
    drive(run_id, tmp_path, kinds_with(scripted))
    stored = list(Attempt.objects.order_by("number").values_list("dispatch_id", flat=True))
    assert [call.dispatch_id for call in scripted.calls] == stored
    assert [call.attempt for call in scripted.calls] == [1, 2]


def test_a_run_that_waits_parks_without_its_lease(tmp_path: Path) -> None:
    """LEASE.10"""
    run_id = publish_run(workflow("  - { id: nap, kind: wait, for: 1h }"))
    assert drive(run_id, tmp_path) is Left.PARKED
    assert (status_of(run_id), Lease.objects.get(run_id=run_id).expires_ms) == ("waiting", 0)
    assert_sound()


def test_a_short_wait_is_waited_for_with_the_lease(tmp_path: Path) -> None:
    run_id = publish_run(
        workflow("  - { id: one, kind: shell, run: x, retry: { attempts: 2, wait: 20ms, jitter: none } }")
    )
    assert drive(run_id, tmp_path, kinds_with(one=[bad(), ok()])) is Left.ENDED
    assert Run.objects.get(pk=run_id).lease_epoch == 1
    assert_sound()


def test_a_cancel_reaches_a_running_effect(tmp_path: Path) -> None:
    """CTL.3"""
    run_id, held = publish_run(TWO), Held()
    with threads(1) as pool:
        left = driving(pool, run_id, tmp_path, kinds=kinds_with(one=held))
        assert held.began.wait(TIMEOUT_S)
        say(run_id, ControlKind.CANCEL)
        assert left.result(TIMEOUT_S) is Left.ENDED
    assert (status_of(run_id), Attempt.objects.get().status) == ("cancelled", "cancelled")
    assert Attempt.objects.get().late_outcome == ""
    assert_sound()


def test_a_pause_lets_the_effect_settle_and_parks(tmp_path: Path) -> None:
    """CTL.4"""
    run_id, held = publish_run(TWO), Held()
    with threads(1) as pool:
        left = driving(pool, run_id, tmp_path, kinds=kinds_with(one=held))
        assert held.began.wait(TIMEOUT_S)
        say(run_id, ControlKind.PAUSE)
        held.released.set()
        assert left.result(TIMEOUT_S) is Left.PARKED
    assert (status_of(run_id), Visit.objects.count()) == ("paused", 1)
    say(run_id, ControlKind.RESUME, "again")
    assert drive(run_id, tmp_path) is Left.ENDED
    assert_sound()


def test_a_worker_that_lost_its_lease_keeps_its_result_as_a_late_one_only(tmp_path: Path) -> None:
    """LEASE.7, SET.2, SET.4"""
    run_id, held = publish_run(TWO), Held(ok("too late"))
    with threads(1) as pool:
        left = driving(pool, run_id, tmp_path, kinds=kinds_with(one=held), owner="zombie")
        assert held.began.wait(TIMEOUT_S)
        expire(run_id)
        successor = Hand(run_id, owner="successor")
        held.released.set()
        lost = left.result(TIMEOUT_S)
    assert isinstance(lost, Refusal), lost
    assert lost.message == f"The lease on run {run_id} was lost: epoch 2 took over from epoch 1."
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, attempt.outcome, attempt.late_outcome) == ("running", "", "ok")
    assert attempt.late_output_digest == store("too late").digest
    assert Lease.objects.get(run_id=run_id).owner == "successor"
    successor.reload()
    successor.step()
    assert successor.running == ["v1.2"]
    assert_sound()


def test_a_worker_that_shall_stop_hands_the_run_back_and_that_is_no_crash(tmp_path: Path) -> None:
    """LEASE.9"""
    run_id, stopping = publish_run(TWO), threading.Event()

    def first(context: EffectContext) -> Result:
        stopping.set()
        return ok("finished")

    assert drive(run_id, tmp_path, kinds_with(one=first), stopping=stopping.is_set) is Left.HANDED_BACK
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.visits, Lease.objects.get(run_id=run_id).expires_ms) == ("running", 1, 0)
    assert Visit.objects.get().status == "settled"
    assert_sound()
    assert drive(run_id, tmp_path) is Left.ENDED
    run = Run.objects.get(pk=run_id)
    assert (run.lease_epoch, run.crashes, run.visits) == (2, 0, 2)
    assert "lease_recovered" not in events_of(run_id)


def test_an_effect_that_outlives_the_grace_period_is_stopped_and_repeated_by_the_next_worker(tmp_path: Path) -> None:
    """LEASE.9, ADM.5"""
    run_id, stopping, held = publish_run(TWO), threading.Event(), Held()
    with threads(1) as pool:
        left = driving(pool, run_id, tmp_path, kinds=kinds_with(one=held), stopping=stopping.is_set, grace_ms=0)
        assert held.began.wait(TIMEOUT_S)
        stopping.set()
        assert left.result(TIMEOUT_S) is Left.HANDED_BACK
    assert events_of(run_id)[-1] == "step_interrupted"
    assert_sound()
    assert drive(run_id, tmp_path) is Left.ENDED
    assert list(Attempt.objects.filter(visit=1).order_by("number").values_list("status", flat=True)) == [
        "interrupted",
        "succeeded",
    ]
    assert Visit.objects.get(number=1).attempts == 1
    assert_sound()


def test_a_run_is_handed_back_after_as_many_visits_as_were_asked_for(tmp_path: Path) -> None:
    run_id = publish_run(TWO)
    assert drive(run_id, tmp_path, max_visits=1) is Left.HANDED_BACK
    assert Run.objects.get(pk=run_id).visits == 1
    assert drive(run_id, tmp_path, max_visits=1) is Left.ENDED
    assert_sound()


class Broken:
    """A kind with a fault of its own."""

    name = "shell"

    def enter(self, entry: Any) -> Any:
        raise RuntimeError("a fault of the engine")


def test_an_exception_of_the_engine_counts_and_poisons_the_run_in_the_end(tmp_path: Path) -> None:
    """ADM.8"""
    run_id = publish_run(TWO)
    for crashes in (1, 2, 3):
        with pytest.raises(RuntimeError, match=r"^a fault of the engine$"):
            drive(run_id, tmp_path, {"shell": Broken()}, poison_limit=3)
        run = Run.objects.get(pk=run_id)
        assert (run.crashes, run.status) == (crashes, "failed" if crashes == 3 else "queued")
        assert Lease.objects.get(run_id=run_id).expires_ms == 0
    assert '"code":"run.poisoned"' in Run.objects.get(pk=run_id).error
    assert "died 3 times in a row" in Run.objects.get(pk=run_id).error
    assert_sound()


def test_a_run_whose_driver_keeps_dying_at_one_visit_is_failed(tmp_path: Path) -> None:
    """ADM.8"""
    run_id, scripted = publish_run(TWO), Scripted()
    for _ in range(4):
        Hand(run_id).step()
        expire(run_id)
    assert drive(run_id, tmp_path, kinds_with(scripted), poison_limit=4) is Left.ENDED
    assert (status_of(run_id), scripted.calls) == ("failed", [])
    assert_sound()


def test_a_cancel_works_on_a_run_whose_driver_keeps_dying(tmp_path: Path) -> None:
    """ADM.8"""
    run_id = publish_run(TWO)
    for _ in range(3):
        Hand(run_id).step()
        expire(run_id)
    say(run_id, ControlKind.CANCEL)
    assert drive(run_id, tmp_path, poison_limit=9) is Left.ENDED
    assert status_of(run_id) == "cancelled"
    assert_sound()


@pytest.mark.unsound
def test_a_corrupt_plan_is_refused_before_the_run_is_taken(tmp_path: Path) -> None:
    """PLAN.2"""
    run_id = publish_run(TWO)
    plan = Plan.objects.get()
    ledger_transaction(lambda: Plan.objects.filter(pk=plan.pk).update(document=plan.document + "\n"))()
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        drive(run_id, tmp_path)
    assert caught.value.code == "plan.corrupt"
    assert all_rows() == before


def test_a_function_that_returns_long_after_its_timeout_settles_nothing_any_more(tmp_path: Path) -> None:
    """SET.4: its late result is kept on its own attempt while the next attempt of the visit waits for it."""
    run_id = publish_run(
        workflow("""
  - { id: one, kind: shell, run: x, access: read, timeout: 50ms, next: { timed_out: two } }
  - { id: two, kind: shell, run: x, access: read }
""")
    )
    stubborn, second = Held(ok("very late"), obeys=False), Held()
    with threads(1) as pool:
        left = driving(pool, run_id, tmp_path, kinds=kinds_with(one=stubborn, two=second))
        assert second.began.wait(TIMEOUT_S)
        assert Visit.objects.get(number=1).outcome == "timed_out"
        stubborn.released.set()
        assert stubborn.returned.wait(TIMEOUT_S)
        for _ in range(2_000):
            if Attempt.objects.exclude(late_outcome="").exists():
                break
            second.returned.wait(0.005)
        second.released.set()
        assert left.result(TIMEOUT_S) is Left.ENDED
    attempt = Attempt.objects.get(visit=1)
    assert (attempt.status, attempt.outcome, attempt.late_outcome) == ("failed", "timed_out", "ok")
    assert attempt.late_output_digest == store("very late").digest
    assert Visit.objects.get(number=1).output_digest is None
    assert_sound()


def test_one_bad_result_harms_neither_the_driver_nor_its_neighbours(tmp_path: Path) -> None:
    """SET.5"""
    run_id = publish_run(
        workflow("""
  - id: both
    kind: parallel
    join: settled
    branches:
      left: [{ id: l, kind: shell, run: x, workspace: none }]
      right: [{ id: r, kind: shell, run: x, workspace: none }]
""")
    )

    def explode(context: EffectContext) -> Result:
        raise BaseException("out of everything")

    assert drive(run_id, tmp_path, kinds_with(l=explode)) is Left.ENDED
    assert dict(Visit.objects.values_list("step", "outcome")) == {"both": "ok", "l": "failed", "r": "ok"}
    assert_sound()


def test_one_driver_drives_many_runs_one_after_the_other(tmp_path: Path) -> None:
    run_ids = [publish_run(TWO) for _ in range(5)]
    with driver_with(workspaces=tmp_path) as driver:
        assert [driver.drive(run_id) for run_id in run_ids] == [Left.ENDED] * 5
    assert_sound()
