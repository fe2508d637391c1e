"""Publish: a run appears whole or not at all; and the versions of workflows (promises PUB, PLAN)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.facts import RunState, ScopeRow, column_names
from workflows.jsonvalue import Stored, canonical
from workflows.ledger.auditing import record_audit
from workflows.ledger.listeners import announce
from workflows.ledger.records import compact
from workflows.ledger.scheduling_files import follow_file
from workflows.ledger.slots import full, holders_of, holds_slot, take_now
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Event, Lease, Payload, Plan, RowVersion, Run, Scope, ScopeVars, Workflow
from workflows.statuses import RunStatus, ScopeKind, ScopePhase, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """The evaluated concurrency of a run. ``when_full``: queue, reject or cancel_oldest."""

    key: str
    max: int
    when_full: str = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Everything a run is made of. ``commit_id`` is random; ``first_step`` is where the main steps begin;
    ``start_at_ms``: nobody drives it before; ``audited_as`` is the person who starts it as the audit names them, "" for
    what no person does."""

    plan_id: int
    params: Stored
    frozen: Mapping[str, Any]
    first_step: str
    started_by: str
    commit_id: str
    now: datetime
    title: str = ""
    origin: str = "cli"
    key: str | None = None
    priority: int = 0
    engine_version: int = 1
    concurrency: Concurrency | None = None
    over_limit: str = ""
    start_at_ms: int | None = None
    audited_as: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """``created`` False: the key named a run that was there already. ``queued``: it waits in line for a slot;
    ``oldest`` is then the run to cancel when the plan says so."""

    run_id: int
    created: bool
    queued: bool = False
    oldest: int | None = None


def _find_mine(publication: Publication) -> Published | None:
    run = Run.objects.filter(last_commit=publication.commit_id).values_list("pk", flat=True).first()
    return Published(run_id=run, created=True) if run is not None else None


@ledger_transaction(already_mine=_find_mine)
def publish(publication: Publication) -> Published:
    """Make a run: row, lease, root scope, variables, first event and first versions, together.

    1. The idempotency key is looked up: same plan and parameters → the existing run.
    2. The parameters become a payload; run, lease, root scope and its variables are inserted at revision 1.
    3. ``run_started`` is event 1; it carries ids and the status, no title and no parameters.
    4. A concurrency key takes a slot, or a place in its line; a run that starts later does so when its moment has come
       (``stand_in_line_again``). The start of a person is audited.

    Loses with ``run.key_conflict``, ``run.concurrency_full`` (``when_full: reject``), ``store.contended`` (the version
    was pruned meanwhile); a start with the same key that commits first is found by the unique constraint.
    """
    plan = _plan_of(publication)
    existing = _existing(plan, publication)
    if existing is not None:
        return existing
    store_payloads([publication.params])
    try:
        with transaction.atomic():
            run = Run.objects.create(**run_columns(plan, publication))
    except IntegrityError:
        existing = _existing(plan, publication)
        if existing is None:
            raise
        return existing
    insert_beginning(run, publication)
    queued = not _is_later(run) and publication.concurrency is not None and not _take_slot(run, publication.concurrency)
    if publication.audited_as:
        record_audit(
            actor=publication.audited_as,
            action="run.start",
            at=publication.now,
            run=run.pk,
            workflow=plan.workflow.name,
            reason=publication.over_limit,
            data={"origin": publication.origin, "over_limit": bool(publication.over_limit)},
        )
    announce(run.pk, 1)
    oldest = next(iter(holders_of(run.concurrency_key)), None) if queued else None
    return Published(run_id=run.pk, created=True, queued=queued, oldest=oldest)


def _is_later(run: Run) -> bool:
    return run.start_at_ms is not None and run.start_at_ms > database_now_ms()


def _plan_of(publication: Publication) -> Plan:
    """The version to run. A private one may have been pruned since it was found; another try stores it again."""
    plan: Plan | None = Plan.objects.select_related("workflow").filter(pk=publication.plan_id).first()
    if plan is None:
        raise Refusal("store.contended", detail="the version of the workflow was pruned at this moment")
    return plan


def _take_slot(run: Run, concurrency: Concurrency) -> bool:
    """Take a slot, or stand in line for one. Raises ``run.concurrency_full`` when the plan rejects instead."""
    if take_now(run, database_now_ms()):
        return True
    if concurrency.when_full == "reject":
        raise full(concurrency.key, concurrency.max)
    return False


def _existing(plan: Plan, publication: Publication) -> Published | None:
    if publication.key is None:
        return None
    runs = Run.objects.filter(workflow_id=plan.workflow_id, idempotency_key=publication.key)
    run = runs.select_related("plan").first()
    if run is None:
        return None
    if run.plan.hash == plan.hash and run.params_digest == publication.params.digest:
        waits = run.status == RunStatus.QUEUED and not _is_later(run)
        queued = waits and bool(run.concurrency_max) and not holds_slot(run.pk)
        oldest = next(iter(holders_of(run.concurrency_key)), None) if queued else None
        return Published(run_id=run.pk, created=False, queued=queued, oldest=oldest)
    raise Refusal(
        "run.key_conflict",
        key=publication.key,
        workflow=plan.workflow.name,
        run=run.pk,
        known=_fingerprint(run.plan.hash, run.params_digest),
        given=_fingerprint(plan.hash, publication.params.digest),
    )


