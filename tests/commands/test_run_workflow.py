"""``run_workflow``: targets, parameters, keys, limits, output and exit codes (docs/architecture.md, PUB 2, 3, 7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from tests.commands.left_runs import waiting_run
from tests.commands.support import give_stdin, manage, workflow_file
from workflows.models import Event, Lease, Plan, Run

pytestmark = pytest.mark.django_db(transaction=True)

GREET = """
params: { who: { type: string, default: you }, times: { type: integer, default: 1 } }
steps:
  - { id: greet, kind: shell, run: 'echo "hello $WHO"', env: { WHO: "${ params.who }" } }
output: { said: "${ steps.greet.output }", times: "${ params.times }" }
"""
THREE_STEPS = """
steps:
  - { id: one, kind: shell, run: echo 1 }
  - { id: two, kind: shell, run: echo 2 }
  - { id: three, kind: shell, run: echo 3 }
output: ${ steps.three.output }
"""
FAILS = """
steps:
  - { id: fall, kind: shell, run: "echo broken >&2; exit 3" }
"""


@pytest.fixture
def greet(tmp_path: Path) -> str:
    return workflow_file(tmp_path, GREET)


def test_a_file_runs_to_its_end_and_prints_a_line_per_step_and_the_output(tmp_path: Path) -> None:
    answer = manage("run_workflow", workflow_file(tmp_path, THREE_STEPS))
    run = Run.objects.get()
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines[0] == f"run {run.pk}: demo"
    assert [line.split()[:3] for line in answer.lines[1:4]] == [
        ["v1", "one", "ok"],
        ["v2", "two", "ok"],
        ["v3", "three", "ok"],
    ]
    assert answer.lines[4].startswith(f"run {run.pk} succeeded after ")
    assert answer.lines[5:] == ["3"]


def test_json_is_one_object_with_everything(greet: str) -> None:
    found = manage("run_workflow", greet, "-P", "who=Zoë", "--json").json
    assert list(found) == [
        "run", "workflow", "plan", "status", "reasons", "params", "output", "error", "started_at", "ended_at", "cost",
        "visits", "interrupts", "steering", "children", "fork_of", "forks", "events_cursor",
    ]  # fmt: skip
    assert (found["workflow"], found["status"], found["error"]) == ("demo", "succeeded", None)
    assert found["params"] == {"who": "Zoë", "times": 1}
    assert found["output"] == {"said": "hello Zoë", "times": 1}
    (visit,) = found["visits"]
    (attempt,) = visit.pop("attempts")
    assert visit == {
        "number": 1,
        "step": "greet",
        "path": "greet",
        "scope": "",
        "item": None,
        "status": "settled",
        "outcome": "ok",
        "output": "hello Zoë",
        "error": None,
    }
    assert {name: attempt[name] for name in ("number", "status", "error")} == {
        "number": 1,
        "status": "succeeded",
        "error": None,
    }
    assert found["events_cursor"] == Event.objects.filter(run_id=found["run"]).count()


def test_quiet_prints_the_output_and_nothing_else(greet: str) -> None:
    answer = manage("run_workflow", greet, "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json == {"said": "hello you", "times": 1}


def test_a_failed_run_exits_with_1_and_names_code_step_and_message(tmp_path: Path) -> None:
    answer = manage("run_workflow", workflow_file(tmp_path, FAILS))
    assert answer.code == 1
    assert answer.lines[-1] == "  exit_nonzero in fall: Exit code 3: broken"
    assert manage("runs", "show", str(Run.objects.get().pk), "--json").json["error"] == {
        "code": "exit_nonzero",
        "step": "fall",
        "message": "Exit code 3: broken",
    }


def test_parameters_come_as_text_json_and_from_files(greet: str, tmp_path: Path) -> None:
    (tmp_path / "name.txt").write_text("Łukasz", encoding="utf-8")
    answer = manage("run_workflow", greet, "-P", f"who=@{tmp_path}/name.txt", "-P", "times:=3", "--json")
    assert answer.json["params"] == {"who": "Łukasz", "times": 3}


def test_text_is_converted_by_the_declared_type(greet: str) -> None:
    assert manage("run_workflow", greet, "-P", "times=7", "--json").json["params"]["times"] == 7


def test_a_parameter_replaces_the_value_of_the_input_file(greet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, '{"who": "file", "times": 2}')
    answer = manage("run_workflow", greet, "--input", "-", "-P", "who=line", "--json")
    assert answer.json["params"] == {"who": "line", "times": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-P", "who"], '"-P who" is not a parameter; write -P name=text, -P name:=json or -P name=@file.'),
        (["-P", "who=a", "-P", "who=b"], 'Parameter "who" is given twice.'),
        (["-P", "who=@missing.txt"], 'There is no file "missing.txt".'),
        (["--input", "missing.json"], 'There is no file "missing.json".'),
        (["--title", "a\nb"], "The title contains characters that cannot be shown."),
        (["--key", ""], "The key is empty."),
        (["--key", "k" * 201], "The key has 201 characters; the limit is 200."),
    ],
)
def test_arguments_that_cannot_be_used_exit_with_2_and_start_nothing(
    greet: str, words: list[str], message: str
) -> None:
    answer = manage("run_workflow", greet, *words)
    assert (answer.code, answer.out, answer.err) == (2, "", f"error: {message}\n")
    assert not Run.objects.exists()
    assert not Plan.objects.exists()


def test_refused_parameters_are_shown_in_three_lines_each(greet: str) -> None:
    answer = manage("run_workflow", greet, "-P", "times=ten", "-P", "hwo=x")
    assert answer.code == 2
    assert answer.err.splitlines() == [
        "error: The parameters have 2 problems.",
        "E602 times",
        '    "times" must be a whole number, but it is the text "ten".',
        "    Example: 10.",
        "E603 hwo",
        '    There is no parameter "hwo".',
        '    Did you mean "who"?',
    ]
    assert not Plan.objects.exists()


def test_json_that_cannot_be_read_names_its_place(greet: str) -> None:
    answer = manage("run_workflow", greet, "-P", 'times:={"a": 1, "a": 2}', "--json")
    (problem,) = answer.json["error"]["problems"]
    assert (problem["code"], problem["path"]) == ("E609", "times")
    assert problem["message"] == 'The value of "times" is not usable JSON: key "a" appears twice (line 1, column 10).'


def test_an_input_file_must_hold_an_object(greet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, "[1]")
    answer = manage("run_workflow", greet, "--input", "-", "--json")
    (problem,) = answer.json["error"]["problems"]
    assert problem["code"] == "E609"
    assert problem["message"].endswith("it must be an object that maps names of parameters to values.")


def test_what_looks_like_a_credential_starts_with_a_warning_that_names_the_path_only(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "params: { payload: { type: object } }\nsteps: [{ id: a, kind: assign, set: {} }]\n")
    answer = manage("run_workflow", file, "-P", 'payload:={"api_token": "hunter2hunter2"}', "--quiet")
    assert "W601 payload.api_token" in answer.err
    assert "hunter2" not in answer.err


def test_a_broken_file_shows_every_problem_and_exits_with_2(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "steps:\n  - { id: a, kind: shel, run: x }\n  - { id: done, kind: shell, run: x }\n")
    answer = manage("run_workflow", file, "--json")
    assert answer.code == 2
    error = answer.json["error"]
    assert (error["code"], error["message"]) == ("definition.invalid", "The workflow file has 2 problems.")
    assert [problem["code"] for problem in error["problems"]] == ["E206", "E204"]
    assert not Plan.objects.exists()


def test_problems_of_a_file_are_told_with_file_and_line_as_validate_does(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "steps:\n  - { id: a, kind: shell }\n  - { id: done, kind: shell, run: x }\n")
    told = manage("workflows", "validate", file).lines
    assert [line.partition(" ")[0] for line in told if not line.startswith(" ")] == [f"{file}:4:", f"{file}:5:"]
    for words in (["run_workflow"], ["workflows", "show"], ["workflows", "graph"]):
        assert manage(*words, file).err.splitlines() == ["error: The workflow file has 2 problems.", *told]


def test_a_kind_that_comes_later_is_refused_at_the_start(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "steps:\n  - { id: ask, kind: llm, prompt: Hello }\n")
    answer = manage("run_workflow", file)
    assert answer.code == 2
    assert answer.err.splitlines()[-2:] == [
        "error: Step ask is of kind llm, which this version of Waypost cannot run yet.",
        "hint: Remove the step or wait for a version that runs this kind.",
    ]
    assert not Run.objects.exists()


def test_missing_functions_and_secrets_are_refused_together(tmp_path: Path) -> None:
    file = workflow_file(
        tmp_path,
        "secrets: [deploy_key]\nsteps:\n"
        "  - { id: a, kind: shell, run: x, env: { K: { secret: deploy_key } } }\n"
        "  - { id: b, kind: task, call: chat.post }\n",
    )
    answer = manage("run_workflow", file, "--json")
    assert answer.code == 2
    error = answer.json["error"]
    assert error["code"] == "plan.missing_code"
    assert [(problem["code"], problem["path"], problem["message"]) for problem in error["problems"]] == [
        ("E614", "secrets[0]", 'Secret "deploy_key" has no value on this server.'),
        ("E615", "steps[1].call", 'The task function "chat.post" is not registered here.'),
    ]
    assert not Run.objects.exists()


def test_the_same_key_is_the_same_run(greet: str) -> None:
    first = manage("run_workflow", greet, "--key", "k", "--json").json
    second = manage("run_workflow", greet, "--key", "k", "--json").json
    assert second == first
    other = manage("run_workflow", greet, "--key", "k", "-P", "who=else")
    assert other.code == 1
    assert other.err.startswith("error: Key k was already used for a run of demo with other parameters")
    assert Run.objects.count() == 1


def test_max_steps_hands_the_run_back_and_its_number_goes_on(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, THREE_STEPS)
    first = manage("run_workflow", file, "--max-steps", "1")
    run = Run.objects.get()
    assert first.code == 6
    assert first.lines[-2:] == [
        f"run {run.pk} is handed back: nobody drives it",
        f"  `python manage.py run_workflow {run.pk}` goes on with it.",
    ]
    assert Lease.objects.get(run=run).expires_ms == 0
    second = manage("run_workflow", str(run.pk), "--max-steps", "1", "--json")
    assert (second.code, len(second.json["visits"])) == (6, 2)
    third = manage("run_workflow", str(run.pk), "--json")
    assert (third.code, third.json["output"]) == (0, "3")
    assert [visit["attempts"][0]["number"] for visit in third.json["visits"]] == [1, 1, 1]


def test_a_timeout_hands_a_waiting_run_back(tmp_path: Path) -> None:
    run = waiting_run(tmp_path, "steps:\n  - { id: nap, kind: wait, for: 1h }\n")
    answer = manage("run_workflow", str(run), "--timeout", "50ms")
    assert answer.code == 6
    assert answer.lines[-3].endswith("is waiting")
    assert answer.lines[-2].startswith("  nap waits for a moment (until ")


def test_a_finished_run_prints_its_result_again(greet: str) -> None:
    manage("run_workflow", greet)
    run = Run.objects.get()
    revision = run.revision
    answer = manage("run_workflow", str(run.pk), "--quiet")
    assert (answer.code, answer.json) == (0, {"said": "hello you", "times": 1})
    assert Run.objects.get().revision == revision


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["4711"], "There is no run 4711."),
        (["99999999999999999999"], '"99999999999999999999" is not the number of a run.'),
        (["nowhere.yaml"], 'There is no file "nowhere.yaml".'),
        (["no_such_thing"], "There is no workflow no_such_thing."),
    ],
)
def test_a_target_that_is_not_there_exits_with_2(words: list[str], message: str) -> None:
    answer = manage("run_workflow", *words)
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"error: {message}")


def test_what_belongs_to_a_start_is_refused_for_a_run_that_is_there(greet: str) -> None:
    manage("run_workflow", greet)
    run = Run.objects.get().pk
    answer = manage("run_workflow", str(run), "--key", "k")
    assert answer.code == 2
    assert answer.err == f"error: Run {run} exists already; --key belongs to the start of a run.\n"


def test_a_run_that_somebody_drives_is_left_alone(tmp_path: Path) -> None:
    from workflows.ledger.leases import acquire

    manage("run_workflow", workflow_file(tmp_path, THREE_STEPS), "--max-steps", "1")
    run = Run.objects.get()
    acquire(run_id=run.pk, owner="other:1:abc", ttl_ms=60_000, engine_versions=frozenset({1}))
    revision = Run.objects.get().revision
    answer = manage("run_workflow", str(run.pk), "--json")
    assert answer.code == 75
    assert answer.json["error"]["code"] == "lease.held"
    assert answer.json["error"]["message"].startswith(f"Run {run.pk} is driven by other:1:abc until ")
    assert Run.objects.get().revision == revision


def test_who_starts_a_run_is_an_active_user(greet: str, store: str) -> None:
    users = get_user_model()._default_manager
    users.create_user(username="alice")
    users.create_user(username="gone", is_active=False)
    assert manage("run_workflow", greet, "--as", "alice").code == 0
    assert Run.objects.get().started_by == "alice"
    refused = manage("run_workflow", greet, "--as", "gone")
    assert (refused.code, refused.err) == (
        2,
        "error: There is no active user gone.\nhint: There is one of this name that was made inactive.\n",
    )
    unknown = manage("run_workflow", greet, "--as", "bob")
    if store == "sqlite":
        assert unknown.code == 0
        assert not users.get(username="bob").has_usable_password()
    else:
        assert (unknown.code, unknown.err) == (
            2,
            "error: There is no active user bob.\n"
            "hint: `python manage.py createsuperuser --username bob` makes one; see docs/people.md.\n",
        )


def test_without_a_person_the_user_of_the_shell_starts_the_run(greet: str) -> None:
    manage("run_workflow", greet)
    assert Run.objects.get().started_by.startswith("shell:")


def test_a_title_is_kept_and_shown(greet: str) -> None:
    answer = manage("run_workflow", greet, "--title", "Nightly")
    run = Run.objects.get()
    assert run.title == "Nightly"
    assert answer.lines[0] == f"run {run.pk}: demo (Nightly)"
    assert "Nightly" not in Event.objects.get(run=run, sequence=1).payload


def test_steps_of_items_are_told_with_the_key_of_their_item(tmp_path: Path) -> None:
    text = """
steps:
  - id: each
    kind: map
    over: ${ ["red", "blue"] }
    key: ${ item }
    do: [{ id: say, kind: shell, run: 'true' }]
"""
    answer = manage("run_workflow", workflow_file(tmp_path, text))
    assert answer.code == 0
    told = {" ".join(line.split()[1:3]) for line in answer.lines if "say" in line}
    assert told == {"each[0]/say (red)", "each[1]/say (blue)"}
    shown = manage("runs", "show", str(Run.objects.get().pk)).lines
    assert any("each[1]/say (blue)" in line for line in shown)


def test_a_run_that_starts_later_is_left_to_a_worker(greet: str) -> None:
    """PUB.11"""
    answer = manage("run_workflow", greet, "--at", "2h", "--timeout", "1s")
    run = Run.objects.get()
    assert (answer.code, run.status) == (6, "queued")
    assert run.start_at_ms is not None
    assert answer.lines[-2].startswith("  it starts later (until ")
