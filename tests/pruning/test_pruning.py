"""Pruning removes whole families of finished runs, and nothing that anybody needs (promise REV.4)."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.utils import timezone

from tests.support.forks import digest_of, fork_before
from tests.support.hand import Hand
from tests.support.kinds import bad, ok
from tests.support.plans import START, publication, publish_run, store_plan, workflow
from tests.support.players import Player, play
from tests.support.rows import all_rows
from tests.support.scenarios import SCENARIOS
from tests.support.worlds import publish_parent
from workflows.errors import Refusal
from workflows.jsonvalue import store
from workflows.ledger import pruning
from workflows.ledger.advance import advance
from workflows.ledger.inspection_strays import RUN_TABLES
from workflows.ledger.naming import DIGEST_COLUMNS, digests_of_runs, referenced
from workflows.ledger.pruning import Kept, Pruning, drop_payloads, prune_runs
from workflows.ledger.publishing import insert_beginning, publish, run_columns, store_payloads
from workflows.ledger.reopening import reopen
from workflows.ledger.transactions import database_thread, ledger_transaction
from workflows.models import AuditEntry, Payload, Plan, Run, Visit
from workflows.models.columns import digest_column
from workflows.operations.people import Actor
from workflows.operations.pruning import Retention, drop_leftovers, keep, prune, stop_keeping, survey

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor(name="shell:ann", recorded="shell:ann")
ALL = Retention(older_than_ms=0)
SHELL = workflow("  - { id: work, kind: shell, run: x }")
KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")


def finished(value: Any = "an output", name: str = "demo") -> int:
    run_id = publish_run(workflow("  - { id: work, kind: shell, run: x }", name=name))
    play(run_id, {"work": ok(value)})
    return run_id


def family() -> tuple[int, int]:
    """A parent and its child run, both finished."""
    parent = publish_parent(PARENT, KID)
    player = Player(parent)
    player.play()
    kid = Run.objects.get(parent_run_id=parent).pk
    play(kid)
    play(parent)
    return parent, kid


def later(**passed: float) -> Any:
    return timezone.now() + timedelta(**passed)


def prune_all(retention: Retention = ALL) -> Any:
    return prune(retention, actor=ACTOR, now=later(days=1))


def numbers() -> set[int]:
    return set(Run.objects.values_list("pk", flat=True))


def remove(run_id: int, *, family: list[int] | None = None, before: Any = None) -> Any:
    """Remove this very run, asked to go with a family."""
    wish = Pruning(before=before, actor="ann", reason="", now=START)
    return prune_runs(root=run_id, runs=[run_id], family=family or [run_id], wish=wish)


# ---- what goes -------------------------------------------------------------------------------------------------------


def test_a_pruned_run_leaves_no_row_but_the_audit_of_its_removal() -> None:
    """REV.4: every table is looked at, also one that is new."""
    for scenario in SCENARIOS.values():
        scenario(advance)
    family()
    assert survey(ALL, actor=ACTOR, now=later(days=1)).runs == Run.objects.filter(parent_run=None).count()
    count = Run.objects.count()
    pruned = prune_all()
    assert pruned.runs + pruned.children == count
    left = {name for name, rows in all_rows().items() if rows}
    assert left == {"AuditEntry", "Workflow"}
    assert AuditEntry.objects.filter(action="run.prune").count() == pruned.runs


def test_every_table_of_a_run_is_known() -> None:
    """REV.4"""
    with_runs = {
        model
        for model in apps.get_app_config("workflows").get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and field.related_model is Run and model is not Run
    }
    assert with_runs == set(RUN_TABLES)


def test_every_column_that_names_a_payload_is_known() -> None:
    """REV.4"""
    known = {(model, column) for model, columns in DIGEST_COLUMNS for column in columns}
    length = digest_column().max_length
    others = {"digest", "hash", "input_hash", "invocation_key", "token_hash"}
    others |= {"code_version", "request_id", "secret_hash", "token"}  # as long as a digest, and none
    found = {
        (model, field.attname)
        for model in apps.get_app_config("workflows").get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.CharField) and field.max_length == length and field.attname not in others
    }
    assert found == known


def test_former_outputs_in_history_are_named_too() -> None:
    """REV.4: a reopened visit shows its former result at a former revision."""
    run_id = publish_run(workflow("  - { id: one, kind: shell, run: x }\n  - { id: two, kind: shell, run: x }"))
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": ok("kept in history")})
    hand.step({"v2.1": bad()})
    former = Visit.objects.get(run_id=run_id, number=1).output_digest

    @ledger_transaction
    def forget() -> None:
        Visit.objects.filter(run_id=run_id, number=1).update(output_digest=None)

    before = digests_of_runs([run_id])
    assert former in before
    reopen(run_id=run_id, actor="bob", reason="again", now=START)
    assert digests_of_runs([run_id]) >= before - {former}
    assert referenced([former]) == {former}


def test_values_go_when_the_last_run_that_names_them_goes() -> None:
    """REV.4"""
    first, second = finished("shared"), finished("shared")
    finished("another", name="other")
    digest = store("shared").digest
    prune_all(Retention(keep=1, workflow="demo"))
    assert numbers() & {first, second} == {second}
    assert Payload.objects.filter(digest=digest).exists()
    pruned = prune_all(Retention(older_than_ms=0, workflow="demo"))
    assert pruned.payloads == 1
    assert not Payload.objects.filter(digest=digest).exists()
    assert Payload.objects.filter(digest=store("another").digest).exists()


def test_a_fork_needs_nothing_of_its_origin() -> None:
    """REV.4, FORK.8"""
    origin = finished()
    fork = fork_before(origin, 1).run_id
    before = digest_of(fork)
    assert prune_all().runs == 1
    assert numbers() == {fork}
    assert digest_of(fork) == before
    assert Run.objects.get(pk=fork).fork_of_id == origin


def test_private_versions_go_with_their_last_run() -> None:
    """REV.4"""
    finished(), finished()
    assert prune_all(Retention(keep=1)).plans == 0
    plan = Plan.objects.get()

    @ledger_transaction
    def store_it_just_now() -> None:
        Plan.objects.filter(pk=plan.pk).update(created_at=later(days=1))

    store_it_just_now()
    assert prune_all().plans == 0, "a start may be about to use it"
    assert numbers() == set()
    assert prune(ALL, actor=ACTOR, now=later(days=2)).plans == 1
    assert not Plan.objects.exists()


def test_a_version_that_a_live_run_has_frozen_for_its_children_stays() -> None:
    """REV.4, PLAN.4"""
    publish_parent(PARENT, KID)
    assert prune_all().plans == 0
    assert Plan.objects.count() == 2
    assert not pruning.drop_plan(plan_id=Plan.objects.get(workflow__name="kid").pk)


def test_a_published_version_stays_without_runs() -> None:
    """REV.4"""
    stored = store_plan(SHELL, private=False)
    assert not pruning.drop_plan(plan_id=stored.plan_id)
    assert prune_all().plans == 0
    assert Plan.objects.count() == 1


# ---- what stays ------------------------------------------------------------------------------------------------------


def test_live_and_parked_runs_stay() -> None:
    """REV.4"""
    queued = publish_run(SHELL)
    parked = publish_run(workflow("  - { id: ask, kind: question, ask: Well }", name="asks"))
    play(parked)
    pruned = prune_all()
    assert (pruned.runs, pruned.kept["live"]) == (0, 2)
    assert numbers() == {queued, parked}
    answer = remove(parked, family=[parked])
    assert answer == Kept(reason="live", run=parked)


def test_a_family_goes_or_stays_together() -> None:
    """REV.4"""
    parent, kid = family()
    assert keep(kid, actor=ACTOR, reason="the auditors ask")
    pruned = prune_all()
    assert (pruned.runs, pruned.kept["child_held"]) == (0, 1)
    assert numbers() == {parent, kid}
    alone = remove(kid, family=[kid])
    assert alone == Kept(reason="held", run=kid)
    assert stop_keeping(kid, actor=ACTOR)
    alone = remove(kid, family=[kid])
    assert alone == Kept(reason="parent", run=kid)
    before_its_child = remove(parent, family=[parent, kid])
    assert before_its_child == Kept(reason="child", run=parent)
    pruned = prune_all()
    assert (pruned.runs, pruned.children, numbers()) == (1, 1, set())


def test_an_audit_hold_keeps_a_run_and_is_audited() -> None:
    """REV.4"""
    held, other = finished(), finished()
    with pytest.raises(Refusal) as caught:
        keep(held, actor=ACTOR, reason=" ")
    assert caught.value.code == "input.invalid"
    assert keep(held, actor=ACTOR, reason="the auditors ask")
    assert not keep(held, actor=ACTOR, reason="again")
    pruned = prune_all()
    assert (pruned.runs, pruned.kept["held"], numbers()) == (1, 1, {held})
    assert other not in numbers()
    assert stop_keeping(held, actor=ACTOR, reason="done")
    assert not stop_keeping(held, actor=ACTOR)
    assert prune_all().runs == 1
    told = AuditEntry.objects.filter(run=held).order_by("pk").values_list("action", "reason")
    assert list(told) == [
        ("run.keep", "the auditors ask"),
        ("run.keep_off", "done"),
        ("run.prune", "older than 0s"),
    ]


def test_age_and_number_are_rules_that_both_have_to_let_a_run_go() -> None:
    """REV.4"""
    runs = [finished() for _ in range(4)]
    assert survey(Retention(older_than_ms=3_600_000), actor=ACTOR).kept["recent"] == 4
    both = Retention(older_than_ms=3_600_000, keep=1)
    assert survey(both, actor=ACTOR).runs == 0
    found = survey(both, actor=ACTOR, now=later(hours=2))
    assert (found.runs, found.kept["newest"]) == (3, 1)
    prune(both, actor=ACTOR, now=later(hours=2))
    assert numbers() == {runs[-1]}
    assert survey(Retention(keep=0), actor=ACTOR).runs == 1


def test_filters_leave_other_runs_alone() -> None:
    """REV.4"""
    mine, other = finished(), finished(name="other")
    failed = publish_run(SHELL)
    play(failed, {"work": bad()})
    assert prune_all(Retention(keep=0, statuses=("failed",))).runs == 1
    assert numbers() == {mine, other}
    prune_all(Retention(keep=0, workflow="other"))
    assert numbers() == {mine}


@pytest.mark.parametrize(
    ("retention", "code"),
    [
        (Retention(), "input.invalid"),
        (Retention(keep=1, workflow="nothing"), "workflow.not_found"),
        (Retention(keep=1, statuses=("running",)), "input.invalid"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(retention: Retention, code: str) -> None:
    run_id = finished()
    with pytest.raises(Refusal) as caught:
        prune_all(retention)
    assert caught.value.code == code
    assert numbers() == {run_id}


def test_a_survey_changes_nothing() -> None:
    """REV.4"""
    finished()
    family()
    before = all_rows()
    found = survey(ALL, actor=ACTOR, now=later(days=1))
    assert (found.runs, found.children, dict(found.by_workflow)) == (2, 1, {"demo": 1, "parent": 1})
    assert all_rows() == before


def test_a_run_that_was_reopened_meanwhile_stays() -> None:
    """REV.4: what keeps a run is asked again under its lock."""
    run_id = publish_run(SHELL)
    play(run_id, {"work": bad()})
    reopen(run_id=run_id, actor="bob", reason="again", now=START)
    answer = remove(run_id, family=[run_id], before=later(days=1))
    assert answer == Kept(reason="live", run=run_id)
    gone = remove(4711, family=[4711])
    assert gone == Kept(reason="changed", run=4711)


# ---- crashes and company ---------------------------------------------------------------------------------------------


def test_what_a_crash_leaves_behind_goes_with_the_leftovers() -> None:
    """REV.4"""
    run_id = finished("left behind")
    digest = store("left behind").digest
    remove(run_id, family=[run_id])
    assert Payload.objects.filter(digest=digest).exists()
    other = finished("still there")
    assert drop_leftovers(actor=ACTOR) == 1
    assert not Payload.objects.filter(digest=digest).exists()
    assert Visit.objects.get(run_id=other).output_digest == store("still there").digest


def test_a_start_at_the_same_moment_keeps_its_value() -> None:
    """REV.4: the start has found the value present and not yet committed the run that names it."""
    old = publish_run(SHELL, {"which": "the same"})
    play(old)
    value = store({"which": "the same"})
    remove(old, family=[old])
    wish = publication(SHELL, {"which": "the same"})
    dropped: list[int] = []

    def drop() -> None:
        with database_thread():
            dropped.append(drop_payloads(digests=[value.digest]))

    dropper = threading.Thread(target=drop)

    @ledger_transaction
    def start() -> int:
        store_payloads([value])
        dropper.start()
        wait_until_it_waits()
        run = Run.objects.create(**run_columns(Plan.objects.select_related("workflow").get(pk=wish.plan_id), wish))
        insert_beginning(run, wish)
        return int(run.pk)

    run_id = start()
    dropper.join()
    assert dropped == [0]
    assert Payload.objects.filter(digest=value.digest).exists()
    assert numbers() == {run_id}


def wait_until_it_waits() -> None:
    """Until another session waits for a lock of a table. SQLite has one writer at a time in any case."""
    if connection.vendor != "postgresql":
        return
    for _ in range(1_000):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'")
            if cursor.fetchone() != (0,):
                return
        threading.Event().wait(0.005)
    raise AssertionError("nobody waits for the table")


def test_a_start_whose_version_was_pruned_is_told_to_try_again() -> None:
    """REV.4"""
    wish = publication(SHELL)
    assert pruning.drop_plan(plan_id=wish.plan_id)
    with pytest.raises(Refusal) as caught:
        publish(wish)
    assert caught.value.code == "store.contended"
    assert numbers() == set()
