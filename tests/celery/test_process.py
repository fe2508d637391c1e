"""What a Celery process does with a message, without a broker."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.plans import publication, workflow
from workflows.clock import unix_ms
from workflows.ledger.publishing import publish
from workflows.models import Run
from workflows.tasks.process import Process

pytestmark = pytest.mark.django_db(transaction=True)
SMALL = workflow("  - { id: work, kind: shell, run: make }")


@pytest.mark.parametrize("hint", ["a run that starts later", "a run of an unknown engine"])
def test_a_message_about_a_run_that_cannot_be_driven_is_passed_by_quietly(
    hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PLAN.6, PUB.11"""
    later = unix_ms(datetime.now(UTC) + timedelta(hours=1))
    more = {"start_at_ms": later} if "later" in hint else {"engine_version": 99}
    run_id = publish(publication(SMALL, **more)).run_id
    process = Process()
    try:
        with caplog.at_level(logging.WARNING):
            assert [process.answer(run_id) for _ in range(7)] == [None] * 7
            assert process.answer(run_id + 1_000) is None  # one that is gone
    finally:
        with process._lock:
            if process._worker is not None:
                process._worker.close()
    assert caplog.records == []
    assert process._failures == {}
    assert Run.objects.get(pk=run_id).revision == 1
