"""Prune: a finished run and everything of it goes, and later what nothing refers to any more (promise REV.4).

A run goes with all its child runs, a family of usual size in one transaction, so a crash leaves whole runs only. Values
and private plans are shared, so they go afterwards, under a lock that keeps new references from appearing meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Model

from workflows.ledger.auditing import record_audit
from workflows.ledger.inspection_strays import RUN_TABLES
from workflows.ledger.naming import digests_of_runs, referenced
from workflows.ledger.records import compact
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Payload, Plan, Run, Workflow
from workflows.statuses import LIVE_STATUSES, AttemptStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Why runs are not pruned, and the run that it is about.

    ``reason``: it is *live*, *held* for audit, its end is too *recent*, it has a *child* or a *parent* that is kept, a
    *fork* waits for a child run of it, or it *changed* meanwhile.
    """

    reason: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """Runs that ended at ``before`` or later stay (None: age does not matter). ``reason`` is the rule, in words."""

    before: datetime | None
    actor: str
    reason: str
    now: datetime


def why_kept(runs: Sequence[Run], *, before: datetime | None, family: Collection[int]) -> Kept | None:
    """The first reason why one of these runs may not be pruned now; None when all may. ``family`` goes with them.

    A live run keeps itself, and so does an audit hold. A fork needs nothing of its origin, but for the result of a
    child run that it waits for.
    """
    for run in runs:
        if run.status in LIVE_STATUSES or run.ended_at is None:
            return Kept(reason="live", run=run.pk)
        if run.audit_hold:
            return Kept(reason="held", run=run.pk)
        if before is not None and run.ended_at >= before:
            return Kept(reason="recent", run=run.pk)
    together = {*family, None}
    parents = {run.parent_run_id: run.pk for run in runs if run.parent_run_id not in together}
    present = list(Run.objects.filter(pk__in=parents).values_list("pk", flat=True)) if parents else []
    if present:
        return Kept(reason="parent", run=parents[present[0]])
    return _awaited_by_fork(runs)


def _awaited_by_fork(runs: Sequence[Run]) -> Kept | None:
    """Whether a live fork, at any distance, waits for a child run that one of these or of their origins has started."""
    origins = {run.pk: run.pk for run in runs}
    level = list(origins)
    while level:
        forks = Run.objects.filter(fork_of_id__in=level).values_list("pk", "fork_of_id")
        new = {fork: origins[origin] for fork, origin in forks if fork not in origins}
        origins |= new
        level = list(new)
        waiting = Attempt.objects.filter(
            run_id__in=level, run__status__in=LIVE_STATUSES, inherited=True, status=AttemptStatus.PAUSED
        )
        found = waiting.values_list("run_id", flat=True).first() if level else None
        if found is not None:
            return Kept(reason="fork", run=origins[found])
    return None


@ledger_transaction
def prune_runs(*, root: int, runs: Collection[int], family: Collection[int], wish: Pruning) -> Kept | frozenset[str]:
    """Remove finished runs of one family with all their rows; the digests of the payloads they named, or why one of
    them is kept after all, and then nothing is removed.

    1. Under the locks of the root and of these runs everything that keeps them is asked again, and no child run of
       theirs is left outside of them: of a large family children go before their parents.
    2. The rows of all their tables go, then the runs. Forks of them stay; their lineage names runs that are gone.
    3. With the root goes one audit entry that says who removed it and by which rule.

    What is gone already is ``Kept`` as *changed*: somebody else prunes, too.
    """
    locked = _locked({root, *runs})
    going = [run for run in locked if run.pk in runs]
    if root not in {run.pk for run in locked} or len(going) != len(set(runs)):
        return Kept(reason="changed", run=root)
    kept = why_kept(locked, before=wish.before, family=family)
    if kept is None:
        children = Run.objects.filter(parent_run__in=runs).exclude(pk__in=runs)
        outside = children.values_list("parent_run_id", flat=True).first()
        kept = None if outside is None else Kept(reason="child", run=outside)
    if kept is not None:
        return kept
    digests = digests_of_runs(runs)
    if root in runs:
        status = next(run.status for run in locked if run.pk == root)
        data = {"status": status, "family": len(family)}
        record_audit(actor=wish.actor, action="run.prune", at=wish.now, run=root, reason=wish.reason, data=data)
    for table in reversed(RUN_TABLES):
        _delete(table, run_id__in=list(runs))
    _delete(Run, pk__in=list(runs))
    return digests


