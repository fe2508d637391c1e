"""Workers that are killed or frozen for real: nothing of theirs lives on, and nothing of theirs is committed late."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.crashes.effects import EffectLog, read_log
from tests.crashes.ends import end_of
from tests.crashes.life import is_alive
from tests.engine.workers import environment_of, wait_until
from tests.engine.workers import processes as all_processes
from tests.processes import Processes
from tests.stores_of_tests import test_database_url
from workflows.ledger.inspection import inspect_run
from workflows.models import Event, Lease, Run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc"),
]

TTL_MS = 2_000
FILE = """
format: 1
name: frozen
steps:
  - {id: work, kind: shell, access: ACCESS, run: 'echo worked'}
  - {id: wrap_up, kind: shell, access: ACCESS, run: 'echo wrapped'}
output: { said: "${ steps.wrap_up.output }" }
"""
#: Once the mark is there, the work is quick; before, it and what it forks outlast every test.
SLOW = """
format: 1
name: slow
steps:
  - id: work
    kind: shell
    access: read
    run: |
      if mkdir "MARK" 2>/dev/null; then
        trap '' TERM HUP
        setsid sh -c 'sleep 60; :' &
        sh -c 'sleep 60; :' &
        sleep 60
      fi
      echo worked
output: { said: "${ steps.work.output }" }
"""


class Place:
    """A workflow file, the log of its effects, and the workers that live on it."""

    def __init__(self, folder: Path, processes: Processes, text: str) -> None:
        self.file = folder / "workflow.yaml"
        self.file.write_text(text)
        self.log = folder / "effects.log"
        self.processes = processes

    def worker(self, *point: str) -> subprocess.Popen[str]:
        words = ("-m", "tests.crashes.worker", str(self.file), "key", str(self.log), *point)
        settings = {
            "WAYPOST_LEASE_TTL_MS": str(TTL_MS),
            "WAYPOST_HEARTBEAT_MS": str(TTL_MS // 3),
            "DATABASE_URL": impatient_database_url(),
        }
        return self.processes.start_python(*words, env=settings)

    def effects(self) -> EffectLog:
        return read_log(self.log)


def impatient_database_url() -> str:
    """The test's database, whose server ends the session of a worker that is frozen inside a transaction soon."""
    url = test_database_url()
    if url.startswith("sqlite"):
        return url
    return f"{url}?options={quote(f'-c idle_in_transaction_session_timeout={TTL_MS}')}"


def report_of(worker: subprocess.Popen[str]) -> Mapping[str, Any]:
    stdout, stderr = worker.communicate(timeout=60)
    assert worker.returncode == 0, stderr
    report: Mapping[str, Any] = json.loads(stdout)
    return report


def is_frozen(worker: subprocess.Popen[str]) -> bool:
    if worker.poll() is not None:
        raise AssertionError(f"the worker ended instead of freezing: {worker.communicate()}")
    return Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def marked(dispatch_id: str) -> list[int]:
    """The living processes of an effect, wherever they went."""
    mark = f"WAYPOST_IDEMPOTENCY_KEY={dispatch_id}".encode()
    return [number for number in all_processes() if mark in environment_of(number)]


def lease_has_ended() -> bool:
    return not Lease.objects.is_live(Run.objects.get().pk)


def test_a_killed_worker_leaves_no_process_of_its_effects_and_another_goes_on(
    tmp_path: Path, processes: Processes
) -> None:
    """LEASE.7, KILL: during the effect"""
    place = Place(tmp_path, processes, SLOW.replace("MARK", str(tmp_path / "mark")))
    worker = place.worker()
    wait_until(lambda: place.effects().began, 30)
    dispatch_id = place.effects().dispatch_ids["work@1"][0]
    wait_until(lambda: len(marked(dispatch_id)) >= 6)

    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()

    wait_until(lambda: not marked(dispatch_id), 5)
    assert inspect_run(Run.objects.get().pk) == []
    report = report_of(place.worker())
    assert report["end"]["status"] == "succeeded"
    assert report["end"]["output"] == '{"said":"worked"}'
    assert place.effects().dispatch_ids["work@1"] == [dispatch_id, dispatch_id]
    assert report["problems"] == []


