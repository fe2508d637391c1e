"""Bulk actions: a set fixed when it is made, one result per run, an end at any time (promise ABR.4)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.commands.support import manage
from tests.support.kinds import bad
from tests.support.plans import START, publish_run, workflow
from tests.support.players import play
from tests.support.rows import all_rows
from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger import bulk as ledger
from workflows.ledger.transactions import database_thread
from workflows.models import AuditEntry, BulkAction, BulkItem, Run, RunFilter, WorkflowAccess
from workflows.operations import bulk
from workflows.operations.people import Actor, user_actor

pytestmark = pytest.mark.django_db(transaction=True)

SHELL = Actor(name="shell:ann", recorded="shell:ann")
FAILED = RunFilter(statuses=("failed",))
LIVE = RunFilter(live=True)


def queued(name: str = "demo") -> int:
    return publish_run(workflow("  - { id: work, kind: shell, run: x }", name=name))


def failed(name: str = "demo") -> int:
    run_id = queued(name)
    play(run_id, {"work": bad()})
    return run_id


def make(action: str = "abandon", chosen: RunFilter = LIVE, *, actor: Actor = SHELL, request_id: str = "r") -> int:
    return bulk.create(action, chosen, actor=actor, reason="too many", request_id=request_id)


def results(number: int) -> dict[int, str]:
    return {row["run"]: row["result"] for row in bulk.results(number, actor=SHELL)}


def test_a_bulk_action_does_every_run_of_its_set_and_says_what_became_of_each() -> None:
    """ABR.4"""
    first, second = queued(), queued("other")
    number = make()
    assert results(number) == {second: "", first: ""}
    how_far = bulk.carry_on(number)
    assert (how_far.total, how_far.done, how_far.refused, how_far.left, how_far.is_over) == (2, 2, 0, 0, True)
    assert results(number) == {second: "done", first: "done"}
    assert set(Run.objects.values_list("status", flat=True)) == {"abandoned"}
    assert bulk.unfinished() == []


def test_a_refusal_is_the_result_of_its_run_and_stops_no_other() -> None:
    """ABR.4"""
    runs = [queued(), queued(), queued()]
    number = make()
    bulk.runs.abandon(runs[1], actor=SHELL, reason="before")
    how_far = bulk.carry_on(number)
    assert (how_far.done, how_far.refused) == (2, 1)
    assert results(number) == {runs[2]: "done", runs[1]: "run.terminal", runs[0]: "done"}
    told = {row["run"]: row["message"] for row in bulk.results(number, actor=SHELL)}
    assert told[runs[1]] == f"Run {runs[1]} is already abandoned."


def test_the_set_is_that_of_the_moment_at_which_it_was_made() -> None:
    """ABR.4"""
    inside = queued()
    number = make()
    outside = queued()
    assert make() == number, "the same request is the same action"
    bulk.carry_on(number)
    assert results(number) == {inside: "done"}
    assert Run.objects.get(pk=outside).status == "queued"
    assert BulkAction.objects.count() == 1


def test_another_action_under_the_same_request_id_is_refused() -> None:
    """ABR.4"""
    queued()
    make()
    with pytest.raises(Refusal) as caught:
        make("cancel")
    assert caught.value.code == "bulk.conflict"


@pytest.mark.parametrize("action", ["cancel", "pause"])
def test_every_action_is_carried_out(action: str) -> None:
    """ABR.4"""
    run_id = queued()
    number = make(action)
    assert bulk.carry_on(number).done == 1
    assert list(Run.objects.filter(pk=run_id).values_list("controls_accepted", flat=True)) == [1]


@pytest.mark.parametrize("action", ["resume", "retry"])
def test_failed_runs_go_on_again(action: str) -> None:
    """ABR.4"""
    runs = [failed(), failed()]
    done = bulk.carry_on(make(action, FAILED))
    assert done.done == 2
    assert set(Run.objects.filter(pk__in=runs).values_list("status", flat=True)) == {"queued"}


def test_a_preview_counts_and_changes_nothing() -> None:
    """ABR.4"""
    queued(), queued("other"), failed()
    before = all_rows()
    found = bulk.preview("retry", RunFilter(statuses=("queued", "failed", "succeeded")), actor=SHELL)
    assert (found.runs, found.by_status, found.by_workflow) == (
        3,
        {"failed": 1, "queued": 2},
        {"demo": 2, "other": 1},
    )
    assert (found.spend, found.too_many) == (None, False)
    assert bulk.preview("abandon", RunFilter(statuses=("queued", "failed")), actor=SHELL).can_change == 2
    assert all_rows() == before


@pytest.mark.parametrize(
    ("action", "chosen", "reason", "code"),
    [
        ("abandon", RunFilter(), "r", "bulk.empty_filter"),
        ("cancel", RunFilter(before=9), "r", "bulk.empty_filter"),
        ("abandon", LIVE, " ", "input.invalid"),
        ("delete", LIVE, "r", "input.invalid"),
    ],
)
def test_what_cannot_be_meant_is_refused(action: str, chosen: RunFilter, reason: str, code: str) -> None:
    """ABR.4"""
    queued()
    with pytest.raises(Refusal) as caught:
        bulk.create(action, chosen, actor=SHELL, reason=reason, request_id="r")
    assert caught.value.code == code
    assert not BulkAction.objects.exists()


def test_a_set_of_nothing_is_over_at_once() -> None:
    """ABR.4"""
    number = make(chosen=FAILED)
    how_far = bulk.carry_on(number)
    assert (how_far.total, how_far.is_over) == (0, True)


def test_too_many_runs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """ABR.4"""
    queued(), queued()
    monkeypatch.setattr(bulk, "MOST_RUNS", 1)
    with pytest.raises(Refusal) as caught:
        make()
    assert caught.value.code == "bulk.too_many"


def test_an_aborted_action_leaves_the_rest_as_it_is() -> None:
    """ABR.4"""
    runs = [queued(), queued(), queued()]
    number = make()
    bulk.carry_on(number, seconds=0)
    assert bulk.abort(number, actor=SHELL)
    assert not bulk.abort(number, actor=SHELL)
    how_far = bulk.carry_on(number)
    assert (how_far.done, how_far.left, how_far.is_aborted, how_far.is_over) == (1, 2, True, True)
    assert [Run.objects.get(pk=run).status for run in runs] == ["queued", "queued", "abandoned"]
    told = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(told) == ["bulk.abandon", "run.abandon", "bulk.abort"]


def test_two_who_go_on_at_once_do_no_run_twice() -> None:
    """ABR.4"""
    for _ in range(12):
        queued()
    number = make()
    errors: list[BaseException] = []

    def go_on() -> None:
        with database_thread():
            try:
                bulk.carry_on(number, seconds=60)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=go_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(results(number).values()) == {"done"}
    assert AuditEntry.objects.filter(action="run.abandon").count() == 12
    assert bulk.progress(number).is_over


def test_what_a_dead_worker_took_is_done_after_a_while_by_somebody_else() -> None:
    """ABR.4"""
    run_id = queued()
    number = make()
    now_ms = database_now_ms()
    taken = ledger.take_item(bulk_id=number, now_ms=now_ms - 10_000, for_ms=60_000)
    assert taken is not None
    assert bulk.carry_on(number).left == 1
    assert Run.objects.get(pk=run_id).status == "queued"
    again = ledger.take_item(bulk_id=number, now_ms=now_ms + 60_000, for_ms=60_000)
    assert again is not None
    assert not ledger.finish_item(item=taken, result="done", message="", now=START), "it is not ours any more"
    assert ledger.finish_item(item=again, result="done", message="", now=START)
    assert bulk.progress(number).is_over


def person(name: str, *permissions: str) -> Actor:
    user = User.objects.create_user(name)
    for codename in permissions:
        user.user_permissions.add(Permission.objects.get(codename=codename))
    return user_actor(User.objects.get(pk=user.pk))


def test_a_user_reaches_only_what_they_see_and_may() -> None:
    """ABR.4, WEB.2"""
    mine, hidden = queued(), queued("hidden")
    WorkflowAccess.objects.create(
        workflow_id=Run.objects.get(pk=hidden).workflow_id, group=Group.objects.create(name="others")
    )
    with pytest.raises(Refusal) as caught:
        make(actor=person("eve", "view_run", "view_workflow"))
    assert caught.value.code == "access.denied"
    number = make(actor=person("bob", "view_run", "view_workflow", "abandon_run"))
    assert results(number) == {mine: ""}
    bulk.carry_on(number)
    assert Run.objects.get(pk=mine).status == "abandoned"
    assert AuditEntry.objects.get(action="run.abandon").actor == "bob"


def test_who_lost_the_right_meanwhile_or_has_gone_does_nothing_more() -> None:
    """ABR.4, WEB.2"""
    first, second = queued(), queued()
    bob = person("bob", "view_run", "view_workflow", "abandon_run")
    number = make(actor=bob)
    User.objects.get(username="bob").user_permissions.remove(Permission.objects.get(codename="abandon_run"))
    bulk.carry_on(number, seconds=0)
    User.objects.filter(username="bob").update(is_active=False)
    bulk.carry_on(number)
    assert results(number) == {second: "access.denied", first: "user.not_found"}
    assert set(Run.objects.values_list("status", flat=True)) == {"queued"}


def test_an_action_that_is_not_there_is_told() -> None:
    for call in (bulk.progress, bulk.carry_on):
        with pytest.raises(Refusal) as caught:
            call(4711)
        assert caught.value.code == "bulk.not_found"


# ---- by command ------------------------------------------------------------------------------------------------------


def bulk_command(*words: Any) -> Any:
    return manage("runs", "bulk", *map(str, words))


def test_the_command_previews_asks_and_does() -> None:
    """ABR.4"""
    run_id = queued()
    seen = bulk_command("abandon", "--status", "queued", "--dry-run")
    assert seen.lines == [
        "1 run meant; abandon can do something to 1.",
        "    queued: 1",
        "    demo: 1",
        "    what it may cost to go on with them: unknown",
    ]
    asked = bulk_command("abandon", "--status", "queued", "--reason", "enough")
    assert (asked.code, asked.err.splitlines()[0]) == (2, "error: 1 run would be changed, and nobody can be asked.")
    assert not BulkItem.objects.exists()
    done = bulk_command("abandon", "--status", "queued", "--reason", "enough", "--yes")
    number = BulkAction.objects.get().pk
    assert done.code == 0
    assert [line.split() for line in done.lines] == [
        ["RUN", "RESULT"],
        [str(run_id), "done", "abandoned"],
        f"bulk action {number}, abandon: 1 of 1 run done.".split(),
    ]


def test_the_command_shows_continues_and_aborts() -> None:
    """ABR.4"""
    queued(), queued()
    number = make()
    bulk.carry_on(number, seconds=0)
    shown = bulk_command("show", number, "--json")
    assert (shown.code, shown.json["done"], shown.json["left"]) == (1, 1, 1)
    assert bulk_command("continue", number).code == 0
    assert bulk_command("show", number).code == 0
    other = make(chosen=RunFilter(statuses=("abandoned",)), request_id="again", action="resume")
    aborted = bulk_command("abort", other)
    assert aborted.lines[-1] == f"bulk action {other}, resume: 0 of 2 runs done, 2 left as they are."
    assert bulk_command("show").code == 2


def test_the_same_request_twice_is_one_action() -> None:
    """ABR.4"""
    queued()
    words = ("abandon", "--run", Run.objects.get().pk, "--reason", "enough", "--yes", "--request-id", "ticket 12")
    assert bulk_command(*words).code == 0
    assert bulk_command(*words).code == 0
    assert BulkAction.objects.count() == 1
    assert AuditEntry.objects.filter(action="run.abandon").count() == 1
