"""Where a fork cuts, what it inherits, and what it does not."""

from __future__ import annotations

import json

import pytest

from tests.support.forks import digest_of, fork_at, fork_before
from tests.support.hand import Hand, expire
from tests.support.kinds import bad, interrupted, ok
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player, output_of, play
from tests.support.rows import assert_sound, events_of
from tests.support.tap import counted
from tests.support.worlds import publish_in_line, publish_parent
from workflows.errors import Refusal
from workflows.ledger import leases
from workflows.ledger.answering import Reply, answer
from workflows.ledger.controlling import send
from workflows.ledger.transactions import ledger_transaction
from workflows.models import (
    Attempt,
    AuditEntry,
    ControlMessage,
    Event,
    Interrupt,
    Lease,
    RowVersion,
    Run,
    Scope,
    Slot,
    Visit,
    Vote,
)
from workflows.operations.forking import ForkWish, fork, preview
from workflows.operations.people import Actor
from workflows.queries.events import events_after
from workflows.queries.history import state_at
from workflows.queries.runs import run_document
from workflows.statuses import ControlKind

pytestmark = pytest.mark.django_db(transaction=True)

ANN = Actor(name="ann", recorded="shell:root as ann")
CHAIN = workflow(
    """
  - { id: one, kind: shell, run: x }
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" } }
  - { id: two, kind: shell, run: x }
  - { id: three, kind: shell, run: x }
""",
    before="params: { region: { type: string, default: eu } }\nvars: { n: { type: integer, value: 1 } }",
    after='output: { n: "${ vars.n }", one: "${ steps.one.output }", region: "${ params.region }" }',
)
EACH = workflow("""
  - id: each
    kind: map
    over: [1, 2]
    do: [{ id: work, kind: shell, run: x, access: read, workspace: none }]
""")
WRITES = workflow("""
  - id: each
    kind: map
    over: [1, 2]
    do:
      - { id: work, kind: shell, run: x, idempotent: true, workspace: none }
""")
ASKS = workflow("""
  - { id: ask, kind: approval, ask: "Well?", quorum: 2 }
  - { id: work, kind: shell, run: x }
""")


def wish(run_id: int, **more: object) -> ForkWish:
    return ForkWish(run_id=run_id, actor=ANN, **more)  # type: ignore[arg-type]


def refused(run_id: int, **more: object) -> Refusal:
    """Why a fork is refused; nothing is written then."""
    runs, before = Run.objects.count(), digest_of(run_id)
    with pytest.raises(Refusal) as caught:
        fork(wish(run_id, **more))
    assert (Run.objects.count(), digest_of(run_id)) == (runs, before)
    return caught.value


def failed_chain() -> int:
    run_id = publish_run(CHAIN, {"region": "eu"})
    play(run_id, {"two": bad()})
    return run_id


def test_a_failed_run_is_forked_before_the_step_that_failed() -> None:
    """FORK 1–4; EVT.5"""
    origin = failed_chain()
    before = digest_of(origin)
    done = fork(wish(origin, reason="repaired"))
    run = Run.objects.get(pk=done.run_id)
    assert digest_of(origin) == before
    assert (run.status, run.visits, run.origin, run.started_by) == ("queued", 2, "fork", "ann")
    assert (run.fork_of_id, run.fork_revision, run.revision) == (origin, done.revision, done.revision + 1)
    assert list(Visit.objects.filter(run=run).values_list("number", "step", "inherited")) == [
        (1, "one", True),
        (2, "count", True),
    ]
    player = Player(run.pk)
    player.play()
    assert [step for _, step in player.started] == ["two", "three"]
    assert output_of(run.pk) == {"n": 2, "one": "one", "region": "eu"}
    assert list(Visit.objects.filter(run=run, inherited=False).values_list("number", "step")) == [
        (3, "two"),
        (4, "three"),
    ]
    assert digest_of(origin) == before
    assert_sound(origin, run.pk)


def test_the_first_event_a_reader_of_a_fork_sees_is_its_fork_numbered_on_from_the_cut() -> None:
    """EVT.5"""
    origin = failed_chain()
    cut = Visit.objects.get(run_id=origin, number=3).revision_before
    run_id = fork_before(origin, 3).run_id
    inherited = Event.objects.filter(run_id=origin, revision__lte=cut).count()
    (event,) = events_after(run_id).events
    assert (event["number"], event["type"], event["revision"]) == (inherited + 1, "run_forked", cut + 1)
    assert event["data"] == {"origin": origin, "origin_revision": cut, "from_visit": 3}
    assert events_of(run_id)[:-1] == events_of(origin)[:inherited]
    assert run_document(run_id)["events_cursor"] == inherited + 1


