"""Values that no database keeps as they are: refused at the doors with their path, repaired in what steps output (DB.4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.driving import driver_with
from tests.support.kinds import bad, kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import all_rows, assert_sound
from workflows.engine.contract import EffectContext, Result
from workflows.engine.driver import Left
from workflows.errors import Refusal
from workflows.models import Attempt, Run
from workflows.operations.answering import Wish, answer
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.signals import signal
from workflows.operations.workflows import definition_of_file

pytestmark = pytest.mark.django_db(transaction=True)

ANN = Actor(name="ann", recorded="shell:root as ann")
UNSTORABLE: dict[str, Any] = {
    "NUL": "a\x00b",
    "half a surrogate": "a\ud800b",
    "a key with NUL": {"a\x00": 1},
    "not a number": float("nan"),
    "infinity": float("inf"),
    "a huge integer": 2**53,
    "a huge negative integer": -(2**53),
}
FILE = b"""
format: 1
name: takes
params: { given: { type: array } }
steps: [{ id: look, kind: shell, run: "true" }]
"""
ASKS = workflow("""
  - id: ask
    kind: question
    ask: "Well?"
    form: { given: { type: any, required: false } }
""")
HEARS = workflow("  - { id: hear, kind: wait, signal: go }")
WORKS = workflow(
    "  - { id: work, kind: shell, run: x, next: { failed: done } }", after='output: "${ steps.work.output }"'
)


def refusal_of(call: Callable[[], object]) -> Refusal:
    """A refusal that has left every row as it was, but for the audit."""
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        call()
    assert {**all_rows(), "AuditEntry": []} == {**before, "AuditEntry": []}
    return caught.value


@pytest.mark.parametrize("name", UNSTORABLE)
def test_a_parameter_that_cannot_be_stored_is_refused_with_its_path(name: str) -> None:
    """DB.4, PUB.2"""
    wish = Start(definition=definition_of_file(FILE), actor=ANN, given={"given": [1, UNSTORABLE[name]]})
    refusal = refusal_of(lambda: start(wish))
    assert [problem.path.startswith("given[1]") for problem in refusal.problems] == [True]


@pytest.mark.parametrize("name", UNSTORABLE)
def test_an_answer_that_cannot_be_stored_is_refused_with_its_path_and_the_question_stays_open(name: str) -> None:
    """DB.4, INT.4"""
    player = Player(publish_run(ASKS))
    player.play()
    wish = Wish(fields={"given": UNSTORABLE[name]})
    refusal = refusal_of(lambda: answer(player.run_id, None, wish, actor=ANN))
    assert "given" in refusal.problems[0].path


@pytest.mark.parametrize("name", UNSTORABLE)
def test_a_signal_that_cannot_be_stored_is_refused(name: str) -> None:
    """DB.4"""
    player = Player(publish_run(HEARS))
    player.play()
    refusal_of(lambda: signal(player.run_id, "go", UNSTORABLE[name], actor=ANN))


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ("a\x00b", "a\ufffdb"),
        (["\ud800", {"\udfff": "\x00"}], ["\ufffd", {"\ufffd": "\ufffd"}]),
        ({"deep": [{"a\x00": "ok"}]}, {"deep": [{"a\ufffd": "ok"}]}),
    ],
)
def test_texts_and_keys_of_an_output_are_repaired_and_the_attempt_is_marked(
    output: Any, kept: Any, tmp_path: Path
) -> None:
    """DB.4"""
    run_id = publish_run(WORKS)
    with driver_with(kinds_with(work=lambda context: ok(output)), workspaces=tmp_path) as driver:
        assert driver.drive(run_id) is Left.ENDED
    assert output_of(run_id) == kept
    assert Attempt.objects.get(run_id=run_id).marks == '["repaired"]'
    assert_sound()


@pytest.mark.parametrize("output", [float("nan"), [float("-inf")], {"n": 2**53}, [-(2**60)]])
def test_a_number_that_cannot_be_stored_fails_its_attempt_and_nothing_else(output: Any, tmp_path: Path) -> None:
    """DB.4, SET.5"""
    run_id = publish_run(WORKS)
    with driver_with(kinds_with(work=lambda context: ok(output)), workspaces=tmp_path) as driver:
        assert driver.drive(run_id) is Left.ENDED
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, json.loads(attempt.error)["code"]) == ("failed", "invalid_output")
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound()


def test_the_text_of_an_error_is_repaired(tmp_path: Path) -> None:
    """DB.4: also of an exception, with its trace."""

    def fail(context: EffectContext) -> Result:
        raise ValueError("bad \x00 and \ud800")

    for script in (bad(message="bad \x00 and \ud800"), fail):
        run_id = publish_run(WORKS)
        with driver_with(kinds_with(work=script), workspaces=tmp_path) as driver:
            assert driver.drive(run_id) is Left.ENDED
        attempt = Attempt.objects.get(run_id=run_id)
        assert "bad \ufffd and \ufffd" in json.loads(attempt.error)["message"]
        assert attempt.marks == '["repaired"]'
    assert_sound()
