"""``runs fork`` and what ``runs show`` says of forks (promises FORK)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

COUNTS = """
params: { region: { type: string, default: eu }, many: { type: integer, default: 1 } }
vars: { n: 1 }
steps:
  - { id: one, kind: shell, run: 'echo one' }
  - { id: two, kind: shell, run: 'test "$N" = 7; echo "$N $R"', env: { N: "${ vars.n }", R: "${ params.region }" } }
output: "${ steps.two.output }"
"""


def failed(tmp_path: Path) -> str:
    manage("run_workflow", workflow_file(tmp_path, COUNTS))
    return str(Run.objects.latest("pk").pk)


def test_a_failed_run_is_forked_with_another_variable_and_goes_its_own_way(tmp_path: Path) -> None:
    """FORK 4, 5, 8"""
    origin = failed(tmp_path)
    answer = manage("runs", "fork", origin, "--var", "n:=7", "-P", "region=us", "--reason", "seven")
    fork = str(Run.objects.latest("pk").pk)
    assert (answer.code, answer.err) == (0, "")
    cut = Run.objects.get(pk=fork).fork_revision
    assert answer.lines == [
        f"run {fork} is a fork of run {origin} at revision {cut}; "
        f"`python manage.py run_workflow {fork}` goes on with it."
    ]
    ended = manage("run_workflow", fork, "--json")
    assert (ended.code, ended.json["output"]) == (0, "7 us")
    shown = manage("runs", "show", fork).lines
    assert any(line.startswith(f"  fork of run {origin} at revision {cut}, before v2 by shell:") for line in shown)
    assert "    with other parameters: region" in shown
    assert "    with other variables: n" in shown
    assert f"  run {fork} (succeeded) was forked from it at revision {cut}" in manage("runs", "show", origin).lines
    assert manage("runs", "events", fork).lines[0].split()[2] == "run_forked"


def test_the_answer_is_json_for_machines_and_a_request_is_carried_out_once(tmp_path: Path) -> None:
    """FORK.7"""
    origin = failed(tmp_path)
    words = ("runs", "fork", origin, "--request-id", "r", "--json", "--param-json", '{"many": 3}')
    first, second = manage(*words).json, manage(*words).json
    fork = Run.objects.latest("pk").pk
    assert first == {"run": fork, "fork_of": int(origin), "revision": first["revision"], "new": True, "queued": False}
    assert second == {**first, "new": False}
    conflict = manage("runs", "fork", origin, "--request-id", "r", "--json")
    assert (conflict.code, conflict.json["error"]["code"]) == (1, "fork.conflict")
    assert manage("runs", "show", str(fork), "--json").json["params"]["many"] == 3


def test_a_dry_run_says_what_is_kept_and_what_runs_anew(tmp_path: Path) -> None:
    """FORK.1"""
    origin = failed(tmp_path)
    answer = manage("runs", "fork", origin, "--dry-run")
    assert answer.code == 0
    assert answer.lines[0].startswith(f"A fork of run {origin} at revision ")
    assert [line.split()[:2] for line in answer.lines if line.startswith("    v")] == [["v1", "one"], ["v2", "two"]]
    assert answer.lines[-1] == "Nothing was forked."
    document = manage("runs", "fork", origin, "--dry-run", "--json").json
    assert [one["path"] for one in document["kept"]] == ["one"]
    assert [one["path"] for one in document["left_out"]] == ["two"]
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--from", "tow"], 2, 'has no visit "tow".'),
        (["--at", "99"], 2, "has no revision 99"),
        (["--var", "n"], 2, '"--var n" names no value'),
        (["--var", "m:=1"], 2, 'There is no variable "m" at the cut.'),
        (["--output", "v1:=3"], 1, "the output of `parse: text` is text."),
        (["-P", "many=x"], 2, "The parameters have 1 problem."),
        (["--plan", "9"], 2, 'has no version "9".'),
        (["--param-json", "{"], 2, "The parameters have 1 problem."),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence_and_forks_nothing(
    tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    """FORK 1, 5"""
    answer = manage("runs", "fork", failed(tmp_path), *words)
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert Run.objects.count() == 1
    assert answer.code in (code, 2)


def test_the_state_at_a_revision_is_shown_as_it_was(tmp_path: Path) -> None:
    """REV.2"""
    origin = failed(tmp_path)
    revision = Run.objects.get(pk=origin).revision
    documents = [manage("runs", "show", origin, "--at", str(at), "--json").json for at in range(1, revision + 1)]
    assert [one["revision"] for one in documents] == list(range(1, revision + 1))
    assert documents[0]["visits"] == []
    assert documents[-1]["status"] == "failed"
    running = next(one for one in documents if len(one["visits"]) == 2)
    assert running["visits"][1]["attempts"][0]["status"] == "running"
    assert json.dumps(running["variables"]) == '{"": {"n": 1}}'
    beyond = manage("runs", "show", origin, "--at", str(revision + 1), "--json")
    assert (beyond.code, beyond.json["error"]["code"]) == (2, "history.no_such_revision")
