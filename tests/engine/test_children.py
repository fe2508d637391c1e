"""Child runs: published with the admission, once per attempt; their end wakes the parent (promises CHD, PUB.9)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.kinds import bad, ok
from tests.support.plans import START, publish_run, workflow
from tests.support.players import Player, error_of, output_of, path_of, play
from tests.support.rows import all_rows, assert_sound, events_of
from tests.support.worlds import drive_all, frozen_children, publish_parent, sweep
from workflows.engine import children as engine_children
from workflows.errors import Refusal
from workflows.ledger import children as ledger_children
from workflows.ledger.children import DEEPEST
from workflows.ledger.controlling import send
from workflows.ledger.reconciling import Reconciliation, reconcile
from workflows.models import Attempt, Lease, Run, Visit
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

KID = workflow(
    "  - { id: work, kind: shell, run: x }",
    before="params: { n: { type: integer }, extra: { type: string, default: none } }",
    after='output: ["${ params.n }", "${ params.extra }", "${ steps.work.output }"]',
    name="kid",
)
PARENT = workflow(
    """
  - { id: call, kind: workflow, ref: kid, with: { n: 3 }, next: { failed: continue } }
""",
    after='output: ["${ steps.call.outcome }", "${ steps.call.output }", "${ steps.call.error }", "${ steps.call.attempts }"]',
    name="parent",
)


MANY = workflow(
    """
  - id: each
    kind: map
    over: [1, 2, 3, 4, 5]
    concurrency: 2
    join: settled
    do: [{ id: call, kind: workflow, ref: kid, with: { n: "${ item }" } }]
""",
    after='output: ["${ steps.each.counts }", "${ steps.each.items.map(one, one.outcome) }"]',
    name="parent",
)


def children_of(run_id: int) -> list[int]:
    return list(Run.objects.filter(parent_run_id=run_id).order_by("pk").values_list("pk", flat=True))


def parked_parent(text: str = PARENT) -> tuple[Player, int]:
    """A parent that waits for its child, and the child."""
    player = Player(publish_parent(text, KID))
    player.play()
    (child,) = children_of(player.run_id)
    return player, child


def cancel(run_id: int) -> None:
    send(run_id=run_id, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="ann", now=datetime.now(UTC))


def test_a_child_is_published_with_the_attempt_that_waits_for_it() -> None:
    """CHD.1: the invocation key is the attempt's dispatch id."""
    player, child_id = parked_parent()
    parent, child = player.run, Run.objects.get(pk=child_id)
    attempt = Attempt.objects.get(run=parent)
    assert (attempt.status, attempt.dispatch_id) == ("paused", child.invocation_key)
    assert (child.parent_run_id, child.parent_visit, child.root_run_id, child.depth) == (parent.pk, 1, parent.pk, 1)
    assert (child.status, child.origin, child.started_by) == ("queued", "child", "ann")
    assert (child.concurrency_key, child.concurrency_max) == ("", 0)
    assert child.frozen == parent.frozen
    assert_sound()


def test_a_waiting_parent_holds_no_lease_and_no_worker() -> None:
    """CHD, docs/architecture.md"""
    player, _ = parked_parent()
    assert Lease.objects.get(run_id=player.run_id).expires_ms == 0
    assert player.run.status == "waiting"
    assert json.loads(player.run.reasons) == [{"cause": "child", "step": "call", "visit": 1}]
    assert not Run.objects.runnable().filter(pk=player.run_id).exists()


def test_the_end_of_a_child_wakes_its_parent_with_its_output() -> None:
    player, child = parked_parent()
    play(child)
    assert events_of(player.run_id)[-1] == "child_ended"
    assert Run.objects.runnable().filter(pk=player.run_id).exists()
    player.again()
    assert output_of(player.run_id) == ["ok", [3, "none", "work"], None, 1]
    assert_sound()


def test_a_failed_child_gives_its_error() -> None:
    """CHD.3"""
    player, child = parked_parent()
    play(child, {"work": bad(message="no")})
    player.again()
    message = f"Child run {child} did not succeed: exit_nonzero: no"
    assert output_of(player.run_id) == ["failed", None, {"code": "child_failed", "message": message}, 1]
    assert_sound()


def test_a_cancelled_child_is_a_failed_one() -> None:
    player, child = parked_parent()
    cancel(child)
    assert play(child).status == "cancelled"
    player.again()
    message = f"Child run {child} did not succeed: it was cancelled"
    assert output_of(player.run_id)[2] == {"code": "child_failed", "message": message}
    assert_sound()


