"""``runs answer`` and the questions that ``run_workflow`` and ``runs show`` print (INT 1–7)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from tests.commands.support import Answer, manage, workflow_file
from tests.support.rows import assert_sound
from workflows.models import Interrupt, Run, Vote

pytestmark = pytest.mark.django_db(transaction=True)

DEPLOY = """
params: { version: { type: string } }
steps:
  - id: ask
    kind: approval
    ask: Deploy ${ params.version }?
    show: { changes: "one\\n  two", size: 3 }
    by: { users: [bob, carol] }
    quorum: 2
    not_by: [requester]
    timeout: 2h
    next: { rejected: done }
output: ${ steps.ask.output }
"""
CHOICE = """
steps:
  - id: pick
    kind: question
    ask: Which way?
    choices: { left: Go left, right: Go right }
    form: { speed: { type: integer, max: 9 }, note: { type: string, default: none } }
    timeout: 2h
    next: { left: continue, right: continue }
  - id: name
    kind: question
    ask: What name?
    timeout: 2h
output: { pick: "${ steps.pick.output }", name: "${ steps.name.output.answer }" }
"""
EACH = """
steps:
  - id: each
    kind: map
    over: "${ ['a', 'b', 'c'] }"
    key: ${ item }
    do:
      - { id: ok, kind: approval, ask: "Take ${ item }?", timeout: 2h }
    collect: ${ steps.ok.output.by[0] }
