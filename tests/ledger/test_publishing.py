"""Publish: a run appears whole or not at all (promises PUB, PLAN)."""

from __future__ import annotations

import json

import pytest

from tests.processes import run_in_threads
from tests.support.plans import START, publication, publish_run, published, store_plan, workflow
from tests.support.rows import all_rows, assert_sound
from tests.support.tap import Injected, failing_at
from workflows.errors import Refusal
from workflows.jsonvalue import digest, store
from workflows.ledger.listeners import listeners
from workflows.ledger.publishing import Published, publish
from workflows.models import Event, Lease, Payload, Plan, RowVersion, Run, Scope, ScopeVars, Workflow

pytestmark = pytest.mark.django_db(transaction=True)

ONE_STEP = workflow("  - { id: work, kind: shell, run: make }", before="params: { n: { type: integer } }")
OTHER = workflow("  - { id: work, kind: shell, run: make again }", before="params: { n: { type: integer } }")


def test_a_published_run_has_all_its_rows_at_revision_1() -> None:
    """PUB.1"""
    run_id = publish_run(ONE_STEP, {"n": 3})
    run = Run.objects.get(pk=run_id)
    assert (run.status, run.revision, run.next_event, run.visits, run.lease_epoch) == ("queued", 1, 2, 0, 0)
    assert (run.started_by, run.origin, run.created_at, run.started_at) == ("ann", "cli", START, None)
    assert run.plan.workflow_id == run.workflow_id
    assert Payload.objects.get(digest=run.params_digest).text == '{"n":3}'
    scope = Scope.objects.get(run=run)
    assert (scope.path, scope.kind, scope.section, scope.phase, scope.step) == ("", "root", "main", "ready", "work")
    assert ScopeVars.objects.get(run=run).values == "{}"
    assert Lease.objects.get(run=run).expires_ms == 0
    versions = RowVersion.objects.filter(run=run).order_by("table").values_list("revision", "table", "key")
    assert list(versions) == [(1, "run", ""), (1, "scope", ""), (1, "scopevars", "")]
    assert_sound()


def test_the_start_event_carries_ids_and_the_status_only() -> None:
    """PUB.6, EVT.4"""
    run_id = publish_run(ONE_STEP, {"n": 3}, title="A title nobody should find in events")
    event = Event.objects.get(run_id=run_id)
    assert (event.sequence, event.revision, event.type, event.actor) == (1, 1, "run_started", "ann")
    run = Run.objects.get(pk=run_id)
    assert json.loads(event.payload) == {"plan": run.plan_id, "status": "queued", "workflow": run.workflow_id}


def test_a_failure_at_any_statement_of_a_publication_leaves_nothing() -> None:
    """PUB.1"""
    given = publication(ONE_STEP, {"n": 3}, key="k")
    before = all_rows()
    for number in range(1, 60):
        try:
            with failing_at(number) as seen:
                publish(given)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 10
    assert Run.objects.count() == 1
    assert_sound()


def test_parameters_are_kept_byte_for_byte() -> None:
    """PUB.2"""
    text = "ä\u2028\U0001f600 \\ \" ' \t\r\n"
    run_id = publish_run(ONE_STEP, {"text": text})
    stored = Payload.objects.get(digest=Run.objects.get(pk=run_id).params_digest)
    assert json.loads(stored.text) == {"text": text}
    assert stored.digest == digest(stored.text)
    assert stored.size == len(stored.text.encode())


def test_the_same_key_with_the_same_plan_and_parameters_is_the_existing_run() -> None:
    """PUB.3"""
    first = published(ONE_STEP, {"n": 3}, key="monday")
    before = all_rows()
    again = published(ONE_STEP, {"n": 3}, key="monday")
    assert first == Published(run_id=first.run_id, created=True)
    assert again == Published(run_id=first.run_id, created=False)
    assert all_rows() == before


