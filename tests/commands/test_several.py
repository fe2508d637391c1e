"""``runs abandon``, ``steer``, ``audit``, and what all actions on runs share: several at once, rehearsed, confirmed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import execute_from_command_line
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.commands.left_runs import interrupted_run, waiting_run
from tests.commands.support import Answer, give_stdin, manage, workflow_file
from tests.support.rows import all_rows, assert_sound
from workflows.models import AuditEntry, ControlMessage, Run

pytestmark = pytest.mark.django_db(transaction=True)

SLEEPS = "steps:\n  - { id: nap, kind: wait, for: 1h }\n"
NAPS = "steps:\n  - { id: nap, kind: wait, for: 200ms }\n  - { id: after, kind: shell, run: echo after }\n"
ASKS = "steps: [{ id: ok, kind: approval, ask: Go?, timeout: 2h }]\n"
FAILS = "steps: [{ id: work, kind: shell, run: 'exit 3' }]\n"
SUCCEEDS = "steps: [{ id: a, kind: shell, run: echo hello }]\n"
KID = "steps: [{ id: ok, kind: approval, ask: Go?, timeout: 2h }]\n"
CALLS = "steps: [{ id: call, kind: workflow, ref: kid }]\n"


def run_of(folder: Path, text: str, name: str = "demo") -> int:
    manage("run_workflow", workflow_file(folder, text, name), "--quiet")
    return Run.objects.latest("pk").pk


@pytest.fixture
def alice() -> None:
    """A user, whom only the embedded database makes by itself."""
    User.objects.create_user("alice")


def statuses() -> dict[int, str]:
    return dict(Run.objects.order_by("pk").values_list("pk", "status"))


# ---- abandon (ABR.1, ABR.2) ------------------------------------------------------------------------------------------


def test_a_wrong_abandonment_is_undone_by_resume(tmp_path: Path, alice: None) -> None:
    """ABR.1, ABR.2: the run goes on where it stood."""
    run = waiting_run(tmp_path, NAPS)
    answer = manage("runs", "abandon", str(run), "--reason", "the wrong one")
    assert (answer.code, answer.lines) == (
        0,
        [f"run {run}: abandoned; `python manage.py runs resume {run}` opens it again"],
    )
    assert manage("run_workflow", str(run)).code == 4
    assert manage("runs", "show", str(run)).lines[0] == f"run {run}: demo"
    resumed = manage("runs", "resume", str(run), "--as", "alice", "--reason", "sorry")
    assert resumed.lines == [
        f"run {run}: is open again; `python manage.py run_workflow {run}` goes on with it",
    ]
    ended = manage("run_workflow", str(run), "--json")
    assert (ended.code, [visit["step"] for visit in ended.json["visits"]]) == (0, ["nap", "after"])
    assert_sound()


def test_a_question_of_an_abandoned_run_is_asked_anew_after_resume(tmp_path: Path) -> None:
    """ABR.1, INT.7"""
    run = run_of(tmp_path, ASKS)
    manage("runs", "abandon", str(run), "--reason", "not now")
    refused = manage("runs", "answer", str(run), "v1", "--approve")
    assert (refused.code, refused.err) == (1, f"error: v1 of run {run} is closed: the run is abandoned.\n")
    manage("runs", "resume", str(run))
    assert manage("run_workflow", str(run), "--quiet").code == 3
    assert manage("runs", "answer", str(run), "v1", "--approve").code == 0
    assert manage("run_workflow", str(run), "--quiet").code == 0
    assert_sound()


def test_child_runs_are_abandoned_with_their_parent_and_opened_again_with_it(tmp_path: Path) -> None:
    """CHD.3, ABR.2"""
    assert manage("workflows", "publish", workflow_file(tmp_path, KID, "kid")).code == 0
    assert manage("run_workflow", workflow_file(tmp_path, CALLS, "parent"), "--quiet").code == 3
    parent, child = Run.objects.order_by("pk").values_list("pk", flat=True)
    manage("runs", "abandon", str(parent), "--reason", "by mistake")
    assert statuses() == {parent: "abandoned", child: "abandoned"}
    refused = manage("runs", "resume", str(child))
    assert refused.err.splitlines() == [
        f"error: Run {child} was started by run {parent}, which is abandoned.",
        f"hint: `python manage.py runs resume {parent}` opens both again.",
    ]
    assert manage("runs", "resume", str(parent)).code == 0
    assert manage("run_workflow", str(parent), "--quiet").code == 3
    assert statuses() == {parent: "waiting", child: "paused"}
    assert manage("runs", "answer", str(child), "--approve").code == 0
    assert manage("run_workflow", str(parent), "--quiet").code == 0
    assert list(AuditEntry.objects.filter(action="run.abandon").values_list("run", flat=True)) == [parent]
    assert_sound()


def test_a_parent_hears_that_its_child_was_abandoned(tmp_path: Path) -> None:
    """CHD.3: a failed child gives ``child_failed``."""
    assert manage("workflows", "publish", workflow_file(tmp_path, KID, "kid")).code == 0
    manage("run_workflow", workflow_file(tmp_path, CALLS, "parent"), "--quiet")
    parent, child = Run.objects.order_by("pk").values_list("pk", flat=True)
    manage("runs", "abandon", str(child), "--reason", "hopeless")
    ended = manage("run_workflow", str(parent), "--json")
    assert (ended.code, ended.json["error"]["code"]) == (1, "child_failed")
    assert ended.json["error"]["message"] == f"Child run {child} did not succeed: it was abandoned"
    assert_sound()


def test_abandoning_needs_a_reason_and_a_live_run(tmp_path: Path) -> None:
    """ABR.1"""
    run = run_of(tmp_path, SUCCEEDS)
    before = all_rows()
    refused = manage("runs", "abandon", str(run))
    assert (refused.code, refused.err) == (2, "error: Abandoning a run needs a reason (`--reason`).\n")
    refused = manage("runs", "abandon", str(run), "--reason", "r")
    assert (refused.code, refused.err) == (1, f"error: Run {run} is already succeeded.\n")
    assert all_rows() == before


# ---- several at once -------------------------------------------------------------------------------------------------


def refused_unasked(*words: str) -> Answer:
    before = all_rows()
    answer = manage(*words)
    assert all_rows() == before
    return answer


def test_several_runs_are_not_changed_where_nobody_can_be_asked(tmp_path: Path) -> None:
    first, second = waiting_run(tmp_path, SLEEPS), waiting_run(tmp_path, SLEEPS)
    answer = refused_unasked("runs", "pause", str(first), str(second))
    assert (answer.code, answer.err.splitlines()) == (
        2,
        [
            "error: 2 runs are named, and nobody can be asked whether all are meant.",
            "hint: `--yes` says so; `--dry-run` shows what would happen.",
        ],
    )
    assert manage("runs", "pause", str(first), str(second), "--yes").code == 0
    assert ControlMessage.objects.count() == 2


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("\n", 1), ("no\n", 1)])
def test_on_a_terminal_several_runs_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int
) -> None:
    runs = [waiting_run(tmp_path, SLEEPS), waiting_run(tmp_path, SLEEPS)]
    give_stdin(monkeypatch, said)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    answer = manage("runs", "pause", *map(str, runs))
    question = f"Pause 2 runs ({runs[0]}, {runs[1]})? [y/N] "
    assert (answer.code, answer.err) == (code, question if code == 0 else f"{question}Nothing was changed.\n")
    assert ControlMessage.objects.count() == (2 if code == 0 else 0)


def test_numbers_come_from_standard_input_and_each_run_has_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, live = run_of(tmp_path, SUCCEEDS), waiting_run(tmp_path, SLEEPS)
    give_stdin(monkeypatch, f"{over}\n{live}\n{live}\n")
    answer = manage("runs", "abandon", "-", "--reason", "clean up", "--yes", "--json")
    assert answer.code == 1
    assert [(one["run"], one["status"], one["error"] and one["error"]["code"]) for one in answer.json] == [
        (over, None, "run.terminal"),
        (live, "abandoned", None),
    ]


def test_a_rehearsal_says_what_would_happen_and_changes_nothing(tmp_path: Path) -> None:
    asks, sleeps = run_of(tmp_path, ASKS, "asks"), waiting_run(tmp_path, SLEEPS)
    failed, over = run_of(tmp_path, FAILS), run_of(tmp_path, SUCCEEDS)
    blocked = interrupted_run(tmp_path)
    runs = [str(run) for run in (asks, sleeps, failed, over, blocked)]
    before = all_rows()

    def would(*words: str) -> list[str]:
        answer = manage("runs", words[0], *runs, *words[1:], "--dry-run", "--json")
        return [one["would"] or one["error"]["code"] for one in answer.json]

    terminal = ["run.terminal", "run.terminal"]
    assert would("cancel") == ["would be cancelled", "would be cancelled", *terminal, "would be cancelled"]
    assert would("abandon", "--reason", "r") == [
        "would be abandoned while it is paused, 1 open question closed",
        "would be abandoned while it is waiting",
        *terminal,
        "would be abandoned while it is blocked",
    ]
    assert would("pause") == ["would be held", "would be held", *terminal, "would be held"]
    assert would("resume") == [
        "run.not_reopenable",
        "run.not_reopenable",
        "would be opened again; it is failed",
        "run.not_reopenable",
        "would be looked at again",
    ]
    assert would("retry") == [
        "run.nothing_to_retry",
        "run.nothing_to_retry",
        "would be opened again; it is failed",
        "run.terminal",
        "run.nothing_to_retry",
    ]
    assert would("skip", "--reason", "r") == [
        "v1 would count as skipped",
        "v1 would count as skipped",
        "v1 would count as skipped",
        "run.nothing_to_skip",
        "v2 would count as skipped",
    ]
    assert would("reconcile", "stop", "--reason", "r") == [
        "attempt.not_interrupted",
        "attempt.not_interrupted",
        *terminal,
        "v2 would fail",
    ]
    assert all_rows() == before


def test_a_rehearsal_for_people_is_a_line_for_each_run(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, SLEEPS)
    assert manage("runs", "cancel", str(run), "--dry-run").lines == [f"run {run}: would be cancelled"]
    missing = manage("runs", "cancel", str(run), "999", "--dry-run")
    assert (missing.code, missing.err) == (2, "error: There is no run 999.\n")


def test_a_visit_belongs_to_one_run(tmp_path: Path) -> None:
    answer = refused_unasked("runs", "skip", "1", "2", "--visit", "v1", "--reason", "r", "--yes")
    assert (answer.code, answer.err) == (2, "error: --visit names a step of one run; several runs are named.\n")


@pytest.mark.parametrize("words", ["runs abandon 1 --force", "runs steer", "workflows show x --deep"])
def test_an_unknown_option_is_told_with_the_usage_of_its_action(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        execute_from_command_line(["manage.py", *words.split()])
    name = " ".join(words.split()[:2])
    usage, *_, error = capsys.readouterr().err.splitlines()
    assert (caught.value.code, usage.startswith(f"usage: manage.py {name} [-h]")) == (2, True)
    assert error.startswith(f"manage.py {name}: error: ")


# ---- steer (CTL.5) ---------------------------------------------------------------------------------------------------


def test_a_text_is_accepted_once_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alice: None) -> None:
    """CTL.5"""
    run = waiting_run(tmp_path, SLEEPS)
    give_stdin(monkeypatch, "go left\nthen right\n")
    words = ["runs", "steer", str(run), "-", "--request-id", "r1", "--as", "alice"]
    assert manage(*words).lines == [f"run {run}: the text waits for a step that takes it"]
    assert json.loads(ControlMessage.objects.get().payload) == {"text": "go left\nthen right"}
    give_stdin(monkeypatch, "go left\nthen right\n")
    assert manage(*words).lines == [f"run {run}: the text was accepted before"]
    message = ControlMessage.objects.get()
    assert message.sender.endswith(" as alice")
    (listed,) = manage("runs", "show", str(run), "--json").json["steering"]
    assert (listed["number"], listed["text"], listed["state"]) == (message.sequence, "go left\nthen right", "queued")


def test_standard_input_holds_one_thing() -> None:
    answer = manage("runs", "steer", "-", "-")
    assert (answer.code, answer.err) == (
        2,
        "error: Standard input holds either the numbers of runs or the text.\n",
    )


# ---- audit -----------------------------------------------------------------------------------------------------------


def test_the_audit_of_a_run_names_who_did_what_and_why(tmp_path: Path, alice: None) -> None:
    """WEB.2"""
    run = waiting_run(tmp_path, SLEEPS)
    manage("runs", "pause", str(run), "--as", "alice", "--reason", "lunch")
    manage("runs", "abandon", str(run), "--reason", "no need")
    entries = manage("runs", "audit", str(run), "--json").json
    assert [(one["action"], one["reason"]) for one in entries] == [
        ("run.abandon", "no need"),
        ("run.pause", "lunch"),
        ("run.start", ""),
    ]
    heading, newest = manage("runs", "audit", "--by", "alice", "--what", "run.pause").lines
    assert heading.split() == ["ENTRY", "AT", "BY", "ACTION", "RUN"]
    assert newest.split()[-4:-1] == ["run.pause", str(run), "lunch"]
    assert manage("runs", "audit", "--denied").out == "There are no such entries.\n"
    more = manage("runs", "audit", str(run), "--limit", "1").lines
    assert more[-1] == f"There are more: `--before {entries[0]['number']}` continues."
    assert manage("runs", "audit", "999").err == "error: There is no run 999.\n"


# ---- large payloads (CTL.6) ------------------------------------------------------------------------------------------


def test_operators_reach_a_run_without_reading_its_payloads(tmp_path: Path) -> None:
    """CTL.6: cancel, abandon and list work on a run whose payloads are too large to show."""
    closes = SLEEPS + "finally: [{ id: tidy, kind: shell, run: echo tidy }]\n"
    first, second = waiting_run(tmp_path, closes), waiting_run(tmp_path, closes)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert manage("runs", "cancel", str(first)).code == 0
        assert manage("runs", "abandon", str(second), "--reason", "r").code == 0
        assert len(manage("runs", "list").lines) == 3
        assert manage("runs", "events", str(second)).code == 0
    read = [query["sql"] for query in seen if '"workflows_payload"' in query["sql"]]
    assert read == []
