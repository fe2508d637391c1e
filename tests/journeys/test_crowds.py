"""Many people, many items, many processes at once: the results are as stated and nothing is left over."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from tests.commands.test_processes import process_is_alive, wait_until
from tests.processes import TIMEOUT_S, Processes
from tests.support.rows import assert_sound
from workflows.models import Attempt, Interrupt, Lease, Run, Scope, Slot, Visit

pytestmark = pytest.mark.django_db(transaction=True)

QUESTIONS = """
params: { people: { type: array, items: { type: string } } }
steps:
  - id: each
    kind: map
    over: ${ params.people }
    concurrency: 50
    do:
      - { id: ask, kind: question, ask: "What does ${ item } say?", form: { word: { type: string } }, timeout: 2h }
    collect: ${ steps.ask.output.word }
output: ${ steps.each.output }
"""
ANSWERS = """
import json, sys
from django.core.management import call_command
run, answers = sys.argv[1], json.loads(sys.argv[2])
for visit, word in answers:
    call_command("runs", "answer", run, visit, "--field", f"word={word}")
"""
SLOW_MAP = """
params: { folder: { type: string } }
steps:
  - id: list
    kind: shell
    run: python3 -c "print(list(range(400)))"
    parse: json
  - id: each
    kind: map
    over: ${ steps.list.output }
    concurrency: 8
    do:
      - id: work
        kind: shell
        run: 'if test "$WAYPOST_INDEX" -gt 20; then echo $$ >> "$FOLDER/running"; sleep 60; fi'
        env: { FOLDER: "${ params.folder }" }
      - { id: ask, kind: approval, ask: Go on?, timeout: 2h, only_if: "${ index % 5 == 0 && index < 21 }" }
finally:
  - { id: clean, kind: shell, run: 'touch "$FOLDER/cleaned"', env: { FOLDER: "${ params.folder }" } }
"""
KID = """
params: { n: { type: integer }, log: { type: string } }
steps:
  - id: read
    kind: shell
    access: read
    run: 'echo "$N read" >> "$LOG"; sleep 0.1; echo $((N * 10))'
    env: { N: "${ params.n }", LOG: "${ params.log }" }
    parse: json
  - { id: add, kind: assign, set: { sum: "${ steps.read.output + 1 }" } }
  - id: last
    kind: shell
    access: read
    run: 'echo "$N last" >> "$LOG"; sleep 0.1; echo $((N + 1))'
    env: { N: "${ vars.sum }", LOG: "${ params.log }" }
    parse: json
vars: { sum: 0 }
output: ${ steps.last.output }
"""
PARENT = """
params: { log: { type: string } }
steps:
  - id: kids
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6] }
    concurrency: 3
    do: [{ id: kid, kind: workflow, ref: kid, with: { n: "${ item }", log: "${ params.log }" } }]
output: ${ steps.kids.output }
"""


def test_fifty_questions_are_answered_by_five_processes_in_random_order(tmp_path: Path, processes: Processes) -> None:
    people = [f"p{number}" for number in range(50)]
    file = workflow_file(tmp_path, QUESTIONS)
    assert manage("run_workflow", file, "-P", f"people:={json.dumps(people)}", "--quiet").code == 3
    run = Run.objects.get()
    words = {question.visit: question.ask.split()[2] for question in Interrupt.objects.filter(run=run)}
    shuffled = [(f"v{visit}", f"hello {person}") for visit, person in words.items()]
    random.Random(7).shuffle(shuffled)
    driver = processes.start("run_workflow", str(run.pk), "--quiet")
    crowd = [
        processes.start_script(ANSWERS, str(run.pk), json.dumps(shuffled[shell::5] + shuffled[shell : shell + 2]))
        for shell in range(5)
    ]
    for shell in [*crowd, driver]:
        _, err = shell.communicate(timeout=TIMEOUT_S)
        assert err == ""
    assert [shell.returncode for shell in crowd] == [0] * 5
    ended = manage("run_workflow", str(run.pk), "--json")
    assert (ended.code, ended.json["output"]) == (0, [f"hello {person}" for person in people])
    assert set(Interrupt.objects.values_list("status", flat=True)) == {"answered"}
    assert_sound()


def test_a_cancel_in_the_middle_of_a_large_map_leaves_nothing(tmp_path: Path, processes: Processes) -> None:
    driver = processes.start("run_workflow", workflow_file(tmp_path, SLOW_MAP), "-P", f"folder={tmp_path}")
    running = tmp_path / "running"
    wait_until(lambda: running.exists() and Interrupt.objects.filter(status="open").count() == 5)
    run = Run.objects.get()
    assert manage("runs", "cancel", str(run.pk)).lines == [f"run {run.pk}: is being cancelled by its worker"]
    out, err = driver.communicate(timeout=TIMEOUT_S)
    assert (driver.returncode, err) == (4, "")
    assert "was cancelled after" in out
    assert (tmp_path / "cleaned").exists()
    assert not [pid for pid in running.read_text().split() if process_is_alive(int(pid))]
    assert not Interrupt.objects.filter(status="open").exists()
    assert not Attempt.objects.filter(status__in=["running", "paused"]).exists()
    assert not Visit.objects.filter(status="open").exists()
    assert not Scope.objects.exclude(phase="ended").exists()
    assert not Slot.objects.exists()
    assert Lease.objects.get().expires_ms == 0
    assert_sound()


@pytest.mark.parametrize("lines", [2, 7])
def test_a_tree_goes_on_after_a_kill_to_the_same_result(tmp_path: Path, processes: Processes, lines: int) -> None:
    manage("workflows", "publish", workflow_file(tmp_path, KID, name="kid"))
    file, log = workflow_file(tmp_path, PARENT, name="parent"), tmp_path / "log"
    short = {"WAYPOST_LEASE_TTL_MS": "1500", "WAYPOST_HEARTBEAT_MS": "300"}
    driver = processes.start("run_workflow", file, "-P", f"log={log}", env=short)
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) >= lines)
    processes.kill(driver)
    parent = Run.objects.get(workflow__name="parent").pk
    settled = {(row.run_id, row.number) for row in Visit.objects.filter(status="settled")}
    wait_until(lambda: not Lease.objects.is_live(parent))
    ended = manage("run_workflow", str(parent), "--json")
    assert (ended.code, ended.json["output"]) == (0, [12, 22, 32, 42, 52, 62])
    assert ended.json["children"] == list(
        Run.objects.filter(parent_run=parent).values_list("pk", flat=True).order_by("pk")
    )
    assert len(ended.json["children"]) == 6
    written = log.read_text().splitlines()
    repeated = Attempt.objects.filter(status="interrupted", run__parent_run=parent)
    assert 12 <= len(written) <= 12 + repeated.count()
    assert not {(row.run_id, row.visit) for row in repeated} & settled
    assert not Lease.objects.filter(expires_ms__gt=0).exists()
    assert_sound()