@pytest.mark.parametrize(("text", "params"), [(ONE_STEP, {"n": 4}), (OTHER, {"n": 3})], ids=["parameters", "plan"])
def test_the_same_key_with_anything_else_is_a_conflict_that_names_both(text: str, params: dict[str, int]) -> None:
    """PUB.3"""
    known = published(ONE_STEP, {"n": 3}, key="monday")
    given = publication(text, params, key="monday")
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        publish(given)
    old, new = Plan.objects.get(pk=Run.objects.get(pk=known.run_id).plan_id), Plan.objects.get(pk=given.plan_id)
    there = f"plan {old.hash[:12]} with parameters {store({'n': 3}).digest[:12]}"
    here = f"plan {new.hash[:12]} with parameters {store(params).digest[:12]}"
    assert caught.value.code == "run.key_conflict"
    assert caught.value.message == (
        f"Key monday was already used for a run of demo with other parameters or another version "
        f"({there} there, {here} here)."
    )
    assert all_rows() == before


def test_two_starts_with_one_key_at_the_same_instant_make_one_run() -> None:
    """PUB.3"""
    for round in range(5):
        given = [publication(ONE_STEP, {"n": 3}, key=f"k{round}") for _ in range(4)]
        answers = run_in_threads(*(lambda one=one: publish(one) for one in given))
        assert all(isinstance(answer, Published) for answer in answers), answers
        assert len({answer.run_id for answer in answers if isinstance(answer, Published)}) == 1
        assert sum(answer.created for answer in answers if isinstance(answer, Published)) == 1
    assert Run.objects.count() == 5
    assert_sound()


def test_a_key_belongs_to_its_workflow() -> None:
    """PUB.3"""
    elsewhere = workflow("  - { id: work, kind: shell, run: make }", name="elsewhere")
    assert published(ONE_STEP, key="k").run_id != published(elsewhere, key="k").run_id


def test_listeners_hear_of_a_publication_once_and_only_of_one_that_happened() -> None:
    """EVT.3"""
    heard: list[tuple[int, int]] = []
    listeners.append(lambda run, revision: heard.append((run, revision)))
    try:
        first = published(ONE_STEP, key="k")
        published(ONE_STEP, key="k")
    finally:
        listeners.pop()
    assert heard == [(first.run_id, 1)]


def test_a_published_version_becomes_current_and_counts_on() -> None:
    first = store_plan(ONE_STEP, private=False)
    second = store_plan(OTHER, private=False)
    again = store_plan(OTHER, private=False)
    assert [(plan.version, plan.created) for plan in (first, second, again)] == [(1, True), (2, True), (2, False)]
    assert again.plan_id == second.plan_id
    assert Workflow.objects.get(name="demo").current_id == second.plan_id


def test_going_back_to_a_former_version_is_a_new_version_with_the_same_hash() -> None:
    first = store_plan(ONE_STEP, private=False)
    store_plan(OTHER, private=False)
    third = store_plan(ONE_STEP, private=False)
    assert (third.version, third.created) == (3, True)
    assert Plan.objects.get(pk=third.plan_id).hash == Plan.objects.get(pk=first.plan_id).hash


def test_a_private_version_has_no_number_and_never_becomes_current() -> None:
    private = store_plan(ONE_STEP)
    assert (private.version, private.created) == (None, True)
    assert store_plan(ONE_STEP).plan_id == private.plan_id
    assert Workflow.objects.get(name="demo").current_id is None
    assert store_plan(ONE_STEP, private=False).version == 1


def test_key_order_comments_and_shorthands_do_not_make_a_version() -> None:
    """PLAN.1"""
    spelled = """# a comment
name: demo
params: { n: { type: integer } }
steps:
  - run: make
    kind: shell
    id: work
format: 1
"""
    first = store_plan(ONE_STEP, private=False)
    assert store_plan(spelled, private=False).plan_id == first.plan_id
    stored = Plan.objects.get(pk=first.plan_id)
    assert stored.hash == digest(stored.document)


def test_two_publications_of_a_version_at_once_make_one() -> None:
    answers = run_in_threads(*[lambda: store_plan(ONE_STEP, private=False)] * 4)
    assert sorted(getattr(answer, "created", answer) for answer in answers) == [False, False, False, True]
    assert Plan.objects.count() == 1


def test_a_failure_at_any_statement_of_publishing_a_version_leaves_nothing() -> None:
    """PUB.1"""
    before = all_rows()
    for number in range(1, 40):
        try:
            with failing_at(number) as seen:
                store_plan(ONE_STEP, private=False)
        except Injected:
            assert all_rows() == before, seen[-1]
        else:
            break
    assert number > 5
    assert Plan.objects.count() == 1
