"""Real processes in bodies: a decided join, a timeout and a cancel end them within seconds and leave none (CTL.3)."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.driving import driver_with
from tests.support.plans import publish_run, workflow
from tests.support.players import output_of
from tests.support.rows import assert_sound
from workflows.ledger.controlling import send
from workflows.ledger.transactions import database_thread
from workflows.models import Attempt, Run
from workflows.statuses import ControlKind
from workflows.steps import KINDS

pytestmark = pytest.mark.django_db(transaction=True)


def alive(pids: Path) -> list[int]:
    """The processes that wrote their number there, and those that still live."""
    found = [int(text) for text in pids.read_text().split()] if pids.exists() else []
    return [pid for pid in found if _lives(pid)]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def sleepers(pids: Path, *, join: str = "all", more: str = "", quick: str = "false") -> str:
    """Three items: two start a process with a child process each and sleep, the last does ``quick`` when they have."""
    return workflow(
        f"""
  - id: each
    kind: map
    over: ${{ [0, 1, 2] }}
    join: {join}
    {more}
    next: {{ failed: continue, timed_out: continue }}
    do:
      - id: work
        kind: shell
        env: {{ INDEX: "${{ index }}" }}
        run: |
          if [ "$INDEX" = 2 ]; then
            until [ -f "{pids}" ] && [ "$(wc -l < "{pids}")" -ge 4 ]; do sleep 0.02; done
            {quick}
            exit 0
          fi
          sleep 300 &
          echo "$!" >> "{pids}"
          echo "$$" >> "{pids}"
          wait
  - {{ id: after, kind: shell, run: echo after }}
""",
        after='output: ["${ steps.each.outcome }", "${ steps.each.counts }", "${ steps.after.output }"]',
    )


def drive(run_id: int, workspaces: Path) -> float:
    """Drive a run to its end with real shell steps; the seconds it took."""
    began = time.monotonic()
    with driver_with(KINDS, workspaces=workspaces) as driver:
        driver.drive(run_id)
    return time.monotonic() - began


def test_the_first_success_ends_the_processes_of_the_others(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run_id = publish_run(sleepers(pids, join="any", quick="true"))
    assert drive(run_id, tmp_path / "w") < 20
    assert len(pids.read_text().split()) == 4
    assert alive(pids) == []
    counts = {"ok": 1, "failed": 0, "cancelled": 2, "not_started": 0, "total": 3}
    assert output_of(run_id) == ["ok", counts, "after"]
    assert set(Attempt.objects.filter(run_id=run_id).values_list("status", flat=True)) == {"cancelled", "succeeded"}
    assert_sound()


def test_a_timeout_of_the_map_ends_the_processes_of_its_items(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run_id = publish_run(sleepers(pids, more="timeout: 2s", quick="sleep 300"))
    assert drive(run_id, tmp_path / "w") < 20
    assert alive(pids) == []
    counts = {"ok": 0, "failed": 0, "cancelled": 3, "not_started": 0, "total": 3}
    assert output_of(run_id) == ["timed_out", counts, "after"]
    assert_sound()


def test_a_cancel_ends_every_process_of_a_map(tmp_path: Path) -> None:
    """CTL.3: it reaches a running effect within two seconds, the whole process group."""
    pids = tmp_path / "pids"
    run_id = publish_run(sleepers(pids, quick="sleep 300"))
    ended_after: list[float] = []

    def cancel_when_all_run() -> None:
        with database_thread():
            deadline = time.monotonic() + 30
            while len(alive(pids)) < 4 and time.monotonic() < deadline:
                os.sched_yield()
                time.sleep(0.02)
            now = datetime.now(UTC)
            send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=now)
            sent = time.monotonic()
            while alive(pids) and time.monotonic() < deadline:
                time.sleep(0.02)
            ended_after.append(time.monotonic() - sent)

    thread = threading.Thread(target=cancel_when_all_run)
    thread.start()
    drive(run_id, tmp_path / "w")
    thread.join()
    assert ended_after[0] < 5  # two seconds on a machine that has nothing else to do
    assert (Run.objects.get(pk=run_id).status, alive(pids)) == ("cancelled", [])
    assert Attempt.objects.filter(run_id=run_id, status__in=["running", "paused"]).count() == 0
    assert_sound()