def test_numbers_digests_and_dispatch_ids_are_those_of_the_cut() -> None:
    """FORK.2: rows are the same rows, marked as inherited."""
    origin = publish_run(EACH)
    play(origin)
    run_id = fork_at(origin, Run.objects.get(pk=origin).revision - 3).run_id
    cut = Run.objects.get(pk=run_id).fork_revision
    names = ("visit", "number", "dispatch_id", "input_hash", "digest", "outcome", "epoch", "worker")
    settled = Attempt.objects.filter(revision_settled__lte=cut).order_by("visit")
    assert list(settled.filter(run_id=run_id).values_list(*names)) == list(
        settled.filter(run_id=origin).values_list(*names)
    )
    assert set(Attempt.objects.filter(run_id=run_id).values_list("inherited", flat=True)) == {True}
    versions = RowVersion.objects.filter(revision__lte=cut).order_by("pk")
    columns = ("revision", "table", "key", "row")
    assert list(versions.filter(run_id=run_id).values_list(*columns)) == list(
        versions.filter(run_id=origin).values_list(*columns)
    )


def test_the_past_of_a_fork_is_that_of_its_origin_at_every_revision_of_the_cut() -> None:
    """REV.2, FORK.2"""
    origin = publish_run(EACH)
    play(origin, {"work": lambda one: bad() if one.scope.index else ok(1)})
    run_id = fork(wish(origin)).run_id
    for revision in range(1, (Run.objects.get(pk=run_id).fork_revision or 0) + 1):
        former, now = state_at(origin, revision), state_at(run_id, revision)
        assert {**now, "run": origin, "current_revision": former["current_revision"]} == former


def test_a_run_that_somebody_drives_is_not_forked() -> None:
    """FORK.1"""
    origin = failed_chain()
    run_id = publish_run(EACH)
    hand = Hand(run_id, at_ms=None)
    hand.step()
    assert refused(run_id, at=1).code == "lease.held"
    assert leases.release(run_id=run_id, epoch=hand.grant.epoch)
    assert fork(wish(run_id, at=1)).created
    assert refused(origin, at=99).code == "history.no_such_revision"
    assert refused(origin, at=0).code == "history.no_such_revision"
    with pytest.raises(Refusal, match="There is no run 987654321"):
        fork(wish(987654321))


def test_a_point_that_names_several_visits_or_none_is_refused_with_the_list_of_them() -> None:
    """FORK.1"""
    origin = publish_run(EACH)
    play(origin)
    several = refused(origin, begin_with="work")
    assert (several.code, several.message) == ("fork.ambiguous", f'"work" names 2 visits of run {origin}.')
    assert "v2 (each[0]/work), v3 (each[1]/work)" in several.hint
    unknown = refused(origin, begin_with="v9")
    assert (unknown.code, unknown.message) == ("fork.ambiguous", f'Run {origin} has no visit "v9".')
    assert [one["visit"] for one in unknown.data["visits"]] == [1, 2, 3]
    assert refused(origin).code == "fork.ambiguous"
    assert preview(wish(origin, begin_with="each[1]/work")).visit == 3
    assert preview(wish(origin, begin_with="each")).visit == 1
    assert refused(origin, begin_with="each#2").code == "fork.ambiguous"


def test_a_round_of_a_loop_is_named_with_its_number() -> None:
    """FORK.1"""
    origin = publish_run(
        workflow("  - { id: work, kind: shell, run: x, max_visits: 3, next: { ok: work, exhausted: done } }")
    )
    play(origin)
    assert refused(origin, begin_with="work").code == "fork.ambiguous"
    assert preview(wish(origin, begin_with="work#1")).visit == 1
    shown = preview(wish(origin, begin_with="work#3"))
    assert (shown.visit, [one["path"] for one in shown.kept]) == (3, ["work", "work#2"])
    assert shown.left_out[0]["path"] == "work#3"
    run_id = fork(wish(origin, begin_with="work#3")).run_id
    player = Player(run_id)
    player.play()
    assert len(player.started) == 1
    assert Visit.objects.get(run_id=run_id, number=3).round == 3


def test_there_is_nothing_to_fork_at_the_end_of_a_run() -> None:
    """FORK.1"""
    origin = publish_run(EACH)
    play(origin)
    assert refused(origin, at=Run.objects.get(pk=origin).revision).code == "fork.ended"


