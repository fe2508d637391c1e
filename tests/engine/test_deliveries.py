"""What becomes of results that arrive when their driver has left (SET.4)."""

from __future__ import annotations

import threading

import pytest

from tests.support.hand import Hand
from tests.support.kinds import Scripted, interrupted, kinds_with, ok
from tests.support.plans import publish_run
from tests.support.rows import assert_sound
from workflows.engine.deliveries import Deliveries
from workflows.engine.pool import Delivery
from workflows.models import Attempt, Run

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = """
format: 1
name: late
steps:
  - { id: work, kind: shell, run: "true" }
"""


def admitted() -> int:
    """A run whose only step has a running attempt."""
    run_id = publish_run(TEXT)
    Hand(run_id, kinds=kinds_with(Scripted())).step()
    return run_id


def test_a_result_that_comes_after_its_driver_left_is_kept_on_its_attempt() -> None:
    """SET.4"""
    run_id = admitted()
    deliveries = Deliveries(run_id)
    deliveries.close()
    revision = Run.objects.get(pk=run_id).revision
    thread = threading.Thread(target=deliveries.put, args=(Delivery(token=(run_id, 1, 1), result=ok("done")),))
    thread.start()
    thread.join()
    attempt = Attempt.objects.get(run_id=run_id, visit=1)
    assert (attempt.status, attempt.late_outcome, attempt.marks) == ("running", "ok", '["late"]')
    assert Run.objects.get(pk=run_id).revision == revision + 1
    assert_sound(run_id)


def test_what_lay_in_the_queue_when_the_driver_left_is_kept_too() -> None:
    """SET.4"""
    run_id = admitted()
    deliveries = Deliveries(run_id)
    deliveries.put(Delivery(token=(run_id, 1, 1), result=ok("done")))
    deliveries.put(None)
    deliveries.close()
    assert Attempt.objects.get(run_id=run_id, visit=1).late_outcome == "ok"


def test_an_effect_that_was_only_killed_leaves_no_late_result() -> None:
    run_id = admitted()
    deliveries = Deliveries(run_id)
    deliveries.close()
    deliveries.put(Delivery(token=(run_id, 1, 1), result=interrupted()))
    assert Attempt.objects.get(run_id=run_id, visit=1).late_outcome == ""
