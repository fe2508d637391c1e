"""The worker of a process: how far it takes a run, and what becomes of errors on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support import workflow_file
from workflows.engine import scheduler
from workflows.errors import Refusal
from workflows.ledger.leases import acquire
from workflows.models import Attempt, Lease, Run
from workflows.operations.driving import Worker, standing_of, worker_name
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file

pytestmark = pytest.mark.django_db(transaction=True)

THREE = "steps:\n" + "".join(f"  - {{ id: s{n}, kind: shell, run: 'echo {n}' }}\n" for n in (1, 2, 3))


def started(folder: Path, text: str) -> int:
    definition = definition_of_file(Path(workflow_file(folder, text)).read_bytes())
    return start(Start(definition=definition, actor=Actor(name="alice", recorded="alice"))).run_id


def driven(run_id: int, *, stopping: Callable[[], bool] = lambda: False, **options: Any) -> Any:
    pauses: list[float] = []
    worker = Worker(stopping=stopping, pause=pauses.append)
    try:
        return worker.drive(run_id, **options)
    finally:
        worker.close()


def test_a_worker_takes_a_run_to_its_end(tmp_path: Path) -> None:
    standing = driven(started(tmp_path, THREE))
    assert (standing.status, standing.visits, standing.is_final) == ("succeeded", 3, True)


def test_a_worker_that_shall_stop_drives_nothing(tmp_path: Path) -> None:
    run = started(tmp_path, THREE)
    assert driven(run, stopping=lambda: True).status == "queued"
    assert Run.objects.get().lease_epoch == 0


def test_a_number_of_visits_holds_over_several_stretches_of_driving(tmp_path: Path) -> None:
    text = "steps:\n" + "".join(
        f"  - {{ id: s{n}, kind: shell, run: 'echo {n}' }}\n  - {{ id: w{n}, kind: wait, for: 5ms }}\n" for n in (1, 2)
    )
    run = started(tmp_path, text)
    assert driven(run, max_visits=3).visits == 3
    assert driven(run, max_visits=9).status == "succeeded"


def test_a_worker_has_a_name_of_its_own_that_leases_and_attempts_carry(tmp_path: Path) -> None:
    run = started(tmp_path, THREE)
    driven(run)
    host, process, nonce = worker_name().rsplit(":", 2)
    assert host
    assert process.isdigit()
    assert len(nonce) == 8
    assert {attempt.worker for attempt in Attempt.objects.all()} == {worker_name()}


def test_a_run_that_waits_for_an_operator_is_left(tmp_path: Path) -> None:
    run = started(tmp_path, "steps: [{ id: nap, kind: wait, for: 1h }]\n")
    looks = iter([False] * 20 + [True] * 1000)
    standing = driven(run, stopping=lambda: next(looks))
    assert (standing.status, standing.goes_on_by_itself) == ("waiting", True)
    assert Lease.objects.get().expires_ms == 0


def test_an_engine_that_fails_at_the_same_place_again_and_again_poisons_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = started(tmp_path, THREE)

    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(scheduler, "decide", fail)
    standing = driven(run)
    assert standing.status == "failed"
    assert '"run.poisoned"' in Run.objects.get().error
    assert len([record for record in caplog.records if record.getMessage() == f"Driving run {run} failed."]) == 5


def test_a_lease_of_another_worker_is_respected(tmp_path: Path) -> None:
    run = started(tmp_path, THREE)
    acquire(run_id=run, owner="other:1:x", ttl_ms=60_000, engine_versions=frozenset({1}))
    with pytest.raises(Refusal, match=r"is driven by other:1:x until"):
        driven(run)
    assert standing_of(run).status == "queued"
