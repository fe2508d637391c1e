"""Turns: a run is handed back after so many visits, so that others are driven when all drivers are busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.support import workflow_file
from workflows.models import Event, Lease, Run
from workflows.operations import crew as crew_module
from workflows.operations.crew import Crew
from workflows.operations.driving import Worker
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file

pytestmark = pytest.mark.django_db(transaction=True)

THREE = "steps:\n" + "".join(f"  - {{ id: s{n}, kind: shell, run: 'echo {n}' }}\n" for n in (1, 2, 3))


def started(folder: Path, name: str) -> int:
    definition = definition_of_file(Path(workflow_file(folder, THREE, name=name)).read_bytes())
    return start(Start(definition=definition, actor=Actor(name="alice", recorded="alice"))).run_id


def test_runs_take_turns_when_there_are_fewer_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LEASE.11: one driver, one visit for each turn."""
    monkeypatch.setattr(crew_module, "STRETCH_VISITS", 1)
    monkeypatch.setattr(crew_module, "PROPOSALS_S", 0.0)
    first, second = started(tmp_path, "one"), started(tmp_path, "two")
    worker = Worker(stopping=lambda: False, pause=lambda seconds: None)
    try:
        Crew(worker, drivers=1).work(until=lambda: not Run.objects.live().exists())
    finally:
        worker.close()
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert all(epoch >= 3 for epoch in Lease.objects.values_list("epoch", flat=True))
    began = Event.objects.filter(type="step_started").order_by("at", "pk").values_list("run_id", flat=True)
    assert list(began) == [first, second] * 3
    assert not Event.objects.filter(type="lease_recovered").exists()