def _locked(runs: Collection[int]) -> list[Run]:
    """These runs, locked in the order of their numbers: parents before their child runs."""
    rows = Run.objects.filter(pk__in=runs).order_by("pk")
    return list(rows.select_for_update() if connection.features.has_select_for_update else rows)


def _delete(table: type[Model], **which: object) -> None:
    """Without Django's collector, which would look for what refers to each row: nothing does that is not named here."""
    rows = table._default_manager.filter(**which)
    rows._raw_delete(rows.db)  # type: ignore[attr-defined]


@ledger_transaction
def drop_payloads(*, digests: Collection[str]) -> int:
    """Remove those of these payloads that nothing refers to; how many.

    A start that names the same value finds its payload present and inserts nothing, so a look at what is committed
    would not be enough: on PostgreSQL the table is locked against those who are about to insert payloads, after those
    who are at it have committed. On SQLite there is one writer at a time.

    Loses with ``store.contended`` when the lock cannot be had.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            cursor.execute(f'LOCK TABLE "{Payload._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE')
    unused = set(digests) - referenced(digests)
    return int(Payload.objects.filter(digest__in=unused).delete()[0]) if unused else 0


@ledger_transaction
def drop_plan(*, plan_id: int) -> bool:
    """Remove a private version that no run uses; False when one does, or it was published.

    Under the lock of its workflow, which everybody who stores a version takes. A start that has found the version but
    not yet published its run is told that the version is gone (``store.contended``) and may be repeated.
    """
    plan = Plan.objects.filter(pk=plan_id, version=None).first()
    if plan is None:
        return False
    Workflow.objects.filter(pk=plan.workflow_id).update(name=plan.workflow.name)
    used = Run.objects.filter(plan_id=plan_id).exists() or Workflow.objects.filter(current_id=plan_id).exists()
    if used or plan_id in frozen_plans([plan_id]):
        return False
    dropped, _ = Plan.objects.filter(pk=plan_id).delete()
    return bool(dropped)


def frozen_plans(wanted: Collection[int]) -> set[int]:
    """Those of these plans that a run has frozen beside its own, for its child runs."""
    found: set[int] = set()
    frozen = Run.objects.filter(frozen__contains='"plan":').values_list("frozen", flat=True)
    for text in frozen.iterator(chunk_size=500):
        children = json.loads(text).get("children") or {}
        found |= {child.get("plan") for child in children.values()} & set(wanted)
    return found


@ledger_transaction
def hold_for_audit(*, run_id: int, actor: str, reason: str, now: datetime) -> bool:
    """Keep a run, with its parents and child runs, from being pruned; False when it is kept already.

    Loses with ``run.not_found``.
    """
    run = Run.objects.lock(run_id)
    if run.audit_hold:
        return False
    hold = compact({"by": actor, "reason": reason, "since": now})
    Run.objects.change(run, revisions=0, events=0, audit_hold=hold)
    record_audit(actor=actor, action="run.keep", at=now, run=run_id, reason=reason)
    return True


@ledger_transaction
def release_from_audit(*, run_id: int, actor: str, reason: str, now: datetime) -> bool:
    """End the audit hold of a run; False when there is none. Loses with ``run.not_found``."""
    run = Run.objects.lock(run_id)
    if not run.audit_hold:
        return False
    Run.objects.change(run, revisions=0, events=0, audit_hold="")
    record_audit(actor=actor, action="run.keep_off", at=now, run=run_id, reason=reason)
    return True
