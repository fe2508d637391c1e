"""``runs pause`` and ``runs resume``: what runs settles, nothing new starts (CTL 4)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from tests.commands.test_processes import wait_until
from tests.processes import Processes
from workflows.models import Attempt, Run, Visit

pytestmark = pytest.mark.django_db(transaction=True)

TWO = """
steps:
  - { id: first, kind: shell, run: 'echo one' }
  - { id: nap, kind: wait, for: 50ms }
  - { id: second, kind: shell, run: 'echo two' }
"""


def test_a_held_run_starts_nothing_and_says_who_holds_it(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, TWO)
    assert manage("run_workflow", file, "--quiet", "--max-steps", "1").code == 6
    run = Run.objects.get().pk
    held = manage("runs", "pause", str(run), "--reason", "the disk is full")
    assert held.lines == [f"run {run}: is held; `python manage.py runs resume {run}` lets it go on"]
    assert manage("run_workflow", str(run), "--quiet").code == 3
    assert Visit.objects.filter(run=run).count() == 1
    shown = [re.sub(r"\d{4}-\S+ \S+:", "THEN:", line) for line in manage("runs", "show", str(run)).lines]
    assert re.fullmatch(r"  held by shell:\S+ since THEN: the disk is full", shown[3])
    assert shown[4:] == [
        f"run {run} is paused",
        "  an operator holds the run",
        f"  `python manage.py runs resume {run}` lets it go on.",
    ]
    assert manage("runs", "pause", str(run)).lines == [f"run {run}: was held already"]
    released = manage("runs", "resume", str(run))
    assert released.lines == [f"run {run}: is no longer held; `python manage.py run_workflow {run}` goes on with it"]
    assert manage("run_workflow", str(run), "--quiet").code == 0


def test_a_pause_lets_the_running_step_of_another_process_settle(tmp_path: Path, processes: Processes) -> None:
    text = f"""
steps:
  - {{ id: slow, kind: shell, run: 'until test -e "{tmp_path}/go"; do sleep 0.02; done' }}
  - {{ id: after, kind: shell, run: 'true' }}
"""
    driver = processes.start("run_workflow", workflow_file(tmp_path, text), "--json")
    wait_until(lambda: Attempt.objects.filter(status="running").exists())
    run = Run.objects.get().pk
    manage("runs", "pause", str(run))
    (tmp_path / "go").touch()
    driver.communicate(timeout=30)
    assert driver.returncode == 3
    assert [(visit.step, visit.outcome) for visit in Visit.objects.filter(run=run)] == [("slow", "ok")]


def test_a_hold_is_refused_after_the_end(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, TWO), "--quiet")
    run = Run.objects.get().pk
    refused = manage("runs", "pause", str(run), "--json")
    assert refused.code == 1
    assert refused.json[0]["error"]["message"] == f"Run {run} is already succeeded."
