"""Why real runs do not move: driven to a stop in every way, then asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.commands.support import manage
from tests.support.hand import Hand, expire
from tests.support.kinds import bad, kinds_with, ok
from tests.support.plans import publish_run, workflow
from tests.support.players import Player
from tests.support.worlds import publish_in_line, publish_parent
from workflows.clock import database_now_ms
from workflows.engine.contract import Missing
from workflows.ledger.controlling import send
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Run, WorkflowAccess
from workflows.queries.why_facts import Because
from workflows.queries.why_rows import why_run
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

WORK = workflow("  - { id: work, kind: shell, run: make }")


def reasons(run_id: int, **more: Any) -> list[Because]:
    return why_run(Run.objects.get(pk=run_id), **more)


def only(run_id: int, **more: Any) -> Because:
    (reason,) = reasons(run_id, **more)
    return reason


def parked(steps: str, **scripts: Any) -> int:
    """A run that was driven until it waits."""
    player = Player(publish_run(workflow(steps)), scripts)
    player.play()
    return player.run_id


def test_a_run_that_nobody_has_taken() -> None:
    """WEB.5: no worker has polled, since the start."""
    run_id = publish_run(WORK)
    reason = only(run_id)
    assert (reason.code, reason.since) == ("no_worker", Run.objects.get(pk=run_id).created_at)
    assert "no worker is at work on any run" in reason.sentence


def test_a_run_that_nobody_has_taken_while_workers_drive_others() -> None:
    """WEB.5: workers that live are told from workers that are not there."""
    Hand(publish_run(WORK)).step()
    assert "workers are busy with other runs" in only(publish_run(WORK)).sentence


def test_a_driven_run_has_no_reason_until_its_worker_falls_silent() -> None:
    """WEB.5: lease held by a silent worker, by the clock of the database."""
    run_id = publish_run(WORK)
    Hand(run_id, owner="host:1").step()
    assert reasons(run_id) == []
    reason = only(run_id, now_ms=database_now_ms() + 45_000)
    assert (reason.code, reason.passes) == ("silent_worker", True)
    assert "host:1" in reason.sentence
    assert only(run_id, now_ms=database_now_ms() + 61_000).code == "worker_lost"
    expire(run_id)
    assert only(run_id).code == "worker_lost"


def test_a_timer_a_signal_and_a_retry() -> None:
    """WEB.5: what passes by itself says until when, what is awaited says its name."""
    timer = only(parked("  - { id: nap, kind: wait, for: 10d }"))
    assert (timer.code, timer.sentence) == ("timer", "nap waits for a moment to come.")
    assert timer.until is not None
    signal = only(parked("  - { id: ready, kind: wait, signal: go_on }"))
    assert (signal.sentence, signal.verb) == ('ready waits for the signal "go_on".', "signal")
    retried = "  - { id: work, kind: shell, run: x, access: read, retry: { attempts: 3, wait: 10d } }"
    retry = only(parked(retried, work=bad("network")))
    assert (retry.sentence, retry.verb) == ("work failed (network) and waits for its next attempt.", "retry")
    assert retry.until is not None


def test_a_question_says_who_may_answer_until_when() -> None:
    """WEB.5: question open until T for whom."""
    steps = "  - { id: sign_off, kind: approval, ask: Go?, by: { users: [bob], groups: [owners] }, timeout: 10d }"
    run_id = parked(steps)
    reason = only(run_id)
    assert reason.sentence == "sign_off waits for an answer of bob or group owners."
    assert reason.until is not None
    assert reason.target is not None
    assert (reason.target.kind, reason.target.visit) == ("question", 1)


def test_an_interrupted_write_has_to_be_reconciled() -> None:
    """ADM.5: it waits for ever, and the reason says which attempt it is about."""
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: make, access: write }"))
    Hand(run_id).step()
    expire(run_id)
    Hand(run_id).step()
    reason = only(run_id)
    assert (reason.code, reason.passes) == ("reconcile", False)
    assert "attempt 1 of work" in reason.sentence


class Gone:
    name = "shell"

    def enter(self, entry: Any) -> Missing:
        return Missing(what="task function", name="billing.charge", step=entry.step.id)


def test_missing_code_is_named() -> None:
    """PLAN.5: a run becomes blocked with the missing name."""
    run_id = publish_run(WORK)
    Hand(run_id, kinds={"shell": Gone()}).step()
    reason = only(run_id)
    assert (reason.code, reason.verb) == ("missing_code", "resume")
    assert reason.sentence.startswith("work needs task function billing.charge")


def test_a_child_run_is_named_with_its_own_reason() -> None:
    """CHD.3: a child that stops leaves its parent waiting, and the parent says so."""
    kid = workflow("  - { id: ask_it, kind: approval, ask: Go? }", name="kid")
    parent = Player(publish_parent(workflow("  - { id: call, kind: workflow, ref: kid }", name="parent"), kid))
    parent.play()
    child = Run.objects.get(parent_run_id=parent.run_id)
    Player(child.pk).play()
    reason = only(parent.run_id)
    assert reason.sentence == f"call waits for run {child.pk}, which is paused: ask_it waits for an answer."
    assert not reason.passes
    assert reason.target is not None
    assert (reason.target.kind, reason.target.run) == ("run", child.pk)


def test_a_place_of_a_limit_names_its_holders() -> None:
    """MON.10: who holds the place that a step waits for."""
    limited = workflow("  - { id: work, kind: shell, run: x, limit: { group: api, max: 1 } }")
    first, second = Player(publish_run(limited)), Player(publish_run(limited))
    first.step()
    first.hand = first.take()
    first.step()
    assert first.running("work")
    second.step()
    (reason,) = [one for one in reasons(second.run_id) if one.code == "limit"]
    assert reason.sentence == f'work waits for a place in "api", held by run {first.run_id}.'
    assert reason.since is not None


def test_a_line_names_only_holders_that_the_viewer_may_see(django_user_model: Any) -> None:
    """PUB.4: the holder of a slot is named to those who may see it."""
    holder = publish_in_line(workflow("  - { id: work, kind: shell, run: x }", name="secret"), "key").run_id
    waiting = publish_in_line(WORK, "key").run_id
    viewer = django_user_model.objects.create_user("vera")
    assert only(waiting).sentence == f'It waits in line for a slot of "key", held by run {holder}.'
    group = viewer.groups.model.objects.create(name="insiders")
    WorkflowAccess.objects.create(workflow=Run.objects.get(pk=holder).workflow, group=group)
    reason = only(waiting, user=viewer)
    assert reason.sentence == 'It waits in line for a slot of "key", held by 1 run that you may not see.'
    assert reason.target is None


def test_a_held_run_says_who_holds_it() -> None:
    """CTL.4: held by whom, since when, why."""
    run_id = parked("  - { id: nap, kind: wait, for: 10d }")
    now = datetime.now(UTC)
    send(run_id=run_id, kind=ControlKind.PAUSE, payload={"reason": "later"}, request_id="p", sender="bob", now=now)
    Hand(run_id, now=now).step()
    held, timer = reasons(run_id)
    assert (held.code, held.sentence, held.verb) == ("held", "bob holds the run: later", "resume")
    assert held.since is not None
    assert timer.code == "timer"


def test_what_a_branch_waits_for_is_told_while_another_one_runs() -> None:
    """WEB.5: a running run can wait in a part of it."""
    steps = """
  - id: both
    kind: parallel
    branches:
      asks: [{ id: sign_off, kind: approval, ask: Go? }]
      works: [{ id: work, kind: shell, run: x }]