def test_reads_that_ran_at_the_cut_run_again_under_a_new_id() -> None:
    """FORK 2, 6"""
    origin = publish_run(EACH)
    play(origin)
    cut = Visit.objects.get(run_id=origin, number=3).revision_created
    shown = preview(wish(origin, at=cut))
    assert (shown.repeated, shown.doubtful) == (["v2 each[0]/work", "v3 each[1]/work"], [])
    run_id = fork(wish(origin, at=cut)).run_id
    player = Player(run_id)
    player.play()
    rows = Attempt.objects.filter(run_id=run_id, visit=2).order_by("number")
    assert list(rows.values_list("number", "status", "inherited")) == [
        (1, "interrupted", True),
        (2, "succeeded", False),
    ]
    assert len(set(rows.values_list("dispatch_id", flat=True))) == 2
    assert Run.objects.get(pk=run_id).status == "succeeded"
    assert_sound(run_id)


def test_writes_that_ran_at_the_cut_are_reconciled_in_the_fork_even_idempotent_ones() -> None:
    """FORK.6: the fork has no key under which a repetition would be recognised."""
    origin = publish_run(WRITES)
    play(origin)
    cut = Visit.objects.get(run_id=origin, number=3).revision_created
    assert preview(wish(origin, at=cut)).doubtful == ["v2 each[0]/work", "v3 each[1]/work"]
    run_id = fork(wish(origin, at=cut)).run_id
    player = Player(run_id)
    player.play()
    assert (player.started, Run.objects.get(pk=run_id).status) == ([], "blocked")
    assert set(Scope.objects.filter(run_id=run_id, waits_for="reconcile").values_list("visit", flat=True)) == {2, 3}
    assert json.loads(Attempt.objects.get(run_id=run_id, visit=2).marks) == ["uncertain"]
    assert_sound(run_id)


def test_an_uncertain_failure_before_the_cut_is_retried_under_a_new_id_with_its_tally() -> None:
    """FORK 2, 4: retries that were used up stay used up."""
    steps = """
  - { id: work, kind: shell, run: x, access: read, retry: { attempts: 3, wait: 1h, jitter: none } }
"""
    origin = publish_run(workflow(steps))
    player = Player(origin, {"work": bad("timeout")})
    player.play()
    player.pass_time(3_600_000)
    player.again()
    cut = Attempt.objects.get(run_id=origin, visit=1, number=1).revision_settled
    run_id = fork(wish(origin, at=cut)).run_id
    visit = Visit.objects.get(run_id=run_id, number=1)
    assert (visit.status, visit.attempts, json.loads(visit.retries)) == ("open", 1, [1])
    again = Player(run_id, {"work": bad("timeout")})
    again.pass_time(3_700_000)
    again.hand.reload()
    while not again.play().is_final:
        again.pass_time(20_000_000)
        again.hand = again.take()
    ids = list(Attempt.objects.filter(run_id=run_id).order_by("number").values_list("dispatch_id", flat=True))
    assert len(ids) == 3
    assert ids[1] not in Attempt.objects.filter(run_id=origin).values_list("dispatch_id", flat=True)
    assert ids[1] == ids[2]
    assert_sound(run_id)


def test_an_open_question_is_asked_anew_and_former_votes_do_not_count() -> None:
    """INT.7, FORK.2"""
    origin = publish_run(ASKS)
    play(origin)
    reply = Reply(voter="bob", recorded_by="bob", decision="approved")
    answer(run_id=origin, visit=1, reply=reply, now=Run.objects.get(pk=origin).created_at, now_ms=0)
    run_id = fork(wish(origin, at=Run.objects.get(pk=origin).revision)).run_id
    assert not Interrupt.objects.filter(run_id=run_id).exists()
    assert not Vote.objects.filter(run_id=run_id).exists()
    play(run_id)
    asked = Interrupt.objects.get(run_id=run_id)
    assert (asked.visit, asked.attempt, asked.status, asked.inherited) == (1, 2, "open", False)
    assert Interrupt.objects.get(run_id=origin).status == "open"
    done = answer(run_id=run_id, visit=1, reply=reply, now=asked.asked_at, now_ms=0)
    assert (done.votes, done.settled) == (1, False)
    assert_sound(origin, run_id)


