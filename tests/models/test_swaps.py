"""The compare-and-swap of the managers, and their guard (promise ADM 4; SET 2; LEASE 2, 10; REV 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError
from django.db.models import CheckConstraint

from tests.support.hand import TTL_MS, Hand, expire
from tests.support.kinds import ok
from tests.support.plans import START, publish_run, workflow
from tests.support.rows import all_rows
from workflows import statuses
from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger.reopening import wake
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Lease, LoginSession, Run, Visit, WorkflowAccess
from workflows.models.guard import OutsideLedgerError

# swaps alone, without the rest of what a verb writes, leave no story that could be inspected
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

TEXT = workflow("  - { id: work, kind: shell, run: make, access: read }")
TIMER = workflow("  - { id: nap, kind: wait, for: 1h }")


@ledger_transaction
def inside(body: Callable[[], Any]) -> Any:
    return body()


def running() -> tuple[int, Attempt]:
    run_id = publish_run(TEXT)
    Hand(run_id).step()
    return run_id, Attempt.objects.get(run_id=run_id)


def finish(attempt: Attempt, **changes: Any) -> bool:
    values: dict[str, Any] = {
        "run_id": attempt.run_id,
        "visit": attempt.visit,
        "number": attempt.number,
        "epoch": attempt.epoch,
        "dispatch_id": attempt.dispatch_id,
        "digest": "d" * 64,
        "status": "succeeded",
        "outcome": "ok",
        "revision_settled": 3,
        "ended_at": START,
        **changes,
    }
    return bool(inside(lambda: Attempt.objects.finish(**values)))


def refusal_of(body: Callable[[], Any]) -> Refusal:
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        body()
    assert all_rows() == before
    return caught.value


def test_an_attempt_is_finished_once_and_again_with_the_same_digest_is_no_change() -> None:
    """SET.2"""
    _, attempt = running()
    assert finish(attempt) is True
    before = all_rows()
    assert finish(attempt, outcome="something else") is False
    assert all_rows() == before


def test_another_digest_is_a_conflict() -> None:
    """SET.2"""
    _, attempt = running()
    finish(attempt)
    refusal = refusal_of(lambda: finish(attempt, digest="e" * 64))
    assert (refusal.code, refusal.message) == (
        "attempt.conflict",
        "Attempt v1.1 is already settled with another result.",
    )


def test_another_epoch_has_lost_the_lease() -> None:
    """SET.2"""
    run_id, attempt = running()
    refusal = refusal_of(lambda: finish(attempt, epoch=2))
    assert refusal.message == f"The lease on run {run_id} was lost: attempt v1.1 belongs to epoch 1."


def test_another_dispatch_id_or_an_unknown_attempt_settles_nothing() -> None:
    """SET.2: a late result never settles a later attempt of the visit."""
    _, attempt = running()
    assert refusal_of(lambda: finish(attempt, dispatch_id="0" * 32)).code == "attempt.conflict"
    assert refusal_of(lambda: finish(attempt, number=2)).code == "attempt.conflict"


def test_an_attempt_is_interrupted_once() -> None:
    """ADM.5"""
    run_id, _ = running()

    def interrupt() -> bool:
        return bool(inside(lambda: Attempt.objects.interrupt(run_id=run_id, visit=1, number=1, marks='["uncertain"]')))

    assert (interrupt(), interrupt()) == (True, False)
    assert Attempt.objects.get(run_id=run_id).status == "interrupted"


def test_a_decision_about_an_attempt_is_recorded_once() -> None:
    """ADM.6"""
    run_id, _ = running()

    def authorize() -> None:
        inside(lambda: Attempt.objects.authorize(run_id=run_id, visit=1, number=1, authorization="{}"))

    assert refusal_of(authorize).code == "attempt.not_interrupted"
    inside(lambda: Attempt.objects.interrupt(run_id=run_id, visit=1, number=1))
    authorize()
    assert refusal_of(authorize).message == "v1 is not waiting to be reconciled."


def test_a_visit_has_one_running_attempt_at_most() -> None:
    """ADM.4: by the database, whoever writes."""
    run_id, attempt = running()
    columns = {
        "run_id": run_id,
        "visit": 1,
        "number": 2,
        "dispatch_id": "x",
        "status": "running",
        "input_hash": attempt.input_hash,
        "epoch": 1,
        "revision_created": 2,
        "started_at": START,
    }
    with pytest.raises(IntegrityError):
        inside(lambda: Attempt.objects.reserve(**columns))
    inside(lambda: Attempt.objects.interrupt(run_id=run_id, visit=1, number=1))
    inside(lambda: Attempt.objects.reserve(**columns))
    assert Attempt.objects.filter(run_id=run_id, status="running").count() == 1


def test_a_lease_that_is_live_is_not_given_away() -> None:
    """LEASE.1"""
    run_id = publish_run(TEXT)
    Hand(run_id)
    taken = inside(lambda: Lease.objects.take(run_id=run_id, owner="x", epoch=2, ttl_ms=TTL_MS, active_ms=0))
    assert taken is False
    expire(run_id)
    for epoch, expected in ((1, False), (2, True)):
        taken = inside(
            lambda epoch=epoch: Lease.objects.take(run_id=run_id, owner="x", epoch=epoch, ttl_ms=TTL_MS, active_ms=0)
        )
        assert taken is expected


def test_the_runs_a_worker_may_take() -> None:
    """LEASE.10"""
    queued, held, orphaned, parked, woken, ended = (
        publish_run(TIMER if name in ("parked", "woken") else TEXT)
        for name in ("queued", "held", "orphaned", "parked", "woken", "ended")
    )
    Hand(held).step()
    Hand(orphaned).step()
    expire(orphaned)
    far = START.replace(year=2100)
    for run_id in (parked, woken):
        Hand(run_id, now=far).step()
    wake(run_id=woken)
    hand = Hand(ended)
    hand.step()
    hand.step({"v1.1": ok()})
    assert set(Run.objects.runnable().values_list("pk", flat=True)) == {queued, orphaned, woken}
    later = database_now_ms() + TTL_MS + 1
    assert set(Run.objects.runnable(now=later).values_list("pk", flat=True)) == {queued, held, orphaned, woken}
    assert set(Run.objects.live().values_list("pk", flat=True)) == {queued, held, orphaned, parked, woken}


def test_the_guard_refuses_every_write_outside_a_ledger_transaction() -> None:
    """REV.3: whatever way a queryset offers."""
    run_id, attempt = running()
    before = all_rows()
    # those are edited in the admin, and kept by whoever logs in
    tables = set(apps.get_app_config("workflows").get_models()) - {WorkflowAccess, LoginSession}
    for model in tables:
        rows = model._default_manager.all()
        for write in (
            lambda rows=rows: rows.update(**{rows.model._meta.pk.attname: 1}),
            lambda rows=rows: rows.delete(),
            lambda rows=rows: rows.create(),
            lambda rows=rows, model=model: rows.bulk_create([model()]),
            lambda rows=rows: rows.get_or_create(pk=10**9),
            lambda rows=rows: rows.update_or_create(pk=10**9),
        ):
            with pytest.raises(OutsideLedgerError):
                write()
    with pytest.raises(OutsideLedgerError):
        Visit.objects.filter(run_id=run_id).bulk_update([Visit.objects.get(run_id=run_id)], ["outcome"])
    assert attempt.pk
    assert all_rows() == before


@pytest.mark.parametrize(
    ("model", "column", "choices"),
    [
        ("Run", "status", statuses.RunStatus),
        ("Visit", "status", statuses.VisitStatus),
        ("Attempt", "status", statuses.AttemptStatus),
        ("Scope", "phase", statuses.ScopePhase),
        ("Scope", "section", statuses.Section),
        ("ControlMessage", "kind", statuses.ControlKind),
    ],
)
def test_the_database_accepts_exactly_the_statuses_of_the_list(model: str, column: str, choices: Any) -> None:
    constraints = [
        constraint.condition.deconstruct()[1][0]
        for constraint in apps.get_model("workflows", model)._meta.constraints
        if isinstance(constraint, CheckConstraint)
    ]
    assert (f"{column}__in", choices.values) in constraints


@pytest.mark.parametrize("moves", [statuses.RUN_MOVES, statuses.ATTEMPT_MOVES])
def test_every_status_has_its_moves(moves: dict[Any, frozenset[Any]]) -> None:
    kind = type(next(iter(moves)))
    assert set(moves) == set(kind)
    assert all(set(targets) <= set(kind) for targets in moves.values())
