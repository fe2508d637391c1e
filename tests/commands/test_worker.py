"""``run_worker``: several processes share all runs; ends with and without mercy lose nothing (DB 1, LEASE 9)."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.commands.support import manage, workflow_file
from tests.commands.test_processes import wait_until
from tests.processes import TIMEOUT_S, Processes
from tests.support.rows import assert_sound
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Lease, Run
from workflows.operations import crew as crew_module
from workflows.operations.crew import MOST_IDLE_S, Crew
from workflows.operations.driving import Worker
from workflows.operations.duties import Duties
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file

pytestmark = pytest.mark.django_db(transaction=True)

NOTED = """
params: { log: { type: string } }
steps:
  - { id: one, kind: shell, run: 'echo "$WAYPOST_RUN_ID one" >> "$LOG"', env: { LOG: "${ params.log }" } }
  - { id: two, kind: shell, run: 'echo "$WAYPOST_RUN_ID two" >> "$LOG"', env: { LOG: "${ params.log }" } }
"""
SLOW = """
params: { log: { type: string } }
steps:
  - id: slow
    kind: shell
    access: read
    run: 'echo begun >> "$LOG"; i=0; while test $i -lt 600 && ! test -e "$LOG.go"; do sleep 0.05; i=$((i+1)); done'
    env: { LOG: "${ params.log }" }
"""


def started(folder: Path, text: str, count: int, **columns: int) -> list[int]:
    """Runs that nobody drives yet."""
    definition = definition_of_file(Path(workflow_file(folder, text)).read_bytes())
    actor = Actor(name="alice", recorded="alice")
    wish = Start(definition=definition, actor=actor, given={"log": str(folder / "log")})
    return [start(wish).run_id for _ in range(count)]


def test_a_worker_drives_what_is_there_and_says_how_it_ended(tmp_path: Path) -> None:
    runs = started(tmp_path, NOTED, 3)
    answer = manage("run_worker", "--burst", "--threads", "2")
    assert answer.code == 0
    assert answer.lines[0].startswith("worker ")
    assert answer.lines[0].endswith(" drives up to 2 runs at once")
    ends = {line.rsplit(" after ", 1)[0] for line in answer.lines[1:-1]}
    assert ends == {f"  run {run} demo: succeeded" for run in runs}
    assert answer.lines[-1] == "nothing can go on"


def test_a_worker_without_work_says_for_whom_runs_wait(tmp_path: Path) -> None:
    ask = "steps:\n  - { id: ask, kind: approval, ask: Go?, timeout: 2h }\n"
    assert manage("run_workflow", workflow_file(tmp_path, ask), "--quiet").code == 3
    assert manage("run_worker", "--burst").lines[1:] == ["nothing can go on; waiting runs: 1 for people"]


def test_a_quiet_worker_prints_nothing_and_a_loud_one_every_step(tmp_path: Path) -> None:
    started(tmp_path, NOTED, 1)
    assert manage("run_worker", "--burst", "--quiet").out == ""
    (run,) = started(tmp_path, NOTED, 1)
    lines = manage("run_worker", "--burst", "-v", "2").lines
    assert [line.rsplit(" ", 1)[0] for line in lines[1:3]] == [
        f"  run {run} demo: v1   one                      ok",
        f"  run {run} demo: v2   two                      ok",
    ]


def test_a_wrong_number_of_threads_is_refused() -> None:
    with pytest.raises(Exception, match="'0' is not a whole number from 1 to 64"):
        manage("run_worker", "--threads", "0")


def test_eight_processes_share_one_queue_and_drive_each_run_once(tmp_path: Path, processes: Processes) -> None:
    runs = started(tmp_path, NOTED, 40)
    workers = [processes.start("run_worker", "--burst", "--threads", "2") for _ in range(8)]
    ended = [worker.communicate(timeout=TIMEOUT_S) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert [err for _, err in ended] == [""] * 8
    assert Counter((tmp_path / "log").read_text().splitlines()) == {
        f"{run} {step}": 1 for run in runs for step in ("one", "two")
    }
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert_sound()


def test_a_worker_that_is_told_to_stop_hands_its_run_back(tmp_path: Path, processes: Processes) -> None:
    started(tmp_path, SLOW, 1)
    worker = processes.start("run_worker")
    wait_until(lambda: (tmp_path / "log").exists())
    worker.send_signal(signal.SIGTERM)
    (tmp_path / "log.go").touch()
    _, err = worker.communicate(timeout=TIMEOUT_S)
    assert worker.returncode == 0
    assert err == (
        "Handing runs back. What runs may finish within 10 s; a write that is ended then has to be reconciled. "
        "Once more ends what runs now, a third time ends this command.\n"
    )
    assert Lease.objects.get().expires_ms == 0
    assert manage("run_worker", "--burst", "--quiet").code == 0
    assert (tmp_path / "log").read_text() == "begun\n"
    assert Run.objects.get().status == "succeeded"


def test_what_does_not_finish_within_the_grace_period_is_ended(tmp_path: Path, processes: Processes) -> None:
    started(tmp_path, SLOW, 1)
    worker = processes.start("run_worker", env={"WAYPOST_SHUTDOWN_GRACE_MS": "200"})
    wait_until(lambda: (tmp_path / "log").exists())
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=TIMEOUT_S)
    assert Attempt.objects.get().status == "interrupted"
    (tmp_path / "log.go").touch()
    assert manage("run_worker", "--burst", "--quiet").code == 0
    assert [attempt.status for attempt in Attempt.objects.order_by("number")] == ["interrupted", "succeeded"]


def test_another_worker_goes_on_after_a_kill(tmp_path: Path, processes: Processes) -> None:
    runs = started(tmp_path, SLOW, 2)
    short = {"WAYPOST_LEASE_TTL_MS": "1500", "WAYPOST_HEARTBEAT_MS": "300"}
    worker = processes.start("run_worker", env=short)
    wait_until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text() == "begun\nbegun\n")
    processes.kill(worker)
    (tmp_path / "log.go").touch()
    assert manage("run_worker", "--burst", "--quiet").code == 0
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert Attempt.objects.filter(run_id__in=runs, status="interrupted").count() == 2
    assert_sound()


def test_the_most_urgent_run_comes_first_then_who_waits_longest(tmp_path: Path) -> None:
    runs = started(tmp_path, NOTED, 4)
    ledger_transaction(lambda: Run.objects.filter(pk=runs[2]).update(priority=5))()
    assert manage("run_worker", "--burst", "--threads", "1", "--quiet").code == 0
    order = [int(line.split()[0]) for line in (tmp_path / "log").read_text().splitlines()[::2]]
    assert order == [runs[2], runs[0], runs[1], runs[3]]


def test_a_worker_with_nothing_to_do_asks_the_database_calmly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside its duties: looks a second apart, of three statements each."""
    monkeypatch.setattr(crew_module, "Duties", lambda: Duties(()))
    looks: list[float] = []
    worker = Worker(stopping=lambda: len(looks) >= 8, pause=lambda seconds: None)
    crew = Crew(worker, drivers=4, on_idle=lambda: looks.append(crew.idle_s))
    try:
        with CaptureQueriesContext(connection) as queries:
            crew.work(until=lambda: False)
    finally:
        worker.close()
    assert looks[-1] == MOST_IDLE_S
    statements = [query["sql"] for query in queries.captured_queries]
    assert len([sql for sql in statements if "workflows_run" in sql and "priority" in sql]) == len(looks)
    assert len(statements) <= 3 * len(looks)