def test_messages_leases_and_places_stay_with_the_origin() -> None:
    """FORK.2"""
    origin = publish_run(workflow("  - { id: hear, kind: wait, signal: go }\n  - { id: work, kind: shell, run: x }"))
    play(origin)
    for number, kind in enumerate((ControlKind.PAUSE, ControlKind.SIGNAL)):
        payload = {"name": "other"} if kind == ControlKind.SIGNAL else {}
        now = Run.objects.get(pk=origin).created_at
        send(run_id=origin, kind=kind, payload=payload, request_id=str(number), sender="bob", now=now)
    Player(origin).play()
    assert Run.objects.get(pk=origin).held
    run_id = fork(wish(origin, at=Run.objects.get(pk=origin).revision)).run_id
    run = Run.objects.get(pk=run_id)
    assert not ControlMessage.objects.filter(run=run).exists()
    assert (run.controls_accepted, run.controls_seen, run.held, run.closing) == (0, 0, "", "")
    assert (Lease.objects.get(run=run).expires_ms, Lease.objects.get(run=run).owner) == (0, "")
    assert Run.objects.runnable().filter(pk=run_id).exists()
    assert_sound(run_id)


def test_a_cancel_that_was_not_carried_out_at_the_cut_is_not_the_forks() -> None:
    """FORK.2"""
    origin = publish_run(ASKS)
    play(origin)
    now = Run.objects.get(pk=origin).created_at
    send(run_id=origin, kind=ControlKind.CANCEL, payload={}, request_id="c", sender="bob", now=now)
    accepted = Run.objects.get(pk=origin)
    assert json.loads(accepted.closing)["status"] == "cancelled"
    run_id = fork(wish(origin, at=accepted.revision)).run_id
    assert play(run_id).status == "paused"
    assert_sound(run_id)


def test_what_was_left_of_a_timeout_at_the_cut_is_what_the_fork_has() -> None:
    """FORK.4"""
    origin = publish_run(workflow("  - { id: hear, kind: wait, signal: go, timeout: 1h }"))
    play(origin)
    cut = Run.objects.get(pk=origin).revision
    former = Scope.objects.get(run_id=origin).wake_at_ms

    @ledger_transaction
    def long_ago() -> None:
        Event.objects.filter(run_id=origin).update(at=Run.objects.get(pk=origin).created_at)

    long_ago()
    run_id = fork(wish(origin, at=cut)).run_id
    scope = Scope.objects.get(run_id=run_id)
    created = Run.objects.get(pk=origin).created_at
    passed_ms = int((Run.objects.get(pk=run_id).created_at - created).total_seconds() * 1000)
    assert former is not None
    assert scope.wake_at_ms is not None
    assert abs(scope.wake_at_ms - former - passed_ms) <= 1
    assert_sound(run_id)


def test_a_fork_takes_a_slot_of_its_key_or_stands_in_line_or_is_refused() -> None:
    """PUB 4, 5"""
    for when_full, wanted in (("queue", "queued"), ("reject", "run.concurrency_full")):
        text = workflow(
            "  - { id: one, kind: shell, run: x }\n  - { id: two, kind: shell, run: x }",
            before=f"concurrency: {{ key: k_{when_full}, max: 1, when_full: {when_full} }}",
        )
        origin = publish_in_line(text, f"k_{when_full}", when_full=when_full).run_id
        play(origin, {"two": bad()})
        first = fork(wish(origin))
        assert Slot.objects.get(run_id=first.run_id).number == 1
        if when_full == "reject":
            assert refused(origin).code == wanted
            continue
        second = fork(wish(origin))
        assert (first.queued, second.queued) == (False, True)
        assert Slot.objects.get(run_id=second.run_id).number is None
        assert not Run.objects.runnable().filter(pk=second.run_id).exists()
        play(first.run_id)
        assert play(second.run_id).status == "succeeded"


def test_the_same_request_is_the_same_fork_and_another_one_is_a_conflict() -> None:
    """FORK.7"""
    origin = failed_chain()
    first = fork(wish(origin, request_id="r"))
    play(first.run_id)
    runs = Run.objects.count()
    again = fork(wish(origin, request_id="r"))
    assert (again.run_id, again.created, again.revision) == (first.run_id, False, first.revision)
    conflict = refused(origin, request_id="r", params={"region": "us"})
    assert conflict.code == "fork.conflict"
    assert str(first.run_id) in conflict.message
    assert Run.objects.count() == runs
    assert fork(wish(origin, request_id="s")).run_id != first.run_id


def test_a_fork_leaves_one_audit_entry_and_lineage_both_ways() -> None:
    """FORK 5, 8"""
    origin = failed_chain()
    run_id = fork(wish(origin, reason="repaired", params={"region": "us"})).run_id
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.run, entry.reason, entry.actor) == ("run.fork", run_id, "repaired", ANN.recorded)
    lineage = run_document(run_id)["fork_of"]
    assert (lineage["run"], lineage["visit"], lineage["pruned"]) == (origin, 3, False)
    assert (list(lineage["edits"]["params"]), lineage["reason"]) == (["region"], "repaired")
    revision = lineage["revision"]
    assert run_document(origin)["forks"] == [{"run": run_id, "revision": revision, "status": "queued"}]
    assert run_document(origin)["fork_of"] is None


