"""What is edited when a run is forked, another version, child runs, and the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from tests.forks.test_cuts import ANN, CHAIN, failed_chain, refused, wish
from tests.support.forks import digest_of
from tests.support.kinds import bad, ok
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player, output_of, play
from tests.support.rows import assert_sound, events_of
from tests.support.worlds import publish_parent, sweep
from workflows.conf import conf
from workflows.engine.workspaces import Workspaces
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Event, Run, ScopeVars, Visit
from workflows.operations.forking import ForkWish, fork, preview
from workflows.operations.people import user_actor
from workflows.operations.runs import cancel
from workflows.queries.history import state_at
from workflows.queries.runs import run_document

pytestmark = pytest.mark.django_db(transaction=True)

ITEMS = workflow("""
  - id: each
    kind: map
    over: [1, 2]
    as: item
    vars: { twice: { type: integer, value: "${ item * 2 }" } }
    do:
      - { id: read, kind: shell, run: x, access: read, workspace: none }
      - { id: work, kind: shell, run: x, env: { N: "${ vars.twice }" }, access: read, workspace: none }
""")
PARSED = workflow(
    """
  - { id: ask, kind: shell, run: x, parse: json, schema: { type: object, required: [a] } }
  - { id: use, kind: assign, set: { seen: "${ steps.ask.output.a }" } }
  - { id: work, kind: shell, run: x }
""",
    before="vars: { seen: 0 }",
    after='output: "${ steps.ask.output }"',
)
KID = workflow(
    "  - { id: one, kind: shell, run: x }\n  - { id: two, kind: shell, run: x }", name="kid", after='output: "kid"'
)
PARENT = workflow(
    """
  - { id: call, kind: workflow, ref: kid }
  - { id: work, kind: shell, run: x }