def test_a_retry_makes_a_new_child() -> None:
    """CHD.1: new after a known failure."""
    text = PARENT.replace("with: { n: 3 },", "with: { n: 3 }, retry: { attempts: 3, wait: 0s },")
    player, first = parked_parent(text)
    play(first, {"work": bad()})
    player.again()
    second = children_of(player.run_id)[1]
    assert Run.objects.get(pk=first).invocation_key != Run.objects.get(pk=second).invocation_key
    play(second)
    player.again()
    assert output_of(player.run_id) == ["ok", [3, "none", "work"], None, 2]
    assert Attempt.objects.filter(run_id=player.run_id).count() == 2
    assert_sound()


def test_a_new_visit_makes_a_new_child() -> None:
    """CHD.1"""
    text = workflow(
        """
  - { id: call, kind: workflow, ref: kid, with: { n: "${ steps.call.visits }" }, max_visits: 2, next: { ok: again, exhausted: done } }
  - { id: again, kind: condition, if: "${ true }", next: { then: call, else: done } }
""",
        after='output: "${ steps.call.output }"',
        name="parent",
    )
    player, first = parked_parent(text)
    play(first)
    player.again()
    play(children_of(player.run_id)[1])
    player.again()
    assert len(children_of(player.run_id)) == 2
    assert output_of(player.run_id) == [1, "none", "work"]


def test_a_child_that_takes_too_long_is_cancelled_and_its_visit_times_out() -> None:
    text = PARENT.replace("with: { n: 3 },", "with: { n: 3 }, timeout: 1m,")
    player, child = parked_parent(text)
    kid = Player(child)
    kid.step()
    player.pass_time(60_000)
    player.again()
    error = {"code": "timeout", "message": "The child run took longer than its timeout."}
    assert output_of(player.run_id) == ["timed_out", None, error, 1]
    kid.hand.reload()
    assert kid.step().draft.cancelled_visits == [1]
    kid.step({"v1.1": bad("cancelled", "stopped")})
    assert kid.run.status == "cancelled"
    assert_sound()


def test_parameters_that_do_not_fit_fail_the_step_without_a_child() -> None:
    run_id = publish_parent(PARENT.replace("n: 3", "n: text"), KID)
    play(run_id)
    message = 'The parameters of "kid" do not fit: "n" must be a whole number, but it is the text "text".'
    assert output_of(run_id)[2] == {"code": "bad_expression", "message": message}
    assert children_of(run_id) == []
    assert_sound()


def test_a_detached_child_is_only_started() -> None:
    text = workflow(
        """
  - { id: call, kind: workflow, ref: kid, with: { n: 1 }, detach: true }
  - { id: after, kind: shell, run: x }
""",
        after='output: "${ steps.call.output }"',
        name="parent",
    )
    player = Player(publish_parent(text, KID))
    decision = player.step()
    assert decision.waits_until_ms == int(player.hand.now.timestamp() * 1000)
    player.hand = player.take() if decision.parks else player.hand
    player.step()
    assert player.running_in() == ["after"]
    player.settle()
    (child,) = children_of(player.run_id)
    assert (player.run.status, output_of(player.run_id)) == ("succeeded", {"run_id": child})
    assert Run.objects.get(pk=child).status == "queued"
    assert sweep() == 0
    assert Run.objects.get(pk=child).status == "queued"
    assert play(child).status == "succeeded"
    assert_sound()


# ---- downwards ------------------------------------------------------------------------------------------------------


def test_a_cancel_of_the_parent_reaches_every_descendant(tmp_path: Path) -> None:
    """CTL.3, CHD.3"""
    middle = workflow("  - { id: down, kind: workflow, ref: kid, with: { n: 1 } }", name="middle")
    text = workflow(
        "  - { id: each, kind: map, over: '${ [1, 2] }', do: [{ id: call, kind: workflow, ref: middle }] }",
        name="parent",
    )
    root = publish_parent(text, middle, KID)
    player = Player(root)
    player.play()
    for child in children_of(root):
        Player(child).play()
    kids = [kid for child in children_of(root) for kid in children_of(child)]
    players = [Player(kid) for kid in kids]
    for one in players:
        one.step()
    assert Run.objects.live().count() == 5
    cancel(root)
    assert player.again().status == "cancelled"
    for child in children_of(root):
        assert Player(child).play().status == "cancelled"
    for one in players:
        one.hand.reload()
        one.step()
        one.step({"v1.1": bad("cancelled", "stopped")})
    assert list(Run.objects.values_list("status", flat=True)) == ["cancelled"] * 5
    assert Attempt.objects.filter(status__in=["running", "paused"]).count() == 0
    assert_sound()


