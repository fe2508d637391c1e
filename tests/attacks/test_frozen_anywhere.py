"""A worker is frozen (SIGSTOP) at moments drawn at random, its lease ends, another one goes on, and it is continued.

``WAYPOST_TEST_ROUNDS`` says how many moments are drawn.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from django.db import connection

from tests.crashes.test_workers import Place, is_frozen, report_of
from tests.engine.workers import wait_until
from tests.processes import Processes
from workflows.ledger.inspection import inspect_run
from workflows.models import Event, Lease, Run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc"),
]

#: How many moments are drawn, of each sort.
ROUNDS = int(os.environ.get("WAYPOST_TEST_ROUNDS", "2"))
FILE = """
format: 1
name: frozen
steps:
  - { id: look, kind: shell, access: read, run: 'echo seen' }
  - { id: change, kind: shell, access: write, run: 'echo changed' }
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" } }
  - { id: send, kind: shell, idempotent: true, run: 'echo sent' }
vars: { n: { value: 0 } }
output: { n: "${ vars.n }", said: "${ steps.send.output }" }
finally:
  - { id: tidy, kind: shell, access: read, run: 'echo tidied' }
"""


def moments_of(place: Place) -> list[tuple[str, str]]:
    """The moments of an undisturbed life that another one comes by, too, at its first turn."""
    points = report_of(place.worker())["points"]
    return sorted({(point["subject"], point["place"]) for point in points if point["turn"] == 0 and is_sure(point)})


def is_sure(point: dict[str, str]) -> bool:
    """The plan is stored and the run is made once, so those who come later do not come by there; in the middle of an
    effect the kit kills and does not freeze."""
    if point["subject"].startswith("the effect "):
        return point["place"] in ("before", "after")
    return point["subject"] not in ("publish", "publish_plan")


def is_inside(moment: tuple[str, str]) -> bool:
    return moment[1].startswith("before ")


def test_a_worker_frozen_at_any_moment_commits_nothing_once_another_holds_the_lease(
    tmp_path: Path, processes: Processes
) -> None:
    """LEASE.4, LEASE.7: on SQLite a worker that is frozen inside a transaction keeps everybody out, so not there."""
    (tmp_path / "first").mkdir()
    moments = moments_of(Place(tmp_path / "first", processes, FILE))
    assert len(moments) > 15
    if connection.vendor == "sqlite":
        moments = [moment for moment in moments if not is_inside(moment)]
    for number, (subject, moment) in enumerate(random.Random(7).sample(moments, min(ROUNDS, len(moments)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = Place(folder, processes, FILE.replace("name: frozen", f"name: frozen_{number}"))
        freeze_and_thaw(place, subject, moment)


def freeze_and_thaw(place: Place, subject: str, moment: str) -> None:
    frozen = place.worker(subject, moment)
    wait_until(lambda: is_frozen(frozen), 60)
    run = Run.objects.latest("pk")
    wait_until(lambda: not _is_live(run.pk), 60)
    report = report_of(place.worker())
    where = f"{subject}: {moment}"
    assert (report["end"]["status"], report["problems"]) == ("succeeded", []), where
    run.refresh_from_db()
    began = place.effects().began

    frozen.send_signal(signal.SIGCONT)

    # it looked at the run before it froze, and may complain that nothing goes on: it is over
    frozen.communicate(timeout=60)
    late = Event.objects.filter(run=run, sequence__gte=run.next_event).values_list("type", flat=True)
    assert set(late) <= {"late_result"}, where
    assert Run.objects.get(pk=run.pk).lease_epoch == run.lease_epoch, where
    assert place.effects().began == began, where
    assert began["change@1"] == 1, where
    assert inspect_run(run.pk) == [], where


def _is_live(run_id: int) -> bool:

    return Lease.objects.is_live(run_id)
