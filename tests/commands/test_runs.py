"""``runs list|show|events|cancel|resume|retry|reconcile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.utils import timezone

from tests.commands.left_runs import interrupted_run, waiting_run
from tests.commands.support import give_stdin, manage, workflow_file
from workflows.ledger.controlling import send
from workflows.models import Attempt, Event, RowVersion, Run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

SUCCEEDS = "steps: [{ id: a, kind: shell, run: echo hello }]\n"
FAILS_ONCE = """
params: { flag: { type: string } }
steps:
  - { id: first, kind: shell, run: echo first }
  - { id: fragile, kind: shell, run: 'test -e "$FLAG" && echo repaired', env: { FLAG: "${ params.flag }" } }
output: ${ steps.fragile.output }
"""
SLEEPS = "steps:\n  - { id: nap, kind: wait, for: 1h }\n"
SLEEPS_AND_CLEANS = SLEEPS + "finally:\n  - { id: clean, kind: shell, run: echo cleaned }\n"
BACKS_OFF = """
params: { flag: { type: string } }
steps:
  - id: fragile
    kind: shell
    run: test -e "$FLAG"
    env: { FLAG: "${ params.flag }" }
    retry: { attempts: 2, wait: 1h, max_wait: 1h, jitter: none }
"""


def finished_run(folder: Path, text: str = SUCCEEDS, name: str = "demo", *words: str) -> int:
    manage("run_workflow", workflow_file(folder, text, name), "--quiet", *words)
    return Run.objects.latest("pk").pk


# ---- list ------------------------------------------------------------------------------------------------------------


def test_the_list_shows_the_newest_runs_first_and_filters(tmp_path: Path) -> None:
    first = finished_run(tmp_path)
    second = finished_run(tmp_path, "steps: [{ id: b, kind: shell, run: 'echo no >&2; exit 1' }]\n", "other")
    listed = manage("runs", "list", "--json").json
    assert [(row["run"], row["workflow"], row["status"]) for row in listed] == [
        (second, "other", "failed"),
        (first, "demo", "succeeded"),
    ]
    assert listed[0]["error"] == {"code": "exit_nonzero", "step": "b", "message": "Exit code 1: no"}

    def numbers(*words: str) -> list[int]:
        return [row["run"] for row in manage("runs", "list", *words, "--json").json]

    assert numbers("--workflow", "demo") == [first]
    assert numbers("--status", "failed") == [second]
    assert numbers("--status", "failed", "--status", "succeeded") == [second, first]
    assert numbers("--live") == []
    assert numbers("--before", str(second)) == [first]
    assert numbers("--limit", "1") == [second]
    assert numbers("--started-by", "nobody") == []


def test_the_list_for_people_is_a_table(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    heading, row = manage("runs", "list").lines
    assert heading.split() == ["RUN", "WORKFLOW", "STATUS", "STARTED", "BY"]
    assert row.split()[:3] == [str(run), "demo", "succeeded"]
    assert manage("runs", "list", "--live").out == "There are no such runs.\n"


# ---- show ------------------------------------------------------------------------------------------------------------


def test_show_prints_parameters_steps_and_the_result(tmp_path: Path) -> None:
    run = finished_run(tmp_path, FAILS_ONCE, "demo", "-P", "flag=/nowhere")
    lines = manage("runs", "show", str(run)).lines
    assert lines[:2] == [f"run {run}: demo", "  flag = /nowhere"]
    assert [line.split()[:4] for line in lines[2:5]] == [
        ["VISIT", "STEP", "OUTCOME", "TRIES"],
        ["v1", "first", "ok", "1"],
        ["v2", "fragile", "failed", "1"],
    ]
    assert lines[-1] == "  exit_nonzero in fragile: Exit code 1."


def test_show_of_several_runs_is_a_list_and_takes_numbers_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [finished_run(tmp_path), finished_run(tmp_path)]
    give_stdin(monkeypatch, f"{runs[0]}\n{runs[1]}\n")
    assert [one["run"] for one in manage("runs", "show", "-", "--json").json] == runs
    assert manage("runs", "show", str(runs[0]), "--json").json["run"] == runs[0]


def test_a_refused_entry_is_not_in_the_list_of_visits(tmp_path: Path) -> None:
    text = "steps:\n  - { id: a, kind: assign, set: {}, max_visits: 2, next: { ok: a, exhausted: done } }\n"
    document = manage("runs", "show", str(finished_run(tmp_path, text)), "--json").json
    assert [(visit["number"], visit["path"]) for visit in document["visits"]] == [(1, "a"), (2, "a#2")]
    assert Run.objects.get().visits == 3


def test_a_run_as_it_was_at_a_revision(tmp_path: Path) -> None:
    run = finished_run(tmp_path, FAILS_ONCE, "demo", "-P", "flag=/nowhere")
    document = manage("runs", "show", str(run), "--revision", "1", "--json").json
    assert (document["status"], document["visits"], document["events_cursor"]) == ("queued", [], 1)
    current = Run.objects.get().revision
    for revision in ("0", str(current + 1)):
        answer = manage("runs", "show", str(run), "--revision", revision)
        assert answer.code == 2
        assert answer.err == f"error: Run {run} has no revision {revision}; it has 1 to {current}.\n"


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    answer = manage("runs", "show", "7")
    assert (answer.code, answer.err) == (2, "error: There is no run 7.\n")
    answer = manage("runs", "show", "seven", "--json")
    assert answer.json == {
        "error": {"code": "input.invalid", "message": '"seven" is not the number of a run.', "hint": "", "problems": []}
    }


# ---- events ----------------------------------------------------------------------------------------------------------


def test_events_come_in_order_after_the_cursor(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    events = manage("runs", "events", str(run), "--json").json
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == [
        "run_started",
        "step_started",
        "step_succeeded",
        "run_closing",
        "run_succeeded",
    ]
    assert manage("runs", "events", str(run), "--after", "3", "--json").json == events[3:]
    assert manage("runs", "events", str(run), "--after", "99", "--json").json == []


def test_following_a_finished_run_ends_at_once_with_one_object_per_line(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    lines = manage("runs", "events", str(run), "--follow", "--json").lines
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4, 5]


def test_events_for_people_are_lines(tmp_path: Path) -> None:
    run = finished_run(tmp_path)
    third = manage("runs", "events", str(run)).lines[2]
    assert third.split()[0] == "3"
    assert third.endswith("step_succeeded v1.1 outcome=ok step=a")


# ---- cancel ----------------------------------------------------------------------------------------------------------


def test_a_cancelled_run_without_closing_steps_ends_at_once(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, SLEEPS)
    answer = manage("runs", "cancel", str(run))
    assert (answer.code, answer.out) == (0, f"run {run}: cancelled\n")
    assert Run.objects.get().status == "cancelled"
    again = manage("runs", "cancel", str(run))
    assert (again.code, again.out) == (0, f"run {run}: was cancelled already\n")
    assert manage("run_workflow", str(run)).code == 4


def test_closing_steps_of_a_cancelled_run_wait_for_a_worker(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, SLEEPS_AND_CLEANS)
    answer = manage("runs", "cancel", str(run))
    assert (
        answer.out == f"run {run}: is being cancelled; `python manage.py run_workflow {run}` runs its closing steps\n"
    )
    ended = manage("run_workflow", str(run), "--json")
    assert ended.code == 4
    assert [(visit["step"], visit["outcome"]) for visit in ended.json["visits"]] == [
        ("nap", "cancelled"),
        ("clean", "ok"),
    ]


def test_several_runs_are_cancelled_and_one_refusal_does_not_stop_the_others(tmp_path: Path) -> None:
    over, live = finished_run(tmp_path), waiting_run(tmp_path, SLEEPS)
    answer = manage("runs", "cancel", str(over), "999", str(live), "--yes", "--json")
    assert answer.code == 1
    assert [(one["run"], one["done"], one["error"] and one["error"]["code"]) for one in answer.json] == [
        (over, None, "run.terminal"),
        (999, None, "run.not_found"),
        (live, "cancelled", None),
    ]


# ---- resume, retry ---------------------------------------------------------------------------------------------------


def test_a_failed_run_goes_on_at_the_failed_step(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = finished_run(tmp_path, FAILS_ONCE, "demo", "-P", f"flag={flag}")
    flag.touch()
    answer = manage("runs", "resume", str(run), "--reason", "the disk is back")
    assert answer.out == f"run {run}: is open again; `python manage.py run_workflow {run}` goes on with it\n"
    assert '"reason":"the disk is back"' in Event.objects.get(run_id=run, type="run_reopened").payload
    document = manage("run_workflow", str(run), "--json").json
    assert (document["status"], document["output"]) == ("succeeded", "repaired")
    assert [(visit["step"], len(visit["attempts"])) for visit in document["visits"]] == [("first", 1), ("fragile", 2)]


def test_a_held_run_does_not_go_on_until_it_is_resumed(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, "steps:\n  - { id: nap, kind: wait, for: 200ms }\n")
    send(
        run_id=run,
        kind=ControlKind.PAUSE,
        payload={"reason": "freeze"},
        request_id="1",
        sender="ops",
        now=timezone.now(),
    )
    held = manage("run_workflow", str(run))
    assert held.code == 3
    assert held.lines[-2:] == [
        "  nap waits for a moment" + held.lines[-2][24:],
        f"  `python manage.py runs resume {run}` lets it go on.",
    ]
    revision = Run.objects.get().revision
    assert manage("run_workflow", str(run)).code == 3
    assert Run.objects.get().revision == revision
    answer = manage("runs", "resume", str(run))
    assert answer.out == f"run {run}: is no longer held; `python manage.py run_workflow {run}` goes on with it\n"
    assert manage("run_workflow", str(run)).code == 0


def test_a_run_that_goes_on_anyway_is_not_resumed(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, SLEEPS)
    answer = manage("runs", "resume", str(run))
    assert answer.code == 1
    assert answer.err == (f"error: Run {run} is waiting; only failed, blocked and abandoned runs go on again.\n")


def test_retry_ends_a_back_off(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = waiting_run(tmp_path, BACKS_OFF, flag=str(flag))
    assert Run.objects.get().status == "waiting"
    flag.touch()
    answer = manage("runs", "retry", str(run))
    assert answer.out == f"run {run}: tries again now; `python manage.py run_workflow {run}` goes on with it\n"
    assert manage("run_workflow", str(run)).code == 0


def test_retry_opens_a_failed_run_and_refuses_where_nothing_waits(tmp_path: Path) -> None:
    failed = finished_run(tmp_path, FAILS_ONCE, "demo", "-P", "flag=/nowhere")
    answer = manage("runs", "retry", str(failed), "--json").json
    assert (answer[0]["status"], answer[0]["error"]) == ("queued", None)
    waiting = waiting_run(tmp_path, SLEEPS)
    refused = manage("runs", "retry", str(waiting))
    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"error: Nothing in run {waiting} waits to be tried again.",
        f"hint: `python manage.py runs show {waiting}` says why.",
    ]


# ---- reconcile (ADM.6) -----------------------------------------------------------------------------------------------


def test_it_happened_records_the_result_as_entered_and_the_run_goes_on(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path)
    shown = manage("run_workflow", str(run))
    assert shown.code == 5
    assert shown.lines[-2:] == [
        "  deploy (v2) was interrupted, and nobody knows whether it happened",
        f"  Say what happened: `python manage.py runs reconcile {run} happened|did_not|stop --reason …`.",
    ]
    answer = manage("runs", "reconcile", str(run), "happened", "--text", "build 7", "--reason", "seen in the log")
    assert (answer.code, answer.out) == (
        0,
        f"run {run}: v2 is reconciled; `python manage.py run_workflow {run}` goes on with it\n",
    )
    document = manage("run_workflow", str(run), "--json").json
    assert (document["status"], document["output"]) == ("succeeded", 'deployed "build 7"')
    attempt = Attempt.objects.get(run_id=run, visit=2)
    assert (attempt.status, json.loads(attempt.marks)) == ("succeeded", ["uncertain", "entered"])
    assert json.loads(attempt.authorization)["reason"] == "seen in the log"


def test_it_did_not_authorizes_exactly_one_further_attempt(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path)
    manage("runs", "reconcile", str(run), "did_not", "--reason", "nothing there")
    document = manage("run_workflow", str(run), "--json").json
    assert (document["status"], document["output"]) == ("succeeded", 'deployed "again"')
    deploy = document["visits"][1]
    assert [attempt["status"] for attempt in deploy["attempts"]] == ["interrupted", "succeeded"]


def test_stop_fails_the_step(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path)
    manage("runs", "reconcile", str(run), "stop", "--reason", "too risky")
    ended = manage("run_workflow", str(run), "--json")
    assert ended.code == 1
    assert ended.json["error"]["code"] == "crashed"
    assert ended.json["error"]["message"].endswith("stopped it after the worker ended: too risky")


def test_it_failed_is_recorded_with_its_code(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path)
    words = ["happened", "--error", "exit_nonzero", "--message", "Exit code 9.", "--exit-code", "9", "--reason", "log"]
    assert manage("runs", "reconcile", str(run), *words).code == 0
    ended = manage("run_workflow", str(run), "--json")
    assert ended.json["error"] == {"code": "exit_nonzero", "step": "deploy", "message": "Exit code 9."}


def test_an_outcome_of_the_step_takes_its_route(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path, parse="json")
    words = ["happened", "--outcome", "partly", "--output", '{"done": 3}', "--reason", "log"]
    assert manage("runs", "reconcile", str(run), *words).code == 0
    document = manage("run_workflow", str(run), "--json").json
    assert [(visit["step"], visit["outcome"], visit["output"]) for visit in document["visits"]] == [
        ("build", "ok", {}),
        ("deploy", "partly", {"done": 3}),
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["happened", "--text", "x"], 2, "A reason is needed: it is kept with the decision."),
        (["stop", "--reason", "r", "--text", "x"], 2, '--text belongs to "happened".'),
        (
            ["happened", "--reason", "r", "--output", "7"],
            1,
            "This result cannot be recorded for v2: the output of `parse: text` is text.",
        ),
        (
            ["happened", "--reason", "r", "--output", '"a\\u0000"'],
            1,
            'This result cannot be recorded for v2: "output" contains the character U+0000.',
        ),
        (
            ["happened", "--reason", "r", "--text", "x", "--outcome", "great"],
            1,
            'This result cannot be recorded for v2: "great" is not an outcome of "deploy". Outcomes: ok, partly.',
        ),
        (
            ["happened", "--reason", "r", "--error", "bad_luck"],
            1,
            'This result cannot be recorded for v2: "bad_luck" is not an error of a step. Errors: exit_nonzero, timeout, '
            "crashed, network, http_status, rate_limited, invalid_output, refused, child_failed, items_failed, "
            "task_error.",
        ),
        (["did_not", "--reason", "r", "--visit", "v1"], 1, "v1 is not waiting to be reconciled."),
        (["happened", "--reason", "r", "--output", "{"], 2, "The output is not usable JSON: "),
    ],
)
def test_what_cannot_have_happened_is_refused_and_changes_nothing(
    tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    run = interrupted_run(tmp_path)
    before = (Run.objects.get().revision, RowVersion.objects.count(), Event.objects.count())
    answer = manage("runs", "reconcile", str(run), *words)
    assert (answer.code, answer.err.splitlines()[0][: len(message) + 7]) == (code, f"error: {message}")
    assert (Run.objects.get().revision, RowVersion.objects.count(), Event.objects.count()) == before


def test_a_decision_is_taken_once(tmp_path: Path) -> None:
    run = interrupted_run(tmp_path)
    manage("runs", "reconcile", str(run), "stop", "--reason", "first")
    again = manage("runs", "reconcile", str(run), "did_not", "--reason", "second", "--json")
    assert (again.code, again.json[0]["error"]["code"]) == (1, "attempt.not_interrupted")


def test_there_may_be_nothing_to_reconcile(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, SLEEPS)
    answer = manage("runs", "reconcile", str(run), "stop", "--reason", "r")
    assert answer.err.splitlines() == [
        f"error: Run {run} is not waiting to be reconciled.",
        f"hint: `python manage.py runs show {run}` lists what is.",
    ]
    over = finished_run(tmp_path)
    assert manage("runs", "reconcile", str(over), "stop", "--reason", "r").err == (
        f"error: Run {over} is already succeeded.\n"
    )