def test_a_cancel_that_a_crash_kept_from_the_children_is_repeated_by_the_sweep() -> None:
    player, child = parked_parent()
    cancel(player.run_id)
    player.hand = player.take()
    player.hand.step()  # committed; its consequences die with the driver
    assert Run.objects.get(pk=player.run_id).status == "cancelled"
    assert Run.objects.get(pk=child).closing == ""
    assert sweep() == 1
    assert play(child).status == "cancelled"
    assert sweep() == 0
    assert_sound()


def test_a_timeout_that_a_crash_kept_from_the_child_is_repeated_by_the_sweep() -> None:
    player, child = parked_parent(PARENT.replace("with: { n: 3 },", "with: { n: 3 }, timeout: 1m,"))
    player.pass_time(60_000)
    player.hand = player.take()
    player.hand.step()
    assert sweep() == 1
    assert play(child).status == "cancelled"
    assert sweep() == 0


def test_a_skipped_or_poisoned_parent_leaves_no_child_behind() -> None:
    player, child = parked_parent()
    send(
        run_id=player.run_id,
        kind=ControlKind.SKIP,
        payload={"visit": 1, "reason": "not needed"},
        request_id="s",
        sender="ann",
        now=datetime.now(UTC),
    )
    assert player.again().status == "succeeded"
    assert output_of(player.run_id)[0] == "skipped"
    assert play(child).status == "cancelled"
    assert_sound()


# ---- upwards --------------------------------------------------------------------------------------------------------


def test_an_end_that_a_crash_kept_from_the_parent_is_repeated_by_the_sweep() -> None:
    """CHD.2: killed after the child's end: one child, the parent goes on."""
    player, child = parked_parent()
    kid = Player(child)
    kid.step()
    kid.hand.step({"v1.1": ok("done")})
    assert Run.objects.get(pk=child).status == "succeeded"
    assert player.run.wake_at_ms is None
    assert sweep() == 1
    assert events_of(player.run_id)[-1] == "child_ended"
    sweep()
    assert events_of(player.run_id).count("child_ended") == 1
    player.again()
    assert output_of(player.run_id)[:2] == ["ok", [3, "none", "done"]]
    assert sweep() == 0
    assert_sound()


def test_a_driver_that_died_after_publishing_its_child_is_followed_by_one_that_finds_it() -> None:
    """CHD.1, CHD.2"""
    player = Player(publish_parent(PARENT, KID))
    player.hand.step()
    (child,) = children_of(player.run_id)
    play(child)
    player.again()
    assert children_of(player.run_id) == [child]
    assert output_of(player.run_id)[0] == "ok"


def test_a_child_that_is_blocked_leaves_its_parent_waiting() -> None:
    """CHD.3"""
    player, child = parked_parent()
    kid = Player(child)
    kid.step()
    kid.die()
    kid.step()
    assert (kid.run.status, player.run.status) == ("blocked", "waiting")
    assert sweep() == 0
    told = Reconciliation(decision="happened", actor="ann", reason="r", outcome="ok")
    reconcile(run_id=child, visit=1, reconciliation=told, now=START)
    kid.again()
    player.again()
    assert output_of(player.run_id)[:2] == ["ok", [3, "none", None]]
    assert_sound()


def test_orphans_of_every_sort_are_recovered_at_once() -> None:
    """CHD.2: the reads go on, the write's scope parks, no attempt stays running on a parked run."""
    run_id = publish_run(
        workflow(
            """
  - id: sides
    kind: parallel
    branches:
      a: [{ id: read_one, kind: shell, run: x, access: read }]
      b: [{ id: put, kind: shell, run: x }]
      c: [{ id: read_two, kind: shell, run: x, access: read }]
"""
        )
    )
    player = Player(run_id)
    player.step()
    player.die()
    player.step()
    assert sorted(player.running_in()) == ["sides[0]/read_one", "sides[2]/read_two"]
    player.settle()
    assert player.run.status == "blocked"
    assert Attempt.objects.filter(run_id=run_id, status="running").count() == 0
    reads = Attempt.objects.filter(run_id=run_id, visit=2).values_list("number", "status", "dispatch_id")
    assert [(number, status) for number, status, _ in reads] == [(1, "interrupted"), (2, "succeeded")]
    assert len({dispatch for _, _, dispatch in reads}) == 1
    assert_sound()