""",
    name="parent",
    after='output: "${ steps.call.output }"',
)


# ---- parameters, variables, outputs ---------------------------------------------------------------------------------


def test_parameters_are_edited_and_checked_like_those_of_a_start() -> None:
    """FORK.5"""
    origin = failed_chain()
    invalid = refused(origin, params={"region": 3})
    assert (invalid.code, invalid.problems[0].path) == ("params.invalid", "region")
    assert refused(origin, params={"nowhere": "x"}).code == "params.invalid"
    run_id = fork(wish(origin, params={"region": "us"})).run_id
    play(run_id)
    assert output_of(run_id) == {"n": 2, "one": "one", "region": "us"}
    assert run_document(origin)["params"] == {"region": "eu"}
    assert list(run_document(run_id)["fork_of"]["edits"]) == ["params"]
    assert fork(wish(origin, params={"region": "eu"})).run_id
    assert run_document(Run.objects.latest("pk").pk)["fork_of"]["edits"] == {}


def test_variables_are_edited_where_they_live() -> None:
    """FORK.5"""
    origin = failed_chain()
    run_id = fork(wish(origin, variables={"n": 40})).run_id
    cut = Run.objects.get(pk=run_id).fork_revision or 0
    assert [state_at(run_id, revision)["variables"][""]["n"] for revision in (cut, cut + 1)] == [2, 40]
    play(run_id)
    assert output_of(run_id)["n"] == 40
    assert list(run_document(run_id)["fork_of"]["edits"]["variables"][""]) == ["n"]
    items = publish_run(ITEMS)
    play(items)
    cut = Visit.objects.get(run_id=items, number=3).revision_created
    edited = fork(wish(items, at=cut, variables={"each[1].twice": 7, "each[0]/vars.twice": 5})).run_id
    found = dict(ScopeVars.objects.filter(run_id=edited).values_list("path", "values"))
    assert (found["each[0]"], found["each[1]"]) == ('{"twice":5}', '{"twice":7}')
    play(edited)
    assert_sound(run_id, edited)


@pytest.mark.parametrize(
    ("word", "value", "reason"),
    [
        ("m", 1, 'There is no variable "m" at the cut.'),
        ("each[0].n", 1, 'There is no scope "each[0]" at revision'),
        ("N!", 1, '"N!" does not name a variable.'),
        ("n", "a\0b", "U+0000"),
    ],
)
def test_an_edit_of_what_is_not_there_or_cannot_be_stored_is_refused(word: str, value: Any, reason: str) -> None:
    """FORK.5"""
    refusal = refused(failed_chain(), variables={word: value})
    assert refusal.code == "fork.invalid_edit"
    assert reason in refusal.message


def test_an_output_is_edited_as_its_step_could_have_given_it() -> None:
    """FORK.5"""
    origin = publish_run(PARSED)
    play(origin, {"work": bad(), "ask": ok({"a": 1})})
    assert refused(origin, outputs={"v1": {"b": 1}}).code == "attempt.invalid_result"
    assert refused(origin, outputs={"v3": "x"}).code == "fork.invalid_edit"
    assert refused(origin, outputs={"v8": "x"}).code == "fork.ambiguous"
    run_id = fork(wish(origin, outputs={"ask": {"a": 5}})).run_id
    cut = Run.objects.get(pk=run_id).fork_revision or 0
    assert [state_at(run_id, at)["visits"][0]["output"] for at in (cut, cut + 1)] == [{"a": 1}, {"a": 5}]
    assert_sound(run_id)
    play(run_id)
    assert output_of(run_id) == {"a": 5}
    assert list(run_document(run_id)["fork_of"]["edits"]["outputs"]) == ["v1"]
    assert run_document(origin)["visits"][0]["output"] == {"a": 1}
    assert_sound(origin, run_id)


def test_an_output_that_nothing_reads_any_more_is_not_edited() -> None:
    """FORK.5"""
    origin = publish_run(ITEMS)
    play(origin)
    cut = Event.objects.filter(run_id=origin, type="scope_ended").earliest("sequence").revision
    state = state_at(origin, cut)
    (path,) = [scope["path"] for scope in state["scopes"] if scope["phase"] == "ended"]
    refusal = refused(origin, at=cut, outputs={f"{path}/read": "x"})
    assert (refusal.code, "had ended" in refusal.message) == ("fork.invalid_edit", True)
    assert "had ended" in refused(origin, at=cut, variables={f"{path}.twice": 1}).message


# ---- another version ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("former", "new", "step", "difference"),
    [
        ("id: one, kind: shell, run: x", "id: uno, kind: shell, run: x", '"one"', "was visited and is not in it"),
        ("id: one, kind: shell, run: x", "id: one, kind: wait, for: 1s", '"one"', "is of kind wait"),
        ("id: two, kind: shell", "id: zwei, kind: shell", '"two"', "comes next and is not in it"),
        ("value: 1 } }", "value: 1 }, m: 3 }", '"two"', "needs the variable m"),
    ],
)
def test_a_version_that_does_not_fit_is_refused_by_the_name_of_the_step(
    former: str, new: str, step: str, difference: str
) -> None:
    """FORK.5"""
    origin = failed_chain()
    text = CHAIN.replace(former, new).replace("${ steps.one.output }", "1")
    version = store_plan(text, private=False).version
    refusal = refused(origin, plan=str(version))
    assert refusal.code == "fork.plan_mismatch"
    assert step in refusal.message
    assert difference in refusal.message
    assert refused(origin, plan="7").code == "input.invalid"


def test_a_new_variable_of_another_version_gets_its_value_with_the_fork() -> None:
    """FORK.5"""
    origin = failed_chain()
    text = CHAIN.replace("value: 1 } }", "value: 1 }, m: 3 }").replace('n: "${ vars.n }", one', 'n: "${ vars.m }", one')
    store_plan(text, private=False)
    run_id = fork(wish(origin, plan="current", variables={"m": 9})).run_id
    play(run_id)
    assert output_of(run_id)["n"] == 9
    assert_sound(run_id)


# ---- child runs -----------------------------------------------------------------------------------------------------


def waiting_parent(*, ended: bool = False) -> tuple[int, int]:
    parent = publish_parent(PARENT, KID)
    play(parent)
    child = Run.objects.get(parent_run=parent).pk
    if ended:
        play(child)
        play(parent, {"work": bad()})
    return parent, child


def cut_of(parent: int) -> int:
    return Visit.objects.get(run_id=parent, step="call").revision_created


def test_a_child_that_was_awaited_makes_the_fork_ask() -> None:
    """FORK.6"""
    parent, child = waiting_parent()
    refusal = refused(parent, at=cut_of(parent))
    assert (refusal.code, f"run {child} (kid, queued)" in refusal.message) == ("fork.child_open", True)


def test_the_result_of_the_origins_child_is_taken_when_it_ends() -> None:
    """FORK.6, CHD.3"""
    parent, child = waiting_parent()
    fork_id = fork(wish(parent, at=cut_of(parent), child="take")).run_id
    assert play(fork_id).status == "waiting"
    assert not Run.objects.filter(parent_run=fork_id).exists()
    assert_sound(fork_id)
    play(child)
    assert "child_ended" in events_of(fork_id)
    assert play(fork_id).status == "succeeded"
    assert output_of(fork_id) == "kid"
    assert play(parent).status == "succeeded"
    assert_sound(parent, child, fork_id)


def test_a_lost_word_about_the_end_of_a_taken_child_is_repeated_by_the_sweep() -> None:
    """FORK.6"""
    parent, child = waiting_parent()
    fork_id = fork(wish(parent, at=cut_of(parent), child="take")).run_id
    play(fork_id)
    player = Player(child)
    while not player.hand.step({name: player.result(name) for name in player.hand.running}).draft.ended:
        pass
    assert "child_ended" not in events_of(fork_id)
    sweep()
    assert "child_ended" in events_of(fork_id)
    assert play(fork_id).status == "succeeded"
    assert sweep() == 0


def test_a_fork_that_is_cancelled_leaves_the_origins_child_alone() -> None:
    """FORK.6"""
    parent, child = waiting_parent()
    fork_id = fork(wish(parent, at=cut_of(parent), child="take")).run_id
    play(fork_id)
    cancel(fork_id, actor=ANN)
    assert play(fork_id).status == "cancelled"
    sweep()
    assert Run.objects.get(pk=child).status == "queued"
    assert "control_accepted" not in events_of(child)


def test_a_new_child_is_started_by_the_next_attempt() -> None:
    """FORK.6, CHD.1"""
    parent, child = waiting_parent(ended=True)
    fork_id = fork(wish(parent, at=cut_of(parent), child="new")).run_id
    play(fork_id)
    (new,) = Run.objects.filter(parent_run=fork_id)
    assert (new.pk != child, new.visits, new.root_run_id) == (True, 0, fork_id)
    rows = Attempt.objects.filter(run_id=fork_id, visit=1).order_by("number")
    assert list(rows.values_list("number", "status")) == [(1, "cancelled"), (2, "paused")]
    play(new.pk)
    assert play(fork_id).status == "succeeded"
    assert_sound()


def test_the_child_is_forked_as_it_was_and_ends_in_the_fork() -> None:
    """FORK 3, 6"""
    parent = publish_parent(PARENT, KID)
    play(parent)
    child = Run.objects.get(parent_run=parent).pk
    player = Player(child)
    player.step()
    player.settle()
    player.die()
    player.hand.step()
    cut = Run.objects.get(pk=parent).revision
    leases.release(run_id=child, epoch=player.hand.grant.epoch)
    before = [digest_of(parent), digest_of(child)]
    fork_id = fork(wish(parent, at=cut, child="fork")).run_id
    assert [digest_of(parent), digest_of(child)] == before
    (new,) = Run.objects.filter(parent_run=fork_id)
    assert (new.fork_of_id, new.root_run_id, new.parent_visit, new.depth) == (child, fork_id, 1, 1)
    assert new.invocation_key == Run.objects.get(pk=child).invocation_key
    assert_sound(fork_id, new.pk)


# ---- the rest -------------------------------------------------------------------------------------------------------


def test_a_fork_that_failed_is_reopened_like_any_run() -> None:
    """ABR.2, FORK.4"""
    run_id = fork(wish(failed_chain())).run_id
    play(run_id, {"two": bad()})
    now = Run.objects.get(pk=run_id).created_at
    assert reopen(run_id=run_id, actor="ann", reason="again", now=now) == 3
    assert play(run_id).status == "succeeded"
    assert_sound(run_id)


def test_the_workspace_of_a_fork_is_empty_or_a_copy_and_the_lineage_says_which(tmp_path: Path, settings: Any) -> None:
    """FORK.5"""
    settings.WORKSPACE_ROOT = str(tmp_path)
    origin = failed_chain()
    workspaces = Workspaces(conf().workspace_root)
    (workspaces.path(origin) / "made").write_text("by one")
    empty = fork(wish(origin)).run_id
    assert list(workspaces.path(empty).iterdir()) == []
    assert run_document(empty)["fork_of"]["workspace"] == "empty"
    copied = fork(wish(origin, copy_workspace=True)).run_id
    assert (workspaces.path(copied) / "made").read_text() == "by one"
    assert run_document(copied)["fork_of"]["workspace"] == "copied"
    assert Run.objects.get(pk=copied).held
    assert play(copied).status == "succeeded"
    assert sorted(path.name for path in workspaces.root.iterdir() if path.name.startswith("copy-")) == []
    assert_sound(copied)


def test_a_preview_writes_nothing_and_says_what_the_fork_would_do() -> None:
    """FORK.1"""
    origin = failed_chain()
    runs, before = Run.objects.count(), digest_of(origin)
    shown = preview(wish(origin, params={"region": "us"}))
    assert [one["path"] for one in shown.kept] == ["one", "count"]
    assert [one["path"] for one in shown.left_out] == ["two"]
    assert (shown.visit, list(shown.edits)) == (3, ["params"])
    assert (Run.objects.count(), digest_of(origin)) == (runs, before)


def test_a_run_whose_copy_would_not_be_sound_is_not_forked() -> None:
    """FORK.8"""
    origin = failed_chain()

    @ledger_transaction
    def spoil(outcome: str) -> None:
        Visit.objects.filter(run_id=origin, number=1).update(outcome=outcome)

    spoil("")
    refusal = refused(origin)
    assert refusal.code == "fork.unsound"
    assert "v1" in refusal.message
    spoil("ok")
    assert fork(wish(origin)).created


def test_somebody_without_the_permission_forks_nothing() -> None:
    """WEB.2"""
    origin = failed_chain()
    user = get_user_model()._default_manager.create_user(username="eve")
    runs = Run.objects.count()
    with pytest.raises(Refusal) as caught:
        fork(ForkWish(run_id=origin, actor=user_actor(user)))
    assert caught.value.code == "run.not_found"
    assert Run.objects.count() == runs
