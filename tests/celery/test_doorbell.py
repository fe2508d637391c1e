"""The doorbell: a commit never waits for a broker, and what a broker loses is found by the sweep (LEASE.12)."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from tests.celery.brokers import free_port
from workflows.tasks import doorbell
from workflows.tasks.app import make_app, queue_name
from workflows.tasks.doorbell import MOST_PENDING, Doorbell


def test_what_is_rung_is_sent_in_order_and_once_while_it_waits() -> None:
    sent: list[int] = []
    go = threading.Event()

    def send(run_id: int) -> None:
        go.wait(10)
        sent.append(run_id)

    bell = Doorbell(lambda: send)
    for run_id in (1, 2, 2, 3, 2):
        assert bell.ring(run_id)
    go.set()
    assert bell.flush(10)
    assert list(dict.fromkeys(sent)) == [1, 2, 3]
    assert sent.count(2) <= 2  # once more when the first one was on its way already


def test_ringing_never_waits_and_a_full_bell_leaves_the_rest_to_the_sweep() -> None:
    """LEASE.12"""
    go = threading.Event()
    bell = Doorbell(lambda: lambda run_id: go.wait(10))
    begun = time.monotonic()
    rung = [bell.ring(run_id) for run_id in range(MOST_PENDING + 10)]
    assert time.monotonic() - begun < 1
    assert rung.count(False) in (9, 10)
    go.set()
    assert bell.flush(10)


def test_a_broker_that_is_down_is_logged_once_and_fails_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LEASE.12"""
    monkeypatch.setattr(doorbell, "AFTER_FAILURE_S", 0.0)
    is_down = True
    sent: list[int] = []

    def connect() -> doorbell.Send:
        if is_down:
            raise ConnectionRefusedError
        return sent.append

    bell = Doorbell(connect)
    with caplog.at_level(logging.WARNING):
        for run_id in (1, 2):
            bell.ring(run_id)
            assert bell.flush(10)
        is_down = False
        bell.ring(3)
        assert bell.flush(10)
    assert sent == [3]
    assert [record.message.split(" (")[0].split(" after")[0] for record in caplog.records] == [
        "The broker took no message",
        "The broker takes messages again",
    ]


def test_a_broker_that_answers_nothing_is_given_up_soon() -> None:
    """LEASE.12: a port that nobody listens at."""
    app = make_app(f"redis://127.0.0.1:{free_port()}/0", "")
    with app.connection_for_write() as connection:
        producer = app.amqp.Producer(connection, auto_declare=False)
        begun = time.monotonic()
        with pytest.raises(Exception, match="refused"):
            app.send_task("waypost.drive_run", args=[1], producer=producer, retry=False)
        assert time.monotonic() - begun < 10


def test_pools_have_queues_of_their_own() -> None:
    assert queue_name("") == "waypost"
    assert queue_name("gpu") == "waypost-gpu"
    first, second = make_app("redis://h/0", ""), make_app("redis://h/0", "gpu")
    assert list(first.amqp.queues) == ["waypost"]
    assert list(second.amqp.queues) == ["waypost-gpu"]


def test_a_message_is_kept_until_its_run_was_driven_and_taken_one_at_a_time() -> None:
    conf = make_app("redis://h/0", "").conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1
    assert conf.broker_transport_options["visibility_timeout"] >= 3600