# ---- bounds ---------------------------------------------------------------------------------------------------------


def test_child_runs_nest_eight_deep_and_no_deeper() -> None:
    """PUB.9"""
    texts = [
        workflow(
            f"  - {{ id: down, kind: workflow, ref: level{number + 1}, next: {{ failed: continue }} }}",
            after='output: ["${ steps.down.output }", "${ steps.down.error }"]',
            name=f"level{number}",
        )
        for number in range(DEEPEST + 1)
    ]
    last = workflow("  - { id: work, kind: shell, run: x }", name=f"level{DEEPEST + 1}")
    run_id = publish_run(texts[0], frozen=frozen_children(*texts[1:], last))
    runs = [run_id]
    while runs[-1:] != runs[-2:-1] or len(runs) < 2:
        Player(runs[-1]).play()
        below = children_of(runs[-1])
        if not below:
            break
        runs.append(below[0])
    assert [Run.objects.get(pk=run).depth for run in runs] == list(range(DEEPEST + 1))
    error = {"code": "run.too_deep", "message": f"Child runs nest at most {DEEPEST} deep."}
    assert output_of(runs[-1]) == [None, error]
    assert_sound()


def test_a_run_has_so_many_child_runs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.9: those that have ended count, and whoever can go on without further ones does"""
    monkeypatch.setattr(engine_children, "MOST_CHILDREN", 3)
    monkeypatch.setattr(ledger_children, "MOST_CHILDREN", 3)
    run_id = publish_parent(MANY, KID)
    play(run_id)
    while live := Run.objects.live().filter(parent_run_id=run_id).order_by("pk").first():
        play(live.pk)
        sweep()
        play(run_id)
    assert len(children_of(run_id)) == 3
    counts, outcomes = output_of(run_id)
    assert (counts["ok"], outcomes) == (3, ["ok", "ok", "ok", "failed", "failed"])
    errors = list(Visit.objects.filter(run_id=run_id, step="call").exclude(error="").values_list("error", flat=True))
    assert [json.loads(error)["code"] for error in errors] == ["run.too_many_children"] * 2
    assert {json.loads(error)["message"] for error in errors} == {f"Run {run_id} may have at most 3 child runs."}
    assert_sound()


def test_the_ledger_refuses_a_child_run_too_many_whoever_decided_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """PUB.9: nothing of the decision is written"""
    monkeypatch.setattr(ledger_children, "MOST_CHILDREN", 3)
    player = Player(publish_parent(MANY.replace("concurrency: 2", "concurrency: 5"), KID))
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        player.play()
    assert (caught.value.code, caught.value.data["limit"]) == ("run.too_many_children", 3)
    assert {name: rows for name, rows in all_rows().items() if name != "Lease"} == {
        name: rows for name, rows in before.items() if name != "Lease"
    }


# ---- by real drivers ------------------------------------------------------------------------------------------------


def test_a_map_over_a_child_workflow_spreads_its_items_over_workers(tmp_path: Path) -> None:
    """CHD, docs/architecture.md, Scale-out"""
    text = workflow(
        """
  - id: each
    kind: map
    over: ${ [1, 2, 3, 4, 5, 6] }
    concurrency: 3
    join: settled
    do: [{ id: call, kind: workflow, ref: kid, with: { n: "${ item }" } }]
  - { id: alone, kind: workflow, ref: kid, with: { n: 9 }, detach: true }
""",
        after='output: ["${ steps.each.output }", "${ steps.each.counts }", "${ steps.alone.output.run_id > 0 }"]',
        name="parent",
    )
    run_id = publish_parent(text, KID)

    def work(context: Any) -> Any:
        return ok("w")

    drive_all(tmp_path, drivers=3, work=work)
    outputs, counts, alone = output_of(run_id)
    assert outputs == [[number, "none", "w"] for number in range(1, 7)]
    assert (counts["ok"], alone) == (6, True)
    assert len(children_of(run_id)) == 7
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert [outcome for _, step, outcome in path_of(run_id) if step == "call"] == ["ok"] * 6
    assert error_of(run_id) == {}
    assert_sound()