output: ${ steps.each.output }
"""


def moments_hidden(answer: Answer) -> list[str]:
    return [re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z| UTC|\S*)", "THEN", line) for line in answer.lines]


def people(*names: str) -> None:
    for name in names:
        get_user_model()._default_manager.create_user(username=name)


def asked(folder: Path, text: str, *words: str, name: str = "demo") -> int:
    """The number of a run that waits for people."""
    answer = manage("run_workflow", workflow_file(folder, text, name), *words, "--quiet")
    assert answer.code == 3
    return Run.objects.latest("pk").pk


def test_a_run_that_parks_prints_its_question_and_the_commands_that_answer_it(tmp_path: Path) -> None:
    people("alice")
    file = workflow_file(tmp_path, DEPLOY)
    answer = manage("run_workflow", file, "-P", "version=7", "--as", "alice")
    run = Run.objects.get().pk
    assert answer.code == 3
    assert moments_hidden(answer) == [
        f"run {run}: demo",
        "  v1   ask                      waiting (for an answer)",
        f"run {run} is paused",
        "  v1 ask: Deploy 7?",
        "      changes:",
        "        one",
        "          two",
        "      size: 3",
        "      for bob, carol; not for alice; 0 of 2 approvals; until THEN",
        f"      `python manage.py runs answer {run} v1 --approve --as bob`",
        f"      `python manage.py runs answer {run} v1 --reject --as bob`",
        f"  `python manage.py run_workflow {run}` goes on after the answers.",
    ]


def test_choices_and_fields_are_in_the_commands(tmp_path: Path) -> None:
    run = asked(tmp_path, CHOICE)
    assert moments_hidden(manage("runs", "show", str(run)))[3:] == [
        f"run {run} is paused",
        "  v1 pick: Which way?",
        "      for everyone; fields: speed (whole number), note (text, default none); until THEN",
        f"      `python manage.py runs answer {run} v1 --choice left --field speed=…`",
        f"      `python manage.py runs answer {run} v1 --choice right --field speed=…`",
        f"  `python manage.py run_workflow {run}` goes on after the answers.",
    ]
    assert manage("runs", "answer", str(run), "--choice", "left", "--field", "speed=5").code == 0
    assert f"      `python manage.py runs answer {run} v2 --field answer=…`" in manage("run_workflow", str(run)).lines
    manage("runs", "answer", str(run), "--field", "answer=Zoë")
    ended = manage("run_workflow", str(run), "--json")
    shell = Vote.objects.first().voter
    assert ended.json["output"] == {
        "pick": {"by": shell, "choice": "left", "note": "none", "speed": 5},
        "name": "Zoë",
    }


def test_two_people_approve_and_the_votes_are_shown(tmp_path: Path) -> None:
    people("alice", "bob", "carol")
    run = asked(tmp_path, DEPLOY, "-P", "version=7", "--as", "alice")
    first = manage("runs", "answer", str(run), "v1", "--approve", "--as", "bob", "--comment", "looks good")
    assert first.lines == [f"run {run}: v1 has 1 of 2 approvals."]
    shown = manage("runs", "show", str(run)).lines
    assert any("1 of 2 approvals (by bob)" in line for line in shown)
    assert f"      `python manage.py runs answer {run} v1 --approve --as carol`" in shown
    second = manage("runs", "answer", str(run), "v1", "--approve", "--as", "carol")
    assert second.lines == [f"run {run}: v1 is answered; `python manage.py run_workflow {run}` goes on with it."]
    ended = manage("run_workflow", str(run), "--json")
    assert (ended.code, ended.json["output"]) == (
        0,
        {"decision": "approved", "by": ["bob", "carol"], "comment": "looks good", "form": {}},
    )
    shown = moments_hidden(manage("runs", "show", str(run)))
    at = shown.index("  v1 ask: Deploy 7?")
    assert shown[at + 1 : at + 4] == [
        "      approved by carol at THEN",
        "      bob approved at THEN: looks good",
        "      carol approved at THEN",
    ]
    assert_sound()


def test_whoever_is_named_in_not_by_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    get_user_model()._default_manager.create_superuser(username="alice")
    people("dave")
    run = asked(tmp_path, DEPLOY, "-P", "version=7", "--as", "alice")
    before = Run.objects.values().get()
    refused = manage("runs", "answer", str(run), "v1", "--approve", "--as", "alice")
    assert (refused.code, refused.err) == (
        1,
        f"error: alice may not answer v1 of run {run}: whoever is named in `not_by` may not decide.\n",
    )
    refused = manage("runs", "answer", str(run), "v1", "--approve", "--as", "dave")
    assert (
        refused.err
        == f"error: dave may not answer v1 of run {run}: it is for bob, carol.\nhint: Whoever it is for answers with `--as bob`.\n"
    )
    assert Run.objects.values().get() == before
    assert not Vote.objects.exists()


def test_a_group_may_answer(tmp_path: Path) -> None:
    people("bob", "dave")
    leads = Group.objects.create(name="leads")
    get_user_model()._default_manager.get(username="bob").groups.add(leads)
    text = "steps:\n  - { id: ask, kind: approval, ask: Go?, by: { groups: [leads] }, timeout: 2h }\n"
    run = asked(tmp_path, text)
    assert f"      `python manage.py runs answer {run} v1 --approve --as …`" in manage("runs", "show", str(run)).lines
    refused = manage("runs", "answer", str(run), "--approve", "--as", "dave")
    assert refused.err == (
        f"error: dave may not answer v1 of run {run}: it is for group leads.\n"
        "hint: Whoever it is for answers with `--as …`.\n"
    )
    assert manage("runs", "answer", str(run), "--approve", "--as", "bob").code == 0


def test_one_rejection_rejects(tmp_path: Path) -> None:
    people("alice", "bob", "carol")
    run = asked(tmp_path, DEPLOY, "-P", "version=7", "--as", "alice")
    manage("runs", "answer", str(run), "--approve", "--as", "bob")
    manage("runs", "answer", str(run), "--reject", "--as", "carol", "--comment", "not on a Friday")
    output = manage("run_workflow", str(run), "--json").json["output"]
    assert output == {"decision": "rejected", "by": ["carol"], "comment": "not on a Friday", "form": {}}


def test_a_wrong_answer_is_refused_with_every_problem_and_the_question_stays_open(tmp_path: Path) -> None:
    run = asked(tmp_path, CHOICE)
    refused = manage(
        "runs", "answer", str(run), "v1", "--choice", "up", "--field", "speed=12", "--field", "colour=red", "--json"
    )
    assert refused.code == 2
    error = refused.json["error"]
    assert (error["code"], error["message"]) == ("interrupt.invalid", "The answer has 3 problems.")
    assert [(problem["code"], problem["path"]) for problem in error["problems"]] == [
        ("E604", "choice"),
        ("E613", "speed"),
        ("E603", "colour"),
    ]
    assert error["problems"][0]["message"] == 'The answer must be one of left, right; it is "up".'
    assert Interrupt.objects.get().status == "open"
    assert not Vote.objects.exists()


def test_the_same_answer_again_succeeds_and_another_says_who_was_first(tmp_path: Path) -> None:
    people("bob", "dave")
    run = asked(tmp_path, CHOICE)
    words = ("runs", "answer", str(run), "v1", "--choice", "left", "--field", "speed=5")
    assert manage(*words, "--as", "bob", "--json").json == {
        "run": run, "interrupt": "v1", "settled": True, "new": True, "votes": 1, "quorum": 1,
    }  # fmt: skip
    events = Run.objects.get().next_event
    again = manage(*words, "--as", "bob", "--json")
    assert (again.code, again.json["new"], Run.objects.get().next_event) == (0, False, events)
    late = manage(*words, "--as", "dave")
    assert late.code == 1
    assert re.fullmatch(rf"error: v1 of run {run} was answered by bob at \S+\.\n", late.err)


def test_questions_of_items_are_answered_in_any_order(tmp_path: Path) -> None:
    people("ann", "bea", "cid")
    run = asked(tmp_path, EACH)
    ambiguous = manage("runs", "answer", str(run), "--approve")
    assert (ambiguous.code, ambiguous.err) == (
        2,
        f"error: Run {run} has 3 open questions.\nhint: Name one of them: v2, v3, v4.\n",
    )
    shown = manage("runs", "show", str(run)).lines
    assert [line for line in shown if "Take" in line] == [
        "  v2 each[0]/ok (a): Take a?",
        "  v3 each[1]/ok (b): Take b?",
        "  v4 each[2]/ok (c): Take c?",
    ]
    for visit, person in (("v4", "cid"), ("v2", "ann"), ("v3", "bea")):
        assert manage("runs", "answer", str(run), visit, "--approve", "--as", person).code == 0
    assert manage("run_workflow", str(run), "--json").json["output"] == ["ann", "bea", "cid"]


def test_the_document_lists_questions_with_everything_about_them(tmp_path: Path) -> None:
    people("alice", "bob", "carol")
    run = asked(tmp_path, DEPLOY, "-P", "version=7", "--as", "alice")
    (question,) = manage("runs", "show", str(run), "--json").json["interrupts"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", question.pop("deadline"))
    assert question == {
        "id": "v1",
        "step": "ask",
        "path": "ask",
        "item": None,
        "kind": "approval",
        "ask": "Deploy 7?",
        "show": [{"name": "changes", "value": "one\n  two"}, {"name": "size", "value": 3}],
        "choices": [],
        "form": [],
        "audience": {"users": ["bob", "carol"]},
        "answer": None,
        "answered_by": None,
    }
    manage("runs", "answer", str(run), "--reject", "--as", "carol")
    (question,) = manage("runs", "show", str(run), "--json").json["interrupts"]
    assert question["answered_by"] == "carol"
    assert question["answer"] == {
        "outcome": "rejected",
        "output": {"by": ["carol"], "comment": None, "decision": "rejected", "form": {}},
    }


def test_items_are_named_in_the_document(tmp_path: Path) -> None:
    run = asked(tmp_path, EACH)
    questions = manage("runs", "show", str(run), "--json").json["interrupts"]
    assert [(one["path"], one["item"]) for one in questions] == [
        ("each[0]/ok", {"index": 0, "key": "a"}),
        ("each[1]/ok", {"index": 1, "key": "b"}),
        ("each[2]/ok", {"index": 2, "key": "c"}),
    ]


def test_a_closed_run_takes_no_answer(tmp_path: Path) -> None:
    run = asked(tmp_path, CHOICE)
    manage("runs", "cancel", str(run))
    refused = manage("runs", "answer", str(run), "v1", "--choice", "left", "--field", "speed=1")
    assert (refused.code, refused.err) == (1, f"error: v1 of run {run} is closed: the run is cancelled.\n")
    assert manage("runs", "answer", str(run), "v9", "--approve").code == 2
    assert manage("runs", "answer", "99", "--approve").err == "error: There is no run 99.\n"


def test_only_the_first_ten_questions_are_printed(tmp_path: Path) -> None:
    text = """
