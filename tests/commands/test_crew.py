"""Trees of runs, concurrency keys and limits through the command line: what it waits for, how it ends (PUB 4, 5, 9, 10)."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from tests.commands.test_processes import wait_until
from tests.processes import TIMEOUT_S, Processes, lines_of
from tests.support.rows import assert_sound
from workflows.models import Run, Slot

pytestmark = pytest.mark.django_db(transaction=True)

KID = """
params: { n: { type: integer } }
steps:
  - { id: work, kind: shell, run: 'echo "$N"', env: { N: "${ params.n }" }, parse: json }
  - { id: ok, kind: approval, ask: "Take ${ params.n }?", timeout: 2h, only_if: "${ params.n > 1 }" }
output: ${ steps.work.output }
"""
PARENT = """
steps:
  - id: kids
    kind: map
    over: ${ [1, 2] }
    do: [{ id: kid, kind: workflow, ref: kid, with: { n: "${ item }" } }]
output: ${ steps.kids.output }
"""
HOLDER = """
concurrency: { key: door, when_full: FULL }
steps: [{ id: ask, kind: approval, ask: Done?, timeout: 2h }]
"""
LIMITED = """
steps: [{ id: nap, kind: shell, access: read, limit: { group: db, max: 1 }, run: 'touch "MARK"; until test -e "MARK.go"; do sleep 0.02; done' }]
"""


@pytest.fixture
def kid(tmp_path: Path) -> None:
    """A published workflow that asks somebody when it is given more than 1."""
    assert manage("workflows", "publish", workflow_file(tmp_path, KID, name="kid")).code == 0


def holder(folder: Path, when_full: str = "queue") -> tuple[str, int]:
    """The file of a workflow with a concurrency key, and a run of it that waits for people and holds the slot."""
    file = workflow_file(folder, HOLDER.replace("FULL", when_full), name="holder")
    assert manage("run_workflow", file, "--quiet").code == 3
    return file, Run.objects.latest("pk").pk


STEPPING_KID = """
steps:
  - { id: one, kind: shell, run: echo 1 }
  - { id: two, kind: shell, run: echo 2 }
