"""The heartbeat renews leases and gives them up in time (promise LEASE 5, 7, 8)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows
from workflows.engine.heartbeat import Beat, Heartbeat
from workflows.models import Lease

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = workflow("  - { id: work, kind: shell, run: make }")
TIMEOUT_S = 20


class Heard:
    """What the heartbeat said."""

    def __init__(self) -> None:
        self.alive: list[float] = []
        self.several = threading.Event()
        self.lost = threading.Event()
        self.losses = 0

    def on_alive(self, seconds: float) -> None:
        self.alive.append(seconds)
        if len(self.alive) >= 4:
            self.several.set()

    def on_lost(self) -> None:
        self.losses += 1
        self.lost.set()


@contextmanager
def beating(heartbeat: Heartbeat, beat: Beat) -> Iterator[None]:
    heartbeat.keep(beat)
    thread = heartbeat._thread
    try:
        yield
    finally:
        heartbeat.drop(beat)
        if thread is not None:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()


def made(run_id: int, heard: Heard, *, held_for_s: float = 0.0) -> Beat:
    return Beat(run_id=run_id, epoch=1, held_since=time.monotonic() - held_for_s, on_lost=heard.on_lost)


def test_it_renews_from_a_thread_of_its_own_and_says_for_how_long_that_lasts() -> None:
    """LEASE.5"""
    run_id, heard = publish_run(TEXT), Heard()
    Hand(run_id)
    before = all_rows()
    beat = made(run_id, heard)
    beat.polled_ms = 12
    with beating(Heartbeat(ttl_ms=60_000, interval_ms=10, on_alive=heard.on_alive), beat):
        assert heard.several.wait(TIMEOUT_S)
    after = all_rows()
    assert after["Lease"][0]["expires_ms"] > before["Lease"][0]["expires_ms"]
    assert after["Lease"][0]["last_poll_ms"] == 12
    assert {**after, "Lease": []} == {**before, "Lease": []}
    assert all(49 < seconds <= 50 for seconds in heard.alive)
    assert not beat.lost.is_set()


def test_a_lease_that_somebody_took_over_is_lost_once() -> None:
    """LEASE.7"""
    run_id, heard = publish_run(TEXT), Heard()
    Hand(run_id)
    expire(run_id)
    Hand(run_id, owner="second")
    lease = Lease.objects.values().get(run_id=run_id)
    with beating(Heartbeat(ttl_ms=60_000, interval_ms=10, on_alive=heard.on_alive), made(run_id, heard)):
        assert heard.lost.wait(TIMEOUT_S)
    assert heard.losses == 1
    assert Lease.objects.values().get(run_id=run_id) == lease


def test_a_lease_that_ended_cannot_be_kept_alive() -> None:
    """LEASE.2"""
    run_id, heard = publish_run(TEXT), Heard()
    Hand(run_id)
    expire(run_id)
    with beating(Heartbeat(ttl_ms=60_000, interval_ms=10, on_alive=heard.on_alive), made(run_id, heard)):
        assert heard.lost.wait(TIMEOUT_S)


@pytest.mark.parametrize(("ttl_ms", "safe_s"), [(60_000, 50.0), (40_000, 30.0), (20_000, 15.0), (1_000, 0.75)])
def test_a_lease_counts_as_lost_ten_seconds_before_it_can_end(ttl_ms: int, safe_s: float) -> None:
    """LEASE.8: by the monotonic clock, counted from before the last renewal was sent; a quarter of a short lease."""
    assert Heartbeat(ttl_ms=ttl_ms, interval_ms=10, on_alive=lambda seconds: None).safe_s == safe_s


@pytest.mark.parametrize(("held_for_s", "lost"), [(49.0, False), (51.0, True)])
def test_a_lease_that_could_not_be_renewed_is_given_up_before_anybody_can_take_it(
    held_for_s: float, lost: bool
) -> None:
    """LEASE.8"""
    heard = Heard()
    beat = made(1, heard, held_for_s=held_for_s)
    Heartbeat(ttl_ms=60_000, interval_ms=10, on_alive=heard.on_alive)._judge([beat])
    assert (beat.lost.is_set(), heard.losses) == (lost, int(lost))
    assert [round(seconds) for seconds in heard.alive] == ([] if lost else [1])


def test_the_shortest_lease_decides_for_how_long_processes_may_live() -> None:
    """LEASE.7"""
    heard = Heard()
    beats = [made(number, heard, held_for_s=seconds) for number, seconds in ((1, 5.0), (2, 30.0), (3, 55.0))]
    Heartbeat(ttl_ms=60_000, interval_ms=10, on_alive=heard.on_alive)._judge(beats)
    assert ([round(seconds) for seconds in heard.alive], heard.losses) == ([20], 1)