def _fingerprint(plan_hash: str, params_digest: str) -> str:
    return f"plan {plan_hash[:12]} with parameters {params_digest[:12]}"


def run_columns(plan: Plan, publication: Publication) -> dict[str, Any]:
    return {
        "workflow_id": plan.workflow_id,
        "plan": plan,
        "title": publication.title,
        "params_digest": publication.params.digest,
        "frozen": canonical(dict(publication.frozen)),
        "engine_version": publication.engine_version,
        "priority": publication.priority,
        "started_by": publication.started_by,
        "origin": publication.origin,
        "idempotency_key": publication.key,
        "start_at_ms": publication.start_at_ms,
        "created_at": publication.now,
        "last_commit": publication.commit_id,
        "concurrency_key": publication.concurrency.key if publication.concurrency else "",
        "concurrency_max": publication.concurrency.max if publication.concurrency else 0,
        **publication.extra,
    }


def insert_beginning(run: Run, publication: Publication) -> None:
    scope = ScopeRow(
        path="",
        kind=ScopeKind.ROOT.value,
        section=Section.MAIN.value,
        phase=ScopePhase.READY.value,
        step=publication.first_step,
    )
    scope_columns = {name: getattr(scope, name) for name in column_names(ScopeRow)}
    state = RunState(status=RunStatus.QUEUED.value)
    state_columns = {name: getattr(state, name) for name in column_names(RunState)}
    payload = {"plan": run.plan_id, "status": str(RunStatus.QUEUED), "workflow": run.workflow_id}
    if publication.over_limit:
        payload["over_limit"] = publication.over_limit[:1000]
    Lease.objects.create(run=run)
    Scope.objects.create(run=run, **scope_columns)
    ScopeVars.objects.create(run=run, path="", values="{}")
    Event.objects.create(
        run=run,
        sequence=1,
        revision=1,
        type="run_started",
        at=publication.now,
        actor=publication.started_by,
        payload=compact(payload),
    )
    versions = {"run": state_columns, "scope": scope_columns, "scopevars": {"values": "{}"}}
    RowVersion.objects.bulk_create(
        RowVersion(run=run, revision=1, table=table, key="", row=compact(row)) for table, row in versions.items()
    )


def store_payloads(values: list[Stored]) -> None:
    """Insert payloads that are not there yet, in the open ledger transaction."""
    Payload.objects.bulk_create(
        [Payload(digest=value.digest, text=value.text, size=value.size) for value in values], ignore_conflicts=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVersion:
    """A frozen definition to store. ``private``: made by running a file, never becomes current.

    ``began_from`` is the version that must still be current (0: there is none yet; None: whatever is). ``audited_as``
    is who publishes, for the audit; "" leaves no entry.
    """

    name: str
    title: str
    document: str
    hash: str
    source: str
    created_by: str
    now: datetime
    private: bool = False
    began_from: int | None = None
    audited_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    plan_id: int
    version: int | None
    created: bool


@ledger_transaction
def publish_plan(plan: PlanVersion) -> StoredPlan:
    """Store a version of a workflow; the workflow is made with its first one.

    A published version becomes the current one, and the schedules of its file follow it. Publishing what is current
    already, or running a file again, finds the version that is there. Two publications at once: one after the other,
    by the lock on the workflow's row.

    Loses with ``plan.superseded`` when somebody else published since ``began_from``.
    """
    workflow = _locked_workflow(plan)
    if plan.private:
        known = Plan.objects.filter(workflow=workflow, hash=plan.hash, version=None).first()
    else:
        known = workflow.current if workflow.current is not None and workflow.current.hash == plan.hash else None
    if known is not None:
        return StoredPlan(plan_id=known.pk, version=known.version, created=False)
    _refuse_if_superseded(workflow, plan)
    last = Plan.objects.filter(workflow=workflow, version__isnull=False).order_by("-version").first()
    version = None if plan.private else (last.version or 0) + 1 if last else 1
    row = Plan.objects.create(
        workflow=workflow,
        version=version,
        hash=plan.hash,
        document=plan.document,
        source=plan.source,
        created_by=plan.created_by,
        created_at=plan.now,
    )
    if not plan.private:
        Workflow.objects.filter(pk=workflow.pk).update(current=row, title=plan.title)
        follow_file(workflow, plan.document, owner=plan.created_by, now=plan.now)
    if plan.audited_as:
        record_audit(
            actor=plan.audited_as,
            action="plan.publish",
            at=plan.now,
            workflow=plan.name,
            data={"version": version, "hash": plan.hash},
        )
    return StoredPlan(plan_id=row.pk, version=version, created=True)


def _refuse_if_superseded(workflow: Workflow, plan: PlanVersion) -> None:
    current = workflow.current
    version = current.version if current is not None else 0
    if plan.began_from is None or version == plan.began_from:
        return
    raise Refusal(
        "plan.superseded",
        workflow=plan.name,
        by=current.created_by if current is not None else "",
        current=version,
        began=f"version {plan.began_from}" if plan.began_from else "none",
    )


def _locked_workflow(plan: PlanVersion) -> Workflow:
    """The workflow's row, made if it is not there. Writing it locks it on both databases."""
    Workflow.objects.bulk_create(
        [Workflow(name=plan.name, title=plan.title, created_at=plan.now)], ignore_conflicts=True
    )
    Workflow.objects.filter(name=plan.name).update(name=plan.name)
    workflow: Workflow = Workflow.objects.select_related("current").get(name=plan.name)
    return workflow
