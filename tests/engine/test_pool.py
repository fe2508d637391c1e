"""The effect pool: one settlement per attempt, whatever the effect does (SET.4, SET.5)."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.engine.workers import wait_until
from workflows.engine.contract import EffectCancelled, EffectContext, Result
from workflows.engine.pool import Delivery, EffectPool, Stop

OK = Result(outcome="ok")


class Kind:
    """A kind whose effect is a function of its context."""

    name = "given"

    def __init__(self, effect: Callable[[EffectContext], Any]) -> None:
        self.effect = effect

    def enter(self, entry: Any) -> Any:
        raise NotImplementedError

    def execute(self, context: EffectContext) -> Result:
        result: Result = self.effect(context)
        return result


class Driver:
    """Submits attempts and collects what comes back."""

    def __init__(self, threads: int = 2, **options: Any) -> None:
        self.pool = EffectPool(threads, **options)
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.stops: dict[Any, Stop] = {}

    def submit(self, token: Any, effect: Callable[[EffectContext], Any], timeout_ms: int | None = None) -> None:
        stop = self.stops[token] = Stop()
        context = EffectContext(
            run_id=1,
            workflow="demo",
            step=None,  # type: ignore[arg-type]
            path="work",
            visit=1,
            round=1,
            attempt=1,
            dispatch_id="key",
            index=None,
            inputs={},
            secrets=lambda name: "hunter2-value",
            workspace=lambda: None,  # type: ignore[arg-type, return-value]
            deadline=None,
            stop=stop.event,
            stop_reason=stop.reason,
            groups=None,  # type: ignore[arg-type]
            progress=lambda text: None,
        )
        self.pool.submit(
            Kind(effect), context, token=token, stop=stop, timeout_ms=timeout_ms, deliver=self.deliveries.put
        )

    def next(self) -> Delivery:
        return self.deliveries.get(timeout=10)


@pytest.fixture
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.pool.stop_all("shutdown")
    assert made.pool.close(wait_seconds=5)


def test_a_result_comes_back_with_its_token(driver: Driver) -> None:
    driver.submit("a", lambda context: OK)

    assert driver.next() == Delivery(token="a", result=OK)
    assert driver.pool.running() == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (EffectCancelled("by itself"), "EffectCancelled: by itself"),
        (ValueError("\0 and \ud800"), "ValueError: \ufffd and \ufffd"),
    ],
)
def test_whatever_is_raised_is_a_result_and_the_thread_goes_on(
    driver: Driver, error: BaseException, message: str
) -> None:
    def effect(context: EffectContext) -> Result:
        raise error

    driver.submit("a", effect)
    result = driver.next().result

    assert result.failure is not None
    assert (result.outcome, result.failure.code, result.failure.message) == ("failed", "task_error", message)
    driver.submit("b", lambda context: OK)
    assert driver.next().result == OK


def test_an_exception_that_cannot_even_be_shown_is_a_result(driver: Driver) -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def effect(context: EffectContext) -> Result:
        raise Hostile

    driver.submit("a", effect)

    failure = driver.next().result.failure
    assert failure is not None
    assert failure.message.endswith("Hostile: (its message cannot be shown)")


def test_a_kind_that_gives_no_result_is_told(driver: Driver) -> None:
    driver.submit("a", lambda context: "ok")

    failure = driver.next().result.failure
    assert failure is not None
    assert failure.message == "The kind given gave no result."


def test_secrets_that_were_read_are_masked_in_what_is_raised(driver: Driver) -> None:
    def effect(context: EffectContext) -> Result:
        raise ValueError(f"refused: {context.secrets('token')}")

    driver.submit("a", effect)

    failure = driver.next().result.failure
    assert failure is not None
    assert failure.message == "ValueError: refused: ***"
    assert "hunter2" not in failure.trace


def test_no_more_effects_run_at_once_than_there_are_threads(driver: Driver) -> None:
    lock, running, most, gate = threading.Lock(), [], [], threading.Event()

    def effect(context: EffectContext) -> Result:
        with lock:
            running.append(1)
            most.append(len(running))
        gate.wait(5)
        with lock:
            running.pop()
        return OK

    for token in range(6):
        driver.submit(token, effect)
    wait_until(lambda: len(running) == 2)
    gate.set()

    assert sorted(driver.next().token for _ in range(6)) == list(range(6))
    assert max(most) == 2


def test_one_thread_serves_one_effect_after_the_other(driver: Driver) -> None:
    names = []
    for token in range(50):
        driver.submit(token, lambda context: names.append(threading.get_ident()) or OK)
        driver.next()

    assert len(set(names)) <= 2


def test_the_timeout_begins_with_the_effect_and_not_with_the_queue() -> None:
    driver = Driver(threads=1)
    driver.submit("first", lambda context: (context.stop.wait(0.4) and OK) or OK)
    driver.submit("second", lambda context: OK, timeout_ms=200)

    assert [driver.next().result.outcome, driver.next().result.outcome] == ["ok", "ok"]
    driver.pool.close()


def test_the_deadline_is_in_the_context_and_sets_the_stop(driver: Driver) -> None:
    seen: list[Any] = []

    def effect(context: EffectContext) -> Result:
        assert context.deadline is not None
        seen.append(context.deadline - time.monotonic())
        assert context.stop.wait(5)
        seen.append(context.stop_reason())
        raise EffectCancelled

    driver.submit("a", effect, timeout_ms=150)
    result = driver.next().result

    assert 0.05 < seen[0] <= 0.15
    assert seen[1] == "timeout"
    assert result.failure is not None
    assert (result.outcome, result.failure.code) == ("timed_out", "timeout")


def test_a_shorter_timeout_than_the_one_being_watched_is_met(driver: Driver) -> None:
    driver.submit("long", lambda context: context.stop.wait(10) and OK, timeout_ms=600_000)
    driver.submit("short", lambda context: context.stop.wait(10) and OK, timeout_ms=100)

    begin = time.monotonic()
    delivery = driver.next()

    assert (delivery.token, delivery.result.outcome) == ("short", "timed_out")
    assert time.monotonic() - begin < 2


def test_the_first_reason_of_a_stop_counts(driver: Driver) -> None:
    driver.submit("a", lambda context: context.stop.wait(10) and Result(outcome=str(context.stop_reason())))

    assert driver.pool.stop("a", "cancelled")
    driver.pool.stop("a", "shutdown")

    assert driver.stops["a"].reason() == "cancelled"
    assert driver.next().result.outcome == "cancelled"
    assert driver.pool.stop("a", "cancelled") is False
    assert driver.pool.stop("never", "cancelled") is False


def test_an_attempt_stopped_in_the_queue_never_begins() -> None:
    driver = Driver(threads=1)
    begun: list[str] = []
    gate = threading.Event()
    driver.submit("first", lambda context: gate.wait(5) and OK)
    driver.submit("second", lambda context: begun.append("second") or OK)
    driver.pool.stop("second", "cancelled")
    gate.set()

    assert driver.next().token == "first"
    failure = driver.next().result.failure
    assert failure is not None
    assert (failure.code, failure.message) == ("cancelled", "The step was stopped before it began.")
    assert begun == []
    driver.pool.close()


def test_a_shutdown_reaches_all_and_keeps_what_succeeded(driver: Driver) -> None:
    def gives_up(context: EffectContext) -> Result:
        context.stop.wait(10)
        raise OSError("interrupted")

    begun = threading.Barrier(3)
    driver.submit("done", lambda context: begun.wait(5) + 1 and context.stop.wait(10) and OK)
    driver.submit("not", lambda context: begun.wait(5) + 1 and gives_up(context))
    begun.wait(5)

    assert driver.pool.stop_all("shutdown") == 2

    results = {delivery.token: delivery.result for delivery in (driver.next(), driver.next())}
    assert results["done"] == OK
    assert results["not"].failure is not None
    assert (results["not"].outcome, results["not"].failure.code) == ("interrupted", "crashed")


@pytest.mark.parametrize("reason", ["timeout", "cancelled"])
def test_a_thread_that_does_not_return_settles_once_and_is_marked(reason: str) -> None:
    """SET.4: what it gives afterwards is late."""
    driver = Driver(threads=1, abandon_seconds=0.2)
    gate = threading.Event()
    begun = threading.Event()

    def effect(context: EffectContext) -> Result:
        begun.set()
        gate.wait(10)
        return OK

    driver.submit("a", effect, timeout_ms=100 if reason == "timeout" else None)
    if reason == "cancelled":
        assert begun.wait(5)
        driver.pool.stop("a", reason)

    settled = driver.next()
    assert settled.result.failure is not None
    assert (settled.late, settled.result.failure.code) == (False, reason)
    assert driver.pool.still_running("a")
    assert driver.pool.still_running()
    driver.submit("b", lambda context: OK)  # its place was given to another thread
    assert driver.next() == Delivery(token="b", result=OK)
    assert driver.pool.close(wait_seconds=0.05) is False

    gate.set()

    assert driver.next() == Delivery(token="a", result=OK, late=True)
    assert not driver.pool.still_running("a")
    assert driver.pool.close(wait_seconds=5)


def test_a_stop_beside_the_pool_is_noticed_at_the_deadline() -> None:
    driver = Driver(threads=1, abandon_seconds=0.1)
    gate = threading.Event()
    driver.submit("a", lambda context: gate.wait(10) and OK, timeout_ms=100)
    driver.stops["a"].request("cancelled")

    assert driver.next().result.outcome in ("cancelled", "failed")
    gate.set()
    driver.pool.close()


def test_a_token_is_taken_until_its_attempt_is_settled(driver: Driver) -> None:
    gate = threading.Event()
    driver.submit("a", lambda context: gate.wait(5) and OK)

    with pytest.raises(ValueError, match=r"An attempt 'a' is running already\."):
        driver.submit("a", lambda context: OK)

    gate.set()
    driver.next()
    driver.submit("a", lambda context: OK)
    driver.next()


def test_a_driver_that_cannot_take_a_result_harms_nobody(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    stop = Stop()

    def broken(delivery: Delivery) -> None:
        raise RuntimeError("gone")

    captured: list[EffectContext] = []
    driver.submit("b", lambda context: captured.append(context) or OK)
    driver.next()
    driver.pool.submit(Kind(lambda c: OK), captured[0], token="broken", stop=stop, timeout_ms=None, deliver=broken)
    driver.submit("c", lambda context: OK)

    assert driver.next() == Delivery(token="c", result=OK)
    wait_until(lambda: "The result of attempt 'broken' could not be delivered." in caplog.text)


def test_a_closed_pool_takes_nothing() -> None:
    driver = Driver()
    assert driver.pool.close()

    with pytest.raises(RuntimeError, match=r"The pool is closed\."):
        driver.submit("a", lambda context: OK)


def test_two_thousand_effects_after_each_other_cost_little(driver: Driver) -> None:
    for token in range(100):
        driver.submit(token, lambda context: OK, timeout_ms=600_000)
        driver.next()

    begin = time.thread_time()
    for token in range(2_000):
        driver.submit(token, lambda context: OK, timeout_ms=600_000)
        driver.next()

    assert (time.thread_time() - begin) / 2_000 < 0.0005
    assert threading.active_count() < 12
