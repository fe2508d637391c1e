"""Http steps in runs: retries and the key they carry, the wait that a server asks for, a cancel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.driving import drive
from tests.support.http_server import Conversation, Server, serving
from tests.support.plans import publish_run, workflow
from workflows.definitions.plan import RetryPolicy
from workflows.engine.retries import next_attempt, wait_before
from workflows.ledger.controlling import send
from workflows.ledger.transactions import database_thread
from workflows.models import Event, Run, Visit
from workflows.statuses import ControlKind
from workflows.steps import KINDS


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def in_turn(server: Server, *answers: tuple[int, dict[str, str]]) -> None:
    """The first request to ``/`` gets the first answer, and so on; the last one is given again and again."""
    left = list(answers)

    def handler(conversation: Conversation) -> None:
        status, headers = left.pop(0) if len(left) > 1 else left[0]
        conversation.answer("[]", status, headers)

    server.on("/", handler)


def post(server: Server, retry: str) -> int:
    return publish_run(
        workflow(f"  - {{ id: ask, kind: http, method: POST, url: '{server.address}/', retry: {retry} }}")
    )


@pytest.mark.django_db(transaction=True)
def test_a_known_failure_is_retried_with_a_new_key_and_an_uncertain_one_with_the_same(
    server: Server, tmp_path: Path
) -> None:
    in_turn(server, (503, {}), (200, {"Content-Length": "100"}), (200, {}))
    run_id = post(server, "{ attempts: 3, wait: 1ms, errors: [http_status, network] }")

    drive(run_id, tmp_path, KINDS)

    visit = Visit.objects.get(run_id=run_id)
    assert (Run.objects.get(pk=run_id).status, visit.outcome, visit.attempts, visit.access) == (
        "succeeded",
        "ok",
        3,
        "write",
    )
    first, second, third = (asked.headers["idempotency-key"] for asked in server.asked)
    assert first != second
    assert second == third


@pytest.mark.django_db(transaction=True)
def test_an_uncertain_write_is_not_repeated_unless_the_file_names_the_error(server: Server, tmp_path: Path) -> None:
    in_turn(server, (200, {"Content-Length": "100"}))
    run_id = post(server, "3")

    drive(run_id, tmp_path, KINDS)

    assert Run.objects.get(pk=run_id).status == "failed"
    assert len(server.asked) == 1


@pytest.mark.django_db(transaction=True)
def test_the_next_attempt_waits_as_long_as_the_server_asked(server: Server, tmp_path: Path) -> None:
    """SET.6"""
    in_turn(server, (429, {"Retry-After": "1"}), (200, {}))
    run_id = post(server, "{ attempts: 2, wait: 1ms, jitter: none }")

    drive(run_id, tmp_path, KINDS)

    retrying = Event.objects.get(run_id=run_id, type="step_retrying")
    assert '"wait_ms":1000' in retrying.payload.replace(" ", "")


@pytest.mark.django_db(transaction=True)
def test_a_cancel_of_the_run_ends_the_request(server: Server, tmp_path: Path) -> None:
    server.on("/", lambda conversation: conversation.wait_until_gone())
    run_id = post(server, "2")

    def driven() -> None:
        with database_thread():
            drive(run_id, tmp_path, KINDS)

    driving = threading.Thread(target=driven)
    driving.start()
    assert server.arrived.wait(10)

    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="r", sender="bob", now=datetime.now(UTC))

    assert server.gone.wait(5)
    driving.join(20)
    assert Run.objects.get(pk=run_id).status == "cancelled"


def test_jitter_comes_after_the_wait_that_a_server_asked_for_and_never_before() -> None:
    policy = RetryPolicy(attempts=2, wait_ms=1_000)
    waits = [wait_before(policy, 1, str(seed), at_least_ms=30_000) for seed in range(50)]

    assert all(30_000 <= wait < 31_000 for wait in waits)
    assert len(set(waits)) > 40
    assert [wait - 30_000 for wait in waits] == [wait_before(policy, 1, str(seed)) for seed in range(50)]


@pytest.mark.parametrize(("asked_ms", "wait_ms"), [(0, 5_000), (3_000, 5_000), (30_000, 30_000)])
def test_without_jitter_the_longer_wait_counts(asked_ms: int, wait_ms: int) -> None:
    policy = RetryPolicy(attempts=2, wait_ms=5_000, jitter=False)
    retry = next_attempt([policy], code="rate_limited", access="write", counts="", seed="x", at_least_ms=asked_ms)

    assert retry is not None
    assert retry.wait_ms == wait_ms