def test_the_effects_of_a_frozen_worker_are_stopped_and_it_commits_nothing_after_another_took_over(
    tmp_path: Path, processes: Processes
) -> None:
    """LEASE.7, SET.2"""
    place = Place(tmp_path, processes, SLOW.replace("MARK", str(tmp_path / "mark")))
    frozen = place.worker()
    wait_until(lambda: place.effects().began, 30)
    dispatch_id = place.effects().dispatch_ids["work@1"][0]
    wait_until(lambda: len(marked(dispatch_id)) >= 6)

    frozen.send_signal(signal.SIGSTOP)

    wait_until(lambda: not [number for number in marked(dispatch_id) if is_alive(number)], 10)
    assert is_frozen(frozen)
    report = report_of(place.worker())
    assert report["end"]["output"] == '{"said":"worked"}'
    run = Run.objects.get()
    events = run.next_event

    frozen.send_signal(signal.SIGCONT)

    assert report_of(frozen)["end"] == report["end"]
    late = Event.objects.filter(run=run, sequence__gte=events).values_list("type", flat=True)
    assert set(late) <= {"late_result"}
    assert Run.objects.get().lease_epoch == 2
    assert place.effects().began == {"work@1": 2}
    assert inspect_run(run.pk) == []


OUTSIDE = [
    ("admission", "committed", "write"),
    ("the effect work@1", "before", "read"),
    ("the effect work@1", "after", "write"),
    ("settlement and finish of the run", "before", "read"),
]
INSIDE = [
    ("settlement and finish of the run", "before write 2"),
    ("settlement and finish of the run", "before COMMIT"),
]


@pytest.mark.parametrize(("subject", "moment", "access"), OUTSIDE)
def test_a_worker_frozen_between_transactions_changes_nothing_once_another_holds_the_lease(
    tmp_path: Path, processes: Processes, subject: str, moment: str, access: str
) -> None:
    """LEASE.4, LEASE.7"""
    place = Place(tmp_path, processes, FILE.replace("ACCESS", access))
    frozen = place.worker(subject, moment)
    wait_until(lambda: is_frozen(frozen), 30)
    wait_until(lease_has_ended)
    report = report_of(place.worker())
    assert report["end"]["status"] == "succeeded"
    run = Run.objects.get()
    began = place.effects().began

    frozen.send_signal(signal.SIGCONT)

    assert report_of(frozen)["end"] == report["end"]
    late = Event.objects.filter(run=run, sequence__gte=run.next_event).values_list("type", flat=True)
    assert set(late) <= {"late_result"}
    assert Run.objects.get().lease_epoch == run.lease_epoch
    assert place.effects().began == began
    assert inspect_run(run.pk) == []


@pytest.mark.store("postgresql")
@pytest.mark.parametrize("point", INSIDE, ids=": ".join)
def test_a_worker_frozen_inside_a_transaction_loses_it_to_the_server(
    tmp_path: Path, processes: Processes, point: tuple[str, str]
) -> None:
    """LEASE.4, LEASE.7: the server ends the session, so the run's row is free for the next worker."""
    place = Place(tmp_path, processes, FILE.replace("ACCESS", "read"))
    frozen = place.worker(*point)
    wait_until(lambda: is_frozen(frozen), 30)
    report = report_of(place.worker())
    assert report["end"]["status"] == "succeeded"
    events = Run.objects.get().next_event

    frozen.send_signal(signal.SIGCONT)

    assert report_of(frozen)["end"] == report["end"]
    assert set(Event.objects.filter(sequence__gte=events).values_list("type", flat=True)) <= {"late_result"}
    assert inspect_run(Run.objects.get().pk) == []


@pytest.mark.store("sqlite")
@pytest.mark.parametrize("point", INSIDE, ids=": ".join)
def test_a_worker_frozen_inside_a_transaction_may_commit_it_while_nobody_took_over(
    tmp_path: Path, processes: Processes, point: tuple[str, str]
) -> None:
    """LEASE.7: it had passed its fence, and the file is locked meanwhile."""
    place = Place(tmp_path, processes, FILE.replace("ACCESS", "read"))
    frozen = place.worker(*point)
    wait_until(lambda: is_frozen(frozen), 30)
    wait_until(lease_has_ended)

    frozen.send_signal(signal.SIGCONT)

    report = report_of(frozen)
    assert (report["end"]["status"], report["problems"]) == ("succeeded", [])
    run = Run.objects.get()
    assert run.lease_epoch == 1
    assert end_of(run.pk) == report["end"]
    assert place.effects().began == {"work@1": 1, "wrap_up@1": 1}
