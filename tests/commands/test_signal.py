"""``runs signal``: before, during and after the wait for it; what a command says while it waits (CTL 1, 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from tests.processes import Processes, lines_of
from tests.support.rows import assert_sound
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

PAID = """
params: { order: { type: integer } }
steps:
  - { id: paid, kind: wait, signal: payment, match: "${ signal.order == params.order }", timeout: 2h }
output: ${ steps.paid.output }
"""


def waiting(folder: Path) -> int:
    answer = manage("run_workflow", workflow_file(folder, PAID), "-P", "order=7", "--quiet", "--max-steps", "1")
    assert answer.code == 6
    return Run.objects.latest("pk").pk


def test_a_run_says_which_signal_it_waits_for_and_how_to_send_it(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    lines = manage("runs", "show", str(run)).lines
    assert lines[5].startswith("  paid (v1) waits for the signal payment (until ")
    assert lines[6:] == [
        f"  `python manage.py runs signal {run} payment` sends it.",
        f"  `python manage.py run_workflow {run}` goes on with it.",
    ]
    (reason,) = manage("runs", "show", str(run), "--json").json["reasons"]
    assert (reason["cause"], reason["step"], reason["visit"], reason["signal"]) == ("signal", "paid", 1, "payment")


def test_a_signal_that_matches_lets_the_run_go_on_and_others_stay(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    assert manage("runs", "signal", str(run), "payment", "--payload", '{"order": 8}').code == 0
    assert manage("run_workflow", str(run), "--quiet", "--timeout", "100ms").code == 6
    (tmp_path / "paid.json").write_text('{"order": 7, "by": "Zoë"}')
    sent = manage("runs", "signal", str(run), "payment", "--payload", f"@{tmp_path / 'paid.json'}")
    assert sent.lines == [f"run {run}: the signal was accepted; `python manage.py run_workflow {run}` goes on with it."]
    ended = manage("run_workflow", str(run), "--json")
    assert (ended.code, ended.json["output"]) == (0, {"order": 7, "by": "Zoë"})
    assert_sound()


def test_a_signal_may_come_before_its_wait(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, PAID.replace("steps:", "steps:\n  - { id: first, kind: shell, run: 'true' }"))
    assert manage("run_workflow", file, "-P", "order=7", "--quiet", "--max-steps", "1").code == 6
    run = Run.objects.get().pk
    manage("runs", "signal", str(run), "payment", "--payload", '{"order": 7}')
    assert manage("run_workflow", str(run), "--json").json["output"] == {"order": 7}


def test_a_signal_during_the_wait_is_taken_by_the_process_that_waits(tmp_path: Path, processes: Processes) -> None:
    run = waiting(tmp_path)
    waiter = processes.start("run_workflow", str(run))
    assert lines_of(waiter, 1) == [f"run {run}: demo"]
    (told,) = lines_of(waiter, 1)
    assert told.startswith("  paid (v1) waits for the signal payment (until ")
    assert manage("runs", "signal", str(run), "payment", "--payload", '{"order": 7}').code == 0
    out, _ = waiter.communicate(timeout=30)
    assert waiter.returncode == 0
    assert f"run {run} succeeded" in out


def test_the_same_request_id_is_the_same_signal(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    words = ("runs", "signal", str(run), "payment", "--request-id", "r1", "--payload")
    assert manage(*words, '{"order": 1}', "--json").json == {"run": run, "new": True}
    events = Run.objects.get().next_event
    assert manage(*words, '{"order": 1}', "--json").json == {"run": run, "new": False}
    assert Run.objects.get().next_event == events
    other = manage(*words, '{"order": 2}')
    assert (other.code, other.err) == (1, "error: Request id r1 was already used for something else in this run.\n")


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    assert manage("runs", "signal", str(run), "payment", "--payload", "{").code == 2
    refused = manage("runs", "signal", str(run), "payment", "--payload", '{"n": 9007199254740993}', "--json")
    assert (refused.code, refused.json["error"]["problems"][0]["path"]) == (2, "payload.n")
    manage("runs", "cancel", str(run))
    assert manage("runs", "signal", str(run), "payment").err == f"error: Run {run} is already cancelled.\n"


def test_a_question_is_printed_while_the_run_waits_for_something_else(tmp_path: Path, processes: Processes) -> None:
    text = """
steps:
  - id: both
    kind: parallel
    branches:
      person: [{ id: ask, kind: approval, ask: Go?, timeout: 2h }]
      machine: [{ id: heard, kind: wait, signal: done, timeout: 2h }]
"""
    waiter = processes.start("run_workflow", workflow_file(tmp_path, text))
    told = lines_of(waiter, 7)
    run = Run.objects.get().pk
    assert sorted(told[1:3]) == [
        "  v2   both[0]/ask              waiting (for an answer)",
        '  v3   both[1]/heard            waiting (for the signal "done")',
    ]
    assert told[3].startswith("  both[1]/heard (v3) waits for the signal done (until ")
    assert told[4] == "  v2 both[0]/ask: Go?"
    assert told[6] == f"      `python manage.py runs answer {run} v2 --approve`"
    assert manage("runs", "answer", str(run), "v2", "--approve").code == 0
    assert manage("runs", "signal", str(run), "done").code == 0
    waiter.communicate(timeout=30)
    assert waiter.returncode == 0


def test_a_name_that_no_step_can_wait_for_is_refused(tmp_path: Path) -> None:
    run = waiting(tmp_path)
    revision = Run.objects.get().revision
    refused = manage("runs", "signal", str(run), "paymemt")
    assert (refused.code, refused.err) == (
        2,
        f'error: No step of run {run} waits for a signal "paymemt".\nhint: Did you mean "payment"?\n',
    )
    other = manage("runs", "signal", str(run), "x")
    assert other.err == f'error: No step of run {run} waits for a signal "x".\nhint: It waits for payment.\n'
    assert Run.objects.get().revision == revision


def test_a_signal_that_nobody_waits_for_yet_is_said_to_be_kept(tmp_path: Path) -> None:
    text = """
steps:
  - { id: one, kind: wait, signal: first, timeout: 2h }
  - { id: two, kind: wait, signal: "${ 'se' + 'cond' }", timeout: 2h }
"""
    manage("run_workflow", workflow_file(tmp_path, text), "--quiet", "--max-steps", "1")
    run = Run.objects.get().pk
    sent = manage("runs", "signal", str(run), "second")
    assert sent.lines == [
        f'run {run}: the signal is kept: no step waits for "second" now; v1 waits for "first"; '
        f"`python manage.py run_workflow {run}` goes on with it."
    ]
    assert manage("runs", "signal", str(run), "first").code == 0
    assert manage("run_workflow", str(run), "--quiet").code == 0
