"""The state of a run at a revision, for every revision of runs that took every kind of turn (REV 1, 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands.left_runs import interrupted_run, waiting_run
from tests.commands.support import manage, workflow_file
from workflows.errors import Refusal
from workflows.models import Event, Run, Visit
from workflows.queries.history import state_at
from workflows.queries.runs import run_document

pytestmark = pytest.mark.django_db(transaction=True)

COUNTS = """
vars: { n: 1 }
steps:
  - { id: add, kind: assign, set: { n: "${ vars.n + 1 }" } }
  - { id: say, kind: shell, run: 'echo "$N"', env: { N: "${ vars.n }" } }
  - { id: double, kind: assign, set: { n: "${ vars.n * 2 }" } }
output: ${ vars.n }
"""
FRAGILE = """
params: { flag: { type: string } }
steps:
  - { id: fragile, kind: shell, run: 'test -e "$FLAG"; echo repaired', env: { FLAG: "${ params.flag }" } }
output: ${ steps.fragile.output }
"""
SHARED = ("status", "reasons", "output", "error", "started_at", "ended_at", "visits", "events_cursor")


def states(run_id: int) -> list[dict[str, Any]]:
    """The states of every revision, the first one at index 1."""
    return [{}, *(state_at(run_id, revision) for revision in range(1, Run.objects.get(pk=run_id).revision + 1))]


def check_last_is_now(run_id: int) -> None:
    last = state_at(run_id, Run.objects.get(pk=run_id).revision)
    now = run_document(run_id)
    assert {name: last[name] for name in SHARED} == {name: now[name] for name in SHARED}


def visits_of(state: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(visit["step"], visit["status"], visit["outcome"]) for visit in state["visits"]]


def test_every_visit_appears_at_its_own_revision_and_the_last_state_is_the_present_one(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, COUNTS))
    run_id = Run.objects.get().pk
    check_last_is_now(run_id)
    found = states(run_id)
    for visit in Visit.objects.filter(run_id=run_id):
        before = [one["number"] for one in found[visit.revision_before]["visits"]]
        assert visit.number not in before
        assert visit.number in [one["number"] for one in found[visit.revision_created]["visits"]]
    for revision, state in enumerate(found[1:], start=1):
        assert state["events_cursor"] == Event.objects.filter(run_id=run_id, revision__lte=revision).count()


def test_variables_and_outputs_are_those_of_the_revision(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, COUNTS))
    found = states(Run.objects.get().pk)
    values = [state["variables"][""].get("n") for state in found[1:]]
    assert values[0] is None
    assert [value for value, former in zip(values[1:], values, strict=False) if value != former] == [1, 2, 4]
    say = next(state["visits"][1] for state in found[1:] if len(state["visits"]) == 2)
    assert (say["status"], say["output"], say["attempts"][0]["status"]) == ("open", None, "running")
    assert [state["output"] for state in found[1:]] == [*[None] * (len(found) - 2), 4]


def test_a_reopened_visit_is_failed_before_and_open_after_the_reopening(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    manage("run_workflow", workflow_file(tmp_path, FRAGILE), "-P", f"flag={flag}")
    run = Run.objects.get()
    failed_at = run.revision
    failed = state_at(run.pk, failed_at)
    manage("runs", "resume", str(run.pk))
    flag.touch()
    opened_at = Run.objects.get().revision
    manage("run_workflow", str(run.pk))
    check_last_is_now(run.pk)
    again = state_at(run.pk, failed_at)
    assert {name: again[name] for name in SHARED} == {name: failed[name] for name in SHARED}
    assert visits_of(again) == [("fragile", "settled", "failed")]
    assert again["error"]["code"] == "exit_nonzero"
    opened = state_at(run.pk, opened_at)
    assert (opened["status"], opened["error"], opened["ended_at"]) == ("queued", None, None)
    assert visits_of(opened) == [("fragile", "open", None)]
    assert [attempt["status"] for attempt in opened["visits"][0]["attempts"]] == ["failed"]


def test_an_interrupted_attempt_is_interrupted_until_it_is_reconciled(tmp_path: Path) -> None:
    run_id = interrupted_run(tmp_path)
    blocked_at = Run.objects.get().revision
    manage("runs", "reconcile", str(run_id), "happened", "--text", "x", "--reason", "r")
    manage("run_workflow", str(run_id))
    check_last_is_now(run_id)
    blocked = state_at(run_id, blocked_at)
    assert blocked["status"] == "blocked"
    assert [attempt["status"] for attempt in blocked["visits"][1]["attempts"]] == ["interrupted"]
    statuses = [
        state["visits"][1]["attempts"][0]["status"] for state in states(run_id)[1:] if len(state.get("visits", [])) > 1
    ]
    assert list(dict.fromkeys(statuses)) == ["running", "interrupted", "succeeded"]


def test_a_cancelled_run_was_waiting_before(tmp_path: Path) -> None:
    run_id = waiting_run(tmp_path, "steps:\n  - { id: nap, kind: wait, for: 1h }\n")
    waiting_at = Run.objects.get().revision
    manage("runs", "cancel", str(run_id))
    check_last_is_now(run_id)
    state = state_at(run_id, waiting_at)
    assert (state["status"], state["closing"], visits_of(state)) == ("waiting", None, [("nap", "open", None)])
    assert state["reasons"][0]["cause"] == "timer"
    assert state["scopes"][0]["waits_for"] == "timer"


def test_looking_changes_nothing_and_other_revisions_do_not_exist(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, COUNTS))
    run = Run.objects.get()
    for revision in (-1, 0, run.revision + 1):
        with pytest.raises(Refusal) as refused:
            state_at(run.pk, revision)
        assert refused.value.message == f"Run {run.pk} has no revision {revision}; it has 1 to {run.revision}."
    states(run.pk)
    assert Run.objects.get().revision == run.revision


def test_an_open_question_belongs_to_the_state_and_its_attempt_waits_outside(tmp_path: Path) -> None:
    """REV.2: also of a question that was answered since."""
    text = 'steps:\n  - { id: ask, kind: question, ask: "Well?", choices: [y, n], next: { y: done, n: done } }\n'
    run_id = waiting_run(tmp_path, text)
    asked_at = Run.objects.get(pk=run_id).revision
    manage("runs", "answer", str(run_id), "--choice", "y")
    manage("run_workflow", str(run_id))
    check_last_is_now(run_id)
    state = state_at(run_id, asked_at)
    assert [(one["id"], one["ask"]) for one in state["questions"]] == [("v1", "Well?")]
    assert [attempt["status"] for attempt in state["visits"][0]["attempts"]] == ["paused"]
    assert state_at(run_id, Run.objects.get(pk=run_id).revision)["questions"] == []
