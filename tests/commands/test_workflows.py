"""``workflows list|show|validate|publish|schema|graph``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pytest_django import Settings

from tests.commands.support import DATA, give_stdin, manage, workflow_file
from workflows.models import Plan, Run, Workflow

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = "steps: [{ id: a, kind: shell, run: echo A }]\noutput: ${ steps.a.output }\n"
BROKEN = "steps:\n  - id: sign_off\n    kind: approval\n    ask: Go?\n    timeout: 1d\n    next: { aproved: done }\n"


# ---- validate --------------------------------------------------------------------------------------------------------


def test_a_problem_is_shown_in_three_lines(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, BROKEN)
    answer = manage("workflows", "validate", file)
    assert answer.code == 1
    assert answer.lines[:3] == [
        f"{file}:8: E301 steps[0].next.aproved",
        '    "aproved" is not an outcome of the approval step "sign_off".',
        '    Did you mean "approved"? Outcomes: approved, rejected, expired, failed.',
    ]


def test_json_holds_the_problems_of_each_file(tmp_path: Path) -> None:
    good, bad = workflow_file(tmp_path, STEPS), workflow_file(tmp_path, BROKEN, "broken")
    answer = manage("workflows", "validate", good, bad, "--json")
    assert answer.code == 1
    assert answer.json[0] == {"file": good, "problems": []}
    assert answer.json[1]["file"] == bad
    assert answer.json[1]["problems"][0] == {
        "severity": "error",
        "code": "E301",
        "path": "steps[0].next.aproved",
        "line": 8,
        "message": '"aproved" is not an outcome of the approval step "sign_off".',
        "hint": 'Did you mean "approved"? Outcomes: approved, rejected, expired, failed.',
    }


def test_warnings_do_not_fail(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "params: { region: { type: string, default: eu } }\n" + STEPS)
    answer = manage("workflows", "validate", file)
    assert (answer.code, answer.lines[0]) == (0, f"{file}:3: W105 params.region")
    assert manage("workflows", "validate", workflow_file(tmp_path, STEPS)).out.endswith("demo.yaml: no problems\n")


def test_a_file_comes_from_standard_input_too(monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, f"format: 1\nname: piped\n{STEPS}")
    assert manage("workflows", "validate", "-", "--json").json == [{"file": "-", "problems": []}]


def test_files_that_are_checked_together_know_each_other(tmp_path: Path) -> None:
    caller = workflow_file(tmp_path, "steps: [{ id: a, kind: workflow, ref: called }]\n", "caller")
    called = workflow_file(tmp_path, STEPS, "called")
    assert manage("workflows", "validate", caller, called).code == 0
    alone = manage("workflows", "validate", caller, "--json")
    assert [problem["code"] for problem in alone.json[0]["problems"]] == ["E508"]


def test_published_workflows_are_known_with_their_parameters(tmp_path: Path) -> None:
    called = workflow_file(tmp_path, "params: { region: { type: string, default: eu } }\n" + STEPS, "called")
    manage("workflows", "publish", called)
    caller = workflow_file(tmp_path, "steps: [{ id: a, kind: workflow, ref: called, with: { regoin: x } }]\n", "caller")
    (problem,) = manage("workflows", "validate", caller, "--json").json[0]["problems"]
    assert (problem["code"], problem["message"], problem["hint"]) == (
        "E511",
        'Workflow "called" has no parameter "regoin".',
        'Did you mean "region"?',
    )


def broken_files() -> list[dict[str, Any]]:
    """The samples that need no other workflow beside them."""
    cases = json.loads((DATA / "errors" / "cases.json").read_text(encoding="utf-8"))
    return [case for case in cases if not case.get("known_workflows")]


@pytest.mark.parametrize("case", broken_files(), ids=lambda case: case["code"])
def test_place_and_words_of_a_broken_file(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(case["definition"], encoding="utf-8")
    answer = manage("workflows", "validate", str(path), "--json")
    assert answer.code == 1
    errors = [problem for problem in answer.json[0]["problems"] if problem["severity"] == "error"]
    assert [{name: problem[name] for name in case["expect"]} for problem in errors] == [case["expect"]]


# ---- publish, list, show ---------------------------------------------------------------------------------------------


def test_publishing_makes_versions_and_the_same_file_makes_none(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, STEPS)
    assert manage("workflows", "publish", file).out == "demo: version 1 published\n"
    assert manage("workflows", "publish", file).out == "demo: version 1 is current already\n"
    workflow_file(tmp_path, "title: Demo\n" + STEPS)
    (published,) = manage("workflows", "publish", file, "--json").json
    assert (published["name"], published["version"], published["new"]) == ("demo", 2, True)
    assert Workflow.objects.get().current == Plan.objects.get(version=2)


def test_files_that_are_published_together_may_name_each_other(tmp_path: Path) -> None:
    parent = workflow_file(tmp_path, "steps: [{ id: a, kind: workflow, ref: child }]\n", "parent")
    child = workflow_file(tmp_path, STEPS, "child")
    answer = manage("workflows", "publish", parent, child)
    assert (answer.code, answer.out) == (0, "parent: version 1 published\nchild: version 1 published\n")


def test_a_mistake_in_one_file_publishes_none(tmp_path: Path) -> None:
    good, bad = workflow_file(tmp_path, STEPS), workflow_file(tmp_path, BROKEN, "broken")
    answer = manage("workflows", "publish", good, bad)
    assert answer.code == 2
    assert answer.err.splitlines()[0].startswith(f"error: {bad}: The workflow file has ")
    assert not Workflow.objects.exists()


def test_a_published_workflow_runs_by_its_name(tmp_path: Path) -> None:
    manage("workflows", "publish", workflow_file(tmp_path, STEPS))
    answer = manage("run_workflow", "demo", "--json")
    assert (answer.code, answer.json["output"], answer.json["plan"]["version"]) == (0, "A", 1)


def test_running_a_file_never_changes_what_a_name_runs(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, STEPS)
    manage("workflows", "publish", file)
    workflow_file(tmp_path, STEPS.replace("echo A", "echo B"))
    assert manage("run_workflow", file, "--json").json["output"] == "B"
    assert manage("run_workflow", "demo", "--json").json["output"] == "A"


def test_an_unknown_name_is_answered_with_the_one_that_was_meant(tmp_path: Path) -> None:
    manage("workflows", "publish", workflow_file(tmp_path, STEPS, "nightly_import"))
    answer = manage("run_workflow", "nightly_imports")
    assert answer.code == 2
    assert answer.err.splitlines() == [
        "error: There is no workflow nightly_imports.",
        'hint: Did you mean "nightly_import"?',
    ]
    assert not Run.objects.exists()


def test_the_list_and_one_workflow(tmp_path: Path) -> None:
    manage("workflows", "publish", workflow_file(tmp_path, "title: A demo\n" + STEPS))
    (row,) = [row for row in manage("workflows", "list", "--json").json["workflows"] if row["name"] == "demo"]
    assert (row["title"], row["version"], row["runs"]) == ("A demo", 1, 0)
    assert "demo" in manage("workflows", "list").out
    shown = manage("workflows", "show", "demo")
    assert shown.lines[0] == "demo: A demo"
    assert shown.lines[2].split() == ["STEP", "KIND", "GOES", "TO"]
    assert shown.lines[3].split() == ["a", "shell", "done"]
    document = manage("workflows", "show", "demo", "--json").json
    assert (document["name"], document["version"], len(document["versions"])) == ("demo", 1, 1)
    assert document["document"]["name"] == "demo"


# ---- library ---------------------------------------------------------------------------------------------------------


@pytest.mark.store("sqlite")
def test_a_library_file_is_published_when_its_name_is_run_and_again_when_it_changed(
    tmp_path: Path, settings: Settings
) -> None:
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    file = Path(workflow_file(tmp_path, STEPS))
    assert "demo" in [one["name"] for one in manage("workflows", "list", "--json").json["library"]]
    assert manage("run_workflow", "demo", "--json").json["plan"]["version"] == 1
    assert manage("run_workflow", "demo", "--json").json["plan"]["version"] == 1
    workflow_file(tmp_path, STEPS.replace("echo A", "echo B"))
    changed = manage("run_workflow", "demo", "--json").json
    assert (changed["plan"]["version"], changed["output"]) == (2, "B")
    file.unlink()
    assert manage("run_workflow", "demo", "--json").json["output"] == "B"


@pytest.mark.store("sqlite")
def test_a_version_that_a_person_published_stays_until_the_library_file_changes(
    tmp_path: Path, settings: Settings
) -> None:
    library, own = tmp_path / "library", tmp_path / "own"
    library.mkdir()
    own.mkdir()
    settings.WAYPOST_LIBRARY_DIRS = [str(library)]
    workflow_file(library, STEPS)
    manage("run_workflow", "demo")
    manage("workflows", "publish", workflow_file(own, STEPS.replace("echo A", "echo mine")))
    assert manage("run_workflow", "demo", "--json").json["output"] == "mine"
    workflow_file(library, STEPS.replace("echo A", "echo newer"))
    assert manage("run_workflow", "demo", "--json").json["output"] == "newer"


@pytest.mark.store("postgresql")
def test_elsewhere_a_library_file_has_to_be_published(tmp_path: Path, settings: Settings) -> None:
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    workflow_file(tmp_path, STEPS)
    answer = manage("run_workflow", "demo")
    assert answer.code == 2
    assert answer.err.splitlines() == [
        "error: There is no workflow demo.",
        f"hint: The library has a file of this name; publish it with `python manage.py workflows publish {tmp_path}/demo.yaml`.",
    ]


@pytest.mark.store("sqlite")
def test_a_library_file_that_is_broken_says_so(tmp_path: Path, settings: Settings) -> None:
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    workflow_file(tmp_path, BROKEN)
    answer = manage("run_workflow", "demo", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (2, "definition.invalid")


# ---- schema, graph ---------------------------------------------------------------------------------------------------


def test_the_schema_is_the_one_for_editors() -> None:
    schema = manage("workflows", "schema").json
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"format": 1, "name": "demo", "steps": [{"id": "a", "kind": "shell", "run": "x"}]})
    assert not validator.is_valid({"format": 1, "name": "demo", "steps": [{"id": "a", "kind": "shel", "run": "x"}]})


def test_a_graph_is_a_mermaid_flowchart(tmp_path: Path) -> None:
    answer = manage("workflows", "graph", workflow_file(tmp_path, STEPS))
    assert answer.lines[0] == "flowchart TD"
    assert "step_a --> run_done" in answer.out


@pytest.mark.store("sqlite")
def test_library_files_are_listed_with_their_titles_and_mistakes(tmp_path: Path, settings: Settings) -> None:
    settings.WAYPOST_LIBRARY_DIRS = [str(tmp_path)]
    workflow_file(tmp_path, "title: A demo\n" + STEPS)
    workflow_file(tmp_path, "steps: []\n", "broken")
    rows = {line.split()[0]: " ".join(line.split()[3:]) for line in manage("workflows", "list").lines}
    assert rows["demo"] == "A demo"
    assert rows["broken"] == f"has mistakes: workflows validate {tmp_path}/broken.yaml"
    assert rows["rollback"] != ""


def test_defaults_are_shown_as_json(tmp_path: Path) -> None:
    params = "params: { on: { type: boolean, default: true }, who: { type: string, default: you } }\n"
    lines = manage("workflows", "show", workflow_file(tmp_path, params + STEPS)).lines
    assert [" ".join(line.split()) for line in lines if " default " in line] == [
        "on boolean default true",
        'who string default "you"',
    ]