def test_a_fork_needs_nothing_of_an_origin_that_is_gone() -> None:
    """REV.4"""
    origin = failed_chain()
    run_id = fork(wish(origin)).run_id

    @ledger_transaction
    def prune() -> None:
        Run.objects.filter(pk=origin).delete()

    prune()
    assert run_document(run_id)["fork_of"]["pruned"] is True
    assert play(run_id).status == "succeeded"
    second = fork(wish(run_id, begin_with="three")).run_id
    assert play(second).status == "succeeded"
    assert_sound(run_id, second)


def test_the_statements_of_a_fork_do_not_grow_with_its_history() -> None:
    """FORK.2: what has not changed since the cut is copied by the database itself."""

    def statements(items: int) -> int:
        origin = publish_run(EACH.replace("[1, 2]", str(list(range(items)))))
        play(origin)
        last = Visit.objects.filter(run_id=origin).latest("number").number
        with counted() as seen:
            fork_before(origin, last)
        return len(seen)

    assert abs(statements(4) - statements(24)) <= 3


def test_a_fork_of_a_fork_inherits_what_both_did() -> None:
    """FORK 2, 4"""
    origin = failed_chain()
    first = fork(wish(origin)).run_id
    play(first, {"three": bad()})
    second = fork(wish(first)).run_id
    player = Player(second)
    player.play()
    assert [step for _, step in player.started] == ["three"]
    assert output_of(second) == {"n": 2, "one": "one", "region": "eu"}
    assert_sound(origin, first, second)


def test_usage_so_far_counts_against_the_budget_of_a_fork() -> None:
    """FORK.2"""
    steps = "  - { id: work, kind: shell, run: x, next: { ok: work } }"
    origin = publish_run(workflow(steps, before="budget: { visits: 4 }"))
    play(origin)
    run_id = fork(wish(origin, begin_with="v3")).run_id
    player = Player(run_id)
    player.play()
    assert len(player.started) == 2
    assert Run.objects.get(pk=run_id).status == "failed"


def test_an_interrupted_write_of_before_the_cut_still_waits_for_a_person() -> None:
    """FORK.6"""
    origin = publish_run(workflow("  - { id: work, kind: shell, run: x }"))
    Hand(origin).step()
    expire(origin)
    Hand(origin).step()
    run_id = fork(wish(origin, at=Run.objects.get(pk=origin).revision)).run_id
    assert play(run_id).status == "blocked"
    assert_sound(run_id)


def test_a_result_that_came_after_the_cut_is_not_in_the_fork() -> None:
    """FORK.2"""
    origin = publish_run(workflow("  - { id: work, kind: shell, run: x, access: read }"))
    hand = Hand(origin)
    hand.step()
    cut = Run.objects.get(pk=origin).revision
    hand.step({"v1.1": interrupted()})
    hand.step({"v1.2": ok("done")})
    run_id = fork_at(origin, cut).run_id
    attempt = Attempt.objects.get(run_id=run_id)
    assert (attempt.status, attempt.outcome, attempt.digest, attempt.revision_settled) == ("running", "", "", None)
    assert_sound(run_id)


def test_the_fork_of_a_child_run_is_a_run_of_its_own() -> None:
    """FORK.2, CHD.1"""
    kid = workflow("  - { id: one, kind: shell, run: x }\n  - { id: two, kind: shell, run: x }", name="kid")
    parent = publish_parent(workflow("  - { id: call, kind: workflow, ref: kid }", name="parent"), kid)
    play(parent)
    child = Run.objects.get(parent_run=parent)
    play(child.pk, {"two": bad()})
    run = Run.objects.get(pk=fork(wish(child.pk)).run_id)
    assert (run.parent_run_id, run.invocation_key, run.root_run_id, run.depth) == (None, None, None, 0)
    assert play(run.pk).status == "succeeded"
    assert_sound()


def test_another_version_is_followed_when_it_fits() -> None:
    """FORK.5"""
    origin = failed_chain()
    store_plan(CHAIN.replace("id: three, kind: shell", "id: four, kind: shell"), private=False)
    run_id = fork(wish(origin, plan="current")).run_id
    player = Player(run_id)
    player.play()
    assert [step for _, step in player.started] == ["two", "four"]
    assert run_document(run_id)["fork_of"]["plan"] == {"from": None, "to": 1}
    assert_sound(run_id)