"""
CALLS_ONE = "steps: [{ id: call, kind: workflow, ref: kid }, { id: last, kind: shell, run: echo 3 }]\n"


def test_max_steps_counts_the_visits_of_child_runs_too(tmp_path: Path) -> None:
    assert manage("workflows", "publish", workflow_file(tmp_path, STEPPING_KID, name="kid")).code == 0
    file = workflow_file(tmp_path, CALLS_ONE, name="parent")
    codes, made = [], []
    answer = manage("run_workflow", file, "--max-steps", "1")
    parent = Run.objects.get(workflow__name="parent").pk
    while answer.code == 6 and len(codes) < 9:
        codes.append(answer.code)
        made.append(sum(Run.objects.values_list("visits", flat=True)))
        answer = manage("run_workflow", str(parent), "--max-steps", "1")
    assert (made, answer.code) == ([1, 2, 3], 0)
    assert sum(Run.objects.values_list("visits", flat=True)) == 4
    assert_sound()


def test_child_runs_are_driven_with_their_parent_and_their_questions_are_printed(tmp_path: Path, kid: None) -> None:
    answer = manage("run_workflow", workflow_file(tmp_path, PARENT, name="parent"))
    parent = Run.objects.get(workflow__name="parent").pk
    first, second = Run.objects.filter(parent_run=parent).order_by("pk").values_list("pk", flat=True)
    assert answer.code == 3
    told = [re.sub(r" \d+\.\d\ds", "", " ".join(line.split())) for line in answer.lines]
    assert {f"run {first} kid: v1 work ok", f"run {first} kid: v2 ok skipped"} <= set(told)
    assert {f"run {first} kid: succeeded after", f"run {second} kid: waits for people"} <= set(told)
    at = told.index(f"run {parent} is waiting")
    assert [re.sub(r"until .*", "until THEN", line) for line in told[at:]] == [
        f"run {parent} is waiting",
        f"kids[1]/kid (v3) waits for run {second}, which is paused",
        f"run {second} asks:",
        "v2 ok: Take 2?",
        "for everyone; until THEN",
        f"`python manage.py runs answer {second} v2 --approve`",
        f"`python manage.py runs answer {second} v2 --reject`",
        f"`python manage.py run_workflow {parent}` goes on after the answers.",
    ]
    assert manage("runs", "show", str(parent), "--json").json["children"] == [first, second]
    assert manage("runs", "answer", str(second), "--approve").code == 0
    ended = manage("run_workflow", str(parent), "--json")
    assert (ended.code, ended.json["output"]) == (0, [1, 2])
    assert_sound()


def test_a_run_in_line_says_behind_whom_and_goes_on_when_the_slot_is_free(tmp_path: Path, processes: Processes) -> None:
    file, first = holder(tmp_path)
    waiter = processes.start("run_workflow", file)
    (begun, told) = lines_of(waiter, 2)
    second = Run.objects.latest("pk").pk
    assert begun == f"run {second}: holder"
    assert told == f'  it waits in line for a slot of "door", held by run {first}'
    manage("runs", "answer", str(first), "--approve")
    assert manage("run_workflow", str(first), "--quiet").code == 0
    out, _ = waiter.communicate(timeout=TIMEOUT_S)
    assert waiter.returncode == 3
    assert "  v1 ask: Done?" in out.splitlines()
    assert Slot.objects.get().run_id == second


def test_a_run_that_is_left_in_line_keeps_its_place(tmp_path: Path) -> None:
    file, first = holder(tmp_path)
    assert manage("run_workflow", file, "--quiet", "--timeout", "50ms").code == 6
    second = Run.objects.latest("pk").pk
    third = manage("run_workflow", file, "--timeout", "50ms")
    assert third.code == 6
    assert third.lines[1:] == [
        f"run {second + 1} is queued",
        f'  it waits in line for a slot of "door" behind 1 other run, held by run {first}',
        f"  `python manage.py run_workflow {second + 1}` goes on with it.",
    ]
    shown = manage("runs", "show", str(first)).lines
    assert '  has slot 1 of 1 of "door"' in shown
    manage("runs", "cancel", str(first))
    assert manage("run_workflow", str(second + 1), "--quiet", "--timeout", "50ms").code == 6
    assert manage("run_workflow", str(second), "--quiet").code == 3


def test_ctrl_c_leaves_a_run_in_line(tmp_path: Path, processes: Processes) -> None:
    file, first = holder(tmp_path)
    waiter = processes.start("run_workflow", file)
    lines_of(waiter, 2)
    waiter.send_signal(signal.SIGINT)
    out, _ = waiter.communicate(timeout=TIMEOUT_S)
    assert waiter.returncode == 6
    assert out.splitlines()[0] == f"run {first + 1} is queued"
    assert list(Slot.objects.order_by("id").values_list("run_id", "number")) == [(first, 1), (first + 1, None)]


def test_a_cancel_takes_a_queued_run_out_of_the_line(tmp_path: Path) -> None:
    file, first = holder(tmp_path)
    manage("run_workflow", file, "--quiet", "--timeout", "50ms")
    second = Run.objects.latest("pk").pk
    assert manage("runs", "cancel", str(second)).lines == [f"run {second}: cancelled"]
    assert list(Slot.objects.values_list("run_id", flat=True)) == [first]
    assert_sound()


def test_a_full_key_may_reject(tmp_path: Path) -> None:
    file, first = holder(tmp_path, "reject")
    refused = manage("run_workflow", file)
    assert (refused.code, refused.err.splitlines()[:1]) == (
        1,
        [f"error: No slot of door is free (run {first}); the limit is 1."],
    )
    assert Run.objects.count() == 1


def test_an_operator_may_start_beside_a_full_key_with_a_reason(tmp_path: Path) -> None:
    file, first = holder(tmp_path, "reject")
    assert manage("run_workflow", file, "--quiet", "--over-limit", "the site is down").code == 3
    assert list(Slot.objects.values_list("run_id", flat=True)) == [first]


def test_the_oldest_may_give_way(tmp_path: Path) -> None:
    file, first = holder(tmp_path, "cancel_oldest")
    answer = manage("run_workflow", file, "--quiet")
    assert answer.code == 3
    assert Run.objects.get(pk=first).status == "cancelled"
    assert list(Slot.objects.values_list("run_id", flat=True)) == [first + 1]
    assert_sound()


def test_a_step_waits_for_its_place_and_says_who_has_it(tmp_path: Path, processes: Processes) -> None:
    mark = tmp_path / "mark"
    file = workflow_file(tmp_path, LIMITED.replace("MARK", str(mark)), name="limited")
    holding = processes.start("run_workflow", file, "--quiet")
    wait_until(mark.exists)
    first = Run.objects.get().pk
    left = manage("run_workflow", file, "--timeout", "1500ms")
    assert left.code == 6
    assert left.lines[1] == '       nap                      waiting (for a place in "db")'
    assert left.lines[-3:-1] == [
        f"run {first + 1} is waiting",
        f'  nap waits for a place in "db", held by run {first}',
    ]
    waiter = processes.start("run_workflow", str(first + 1))
    assert lines_of(waiter, 2)[1] == f'  nap waits for a place in "db", held by run {first}'
    Path(f"{mark}.go").touch()
    holding.communicate(timeout=TIMEOUT_S)
    waiter.communicate(timeout=TIMEOUT_S)
    assert (holding.returncode, waiter.returncode) == (0, 0)
    assert not Slot.objects.exists()
    assert_sound()


def test_a_cancel_of_the_parent_reaches_its_children(tmp_path: Path, kid: None) -> None:
    assert manage("run_workflow", workflow_file(tmp_path, PARENT, name="parent"), "--quiet").code == 3
    parent = Run.objects.get(workflow__name="parent").pk
    manage("runs", "cancel", str(parent))
    assert manage("run_worker", "--burst", "--quiet").code == 0
    assert sorted(Run.objects.values_list("status", flat=True)) == ["cancelled", "cancelled", "succeeded"]
    assert_sound()