steps:
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }
    concurrency: 12
    do: [{ id: ok, kind: approval, ask: Go?, timeout: 2h }]
"""
    lines = manage("run_workflow", workflow_file(tmp_path, text)).lines
    assert sum(": Go?" in line for line in lines) == 10
    assert "  and 2 more open questions" in lines


WHY = """
steps:
  - id: ask
    kind: approval
    ask: Go?
    by: { users: [bob] }
    form: { why: { type: string }, days: { type: integer, default: 1 } }
    timeout: 2h
"""


def test_problems_of_a_form_speak_of_fields(tmp_path: Path) -> None:
    people("bob")
    run = asked(tmp_path, WHY)
    refused = manage("runs", "answer", str(run), "--approve", "--field", "whi=x", "--as", "bob")
    assert (refused.code, refused.err.splitlines()) == (
        2,
        [
            "error: The answer has 2 problems.",
            "E601 why",
            '    Field "why" is missing.',
            "    Fill it in, or pass `--field why=…`.",
            "E603 whi",
            '    There is no field "whi".',
            '    Did you mean "why"?',
        ],
    )


def test_an_answer_that_says_nothing_is_told_so_before_anything_about_the_person(tmp_path: Path) -> None:
    people("bob")
    run = asked(tmp_path, WHY)
    refused = manage("runs", "answer", str(run))
    assert (refused.code, refused.err.splitlines()) == (
        2,
        [
            "error: The answer has 1 problem.",
            "E604 choice",
            "    The answer must be one of approved, rejected; nothing was chosen.",
            "    `--approve` or `--reject` says it.",
        ],
    )


def test_who_comes_late_hears_who_answered(tmp_path: Path) -> None:
    people("bob")
    run = asked(tmp_path, WHY)
    assert manage("runs", "answer", str(run), "--approve", "--field", "why=ready", "--as", "bob").code == 0
    for words in ([], ["v1"], ["v1", "--approve"]):
        late = manage("runs", "answer", str(run), *words)
        assert late.code == 1
        assert re.fullmatch(rf"error: v1 of run {run} was answered by bob at \S+\.\n", late.err)


def test_without_a_quorum_an_answer_is_told_once_with_its_comment(tmp_path: Path) -> None:
    people("bob")
    run = asked(tmp_path, WHY)
    manage("runs", "answer", str(run), "--reject", "--comment", "too late", "--as", "bob")
    shown = moments_hidden(manage("runs", "show", str(run)))
    at = shown.index("  v1 ask: Go?")
    assert shown[at + 1] == "      rejected by bob at THEN: too late"
    assert not any(line.startswith("      bob ") for line in shown)
    lines = manage("run_workflow", str(run)).lines
    assert any(line.startswith("  v1   ask                      rejected") for line in lines)
