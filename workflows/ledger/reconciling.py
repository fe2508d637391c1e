"""Reconcile: a person says what became of an attempt whose worker died; the driver carries it out (ADM.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.jsonvalue import Stored
from workflows.ledger.auditing import record_audit
from workflows.ledger.listeners import announce
from workflows.ledger.publishing import store_payloads
from workflows.ledger.records import compact, record_event, record_version
from workflows.ledger.slots import come_back
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Run, Scope
from workflows.statuses import ScopePhase, WaitsFor

Decision = Literal["happened", "did_not", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """*happened*: ``outcome``, ``output``, ``failure`` are recorded as the attempt's result. *did_not*: exactly one
    further attempt is authorized. *stop*: the visit fails. ``reason`` is never empty."""

    decision: Decision
    actor: str
    reason: str
    outcome: str = ""
    output: Stored | None = None
    failure: Mapping[str, str] | None = None
    exit_code: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "decision": self.decision,
            "actor": self.actor,
            "reason": self.reason,
            "outcome": self.outcome,
            "output": self.output.digest if self.output else None,
            "failure": dict(self.failure) if self.failure else None,
            "exit_code": self.exit_code,
        }


@ledger_transaction
def reconcile(*, run_id: int, visit: int, reconciliation: Reconciliation, now: datetime) -> int:
    """Record the decision about the interrupted attempt of ``visit`` and wake the run. Returns the attempt's number.

    1. Under the run's lock: the run has not ended, and the visit's scope is parked for reconciliation.
    2. The decision is written on the attempt, once; with it the given output, one event, one revision, one entry of
       the audit.
    3. The run is woken; its driver settles, repeats or fails the visit.

    Loses with ``run.not_found``, ``run.terminal``, ``attempt.not_interrupted`` (nothing to decide, or decided).
    """
    run = Run.objects.lock(run_id)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    scope = Scope.objects.filter(run=run, visit=visit, phase=ScopePhase.WAITING, waits_for=WaitsFor.RECONCILE)
    attempt = Attempt.objects.filter(run=run, visit=visit).order_by("-number").first()
    if attempt is None or not scope.exists():
        raise Refusal("attempt.not_interrupted", run=run_id, visit=f"v{visit}")
    if reconciliation.output is not None:
        store_payloads([reconciliation.output])
    text = compact(reconciliation.as_json())
    Attempt.objects.authorize(run_id=run_id, visit=visit, number=attempt.number, authorization=text)
    record_version(run, "attempt", f"{visit}.{attempt.number}", {"authorization": text})
    record_event(
        run,
        "attempt_reconciled",
        at=now,
        actor=reconciliation.actor,
        visit=visit,
        attempt=attempt.number,
        decision=reconciliation.decision,
        reason=reconciliation.reason[:1000],
    )
    record_audit(
        actor=reconciliation.actor,
        action="run.reconcile",
        at=now,
        run=run_id,
        reason=reconciliation.reason,
        data={
            "attempt": f"v{visit}.{attempt.number}",
            "decision": reconciliation.decision,
            "outcome": reconciliation.outcome,
        },
    )
    come_back(run, database_now_ms())
    Run.objects.change(run, wake_at_ms=database_now_ms())
    announce(run_id, run.revision)
    number: int = attempt.number
    return number