"""
    run_id = publish_run(workflow(steps))
    Hand(run_id).step()
    assert Run.objects.get(pk=run_id).status == "running"
    assert [reason.sentence for reason in reasons(run_id)] == ["both[0]/sign_off waits for an answer."]


@ledger_transaction
def of_engine(run_id: int, version: int) -> None:
    Run.objects.filter(pk=run_id).update(engine_version=version)


def test_a_run_of_another_engine_says_so_and_nothing_of_workers() -> None:
    """PLAN.6: others wait untouched and say so."""
    run_id = publish_run(WORK)
    of_engine(run_id, 9)
    assert only(run_id).code == "unknown_engine"
    of_engine(run_id, 1)


def test_many_waiting_items_are_counted(django_assert_max_num_queries: Any) -> None:
    """WEB.5: a map of waiting items is summed up, in a few queries."""
    run_id = parked("""
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20] }
    concurrency: 20
    do: [{ id: sign_off, kind: approval, ask: Go? }]
""")
    run = Run.objects.select_related("lease").get(pk=run_id)
    with django_assert_max_num_queries(5):
        found = why_run(run)
    assert len(found) == 13
    assert found[-1].sentence == "8 further steps of it wait, too."


def test_the_command_tells_the_same_for_people_and_for_machines() -> None:
    """WEB.5: `runs why` prints reasons, moments and what to do; ids only with --json are documents."""
    run_id = parked("  - { id: ready, kind: wait, signal: go_on }")
    told = manage("runs", "why", str(run_id))
    assert told.code == 0
    assert f"run {run_id} is waiting:" in told.out
    assert 'ready waits for the signal "go_on". (since ' in told.out
    assert f"`python manage.py runs signal {run_id} go_on`" in told.out
    document = manage("runs", "why", str(run_id), "--json").json
    assert [one["code"] for one in document["reasons"]] == ["signal"]
    assert document["reasons"][0]["until"].endswith("Z")


def test_a_finished_run_costs_no_queries(django_assert_num_queries: Any) -> None:
    """WEB.5: nothing is asked about what is over."""
    player = Player(publish_run(WORK), {"work": ok(1)}, kinds=kinds_with())
    player.play()
    run = Run.objects.get(pk=player.run_id)
    with django_assert_num_queries(0):
        assert why_run(run) == []
