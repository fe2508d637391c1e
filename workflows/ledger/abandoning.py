"""Abandon: stop tracking a run, at once and whatever it is doing (promises ABR.1, CHD.3).

The steps stay where they stood, so that reopening goes on from exactly there. No plan is needed for it, so a run whose
plan is corrupt is abandoned like any other (PLAN.2).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef

from workflows.clock import DatabaseNow, database_now_ms
from workflows.definitions.compiler import compiled
from workflows.definitions.plan import Plan
from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.children import is_awaited
from workflows.ledger.listeners import announce
from workflows.ledger.records import compact, record_event, record_version
from workflows.ledger.transactions import ledger_transaction
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    ExternalOffer,
    Interrupt,
    Lease,
    Run,
    Scope,
    Slot,
    Visit,
)
from workflows.models.external import LIVE_OFFERS
from workflows.statuses import (
    Access,
    AttemptStatus,
    ControlKind,
    InterruptStatus,
    OfferStatus,
    RunStatus,
    ScopePhase,
    WaitsFor,
)

#: Who abandons a child run with its parent.
WITH_PARENT = "parent run"
#: Messages that are about the course of a run and mean nothing once nobody follows it.
_VOID = (ControlKind.CANCEL, ControlKind.PAUSE, ControlKind.RESUME, ControlKind.SKIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """``was`` is the status before; ``freed`` are the (kind, name) of places for which others may wait."""

    run_id: int
    was: str
    questions: int
    interrupted: int
    freed: tuple[tuple[str, str], ...]


@ledger_transaction
def abandon(*, run_id: int, actor: str, reason: str, now: datetime, audited: bool = True) -> Abandoned:
    """End a run as abandoned; a reason is kept with the event and the audit.

    1. Under the run's lock: it has not ended. A live lease of another process does not matter: it ends here, so that
       its driver is fenced off from now on, notices it, stops what runs and keeps results as late ones.
    2. Running attempts are interrupted; a write of which nobody knows whether it happened waits to be reconciled,
       should the run be opened again. Scopes and visits stay where they are.
    3. Open questions are closed with their attempts, so a later answer is refused (INT.7). They are asked anew when
       the run is opened again. Work that other programs have, or may reserve, is withdrawn in the same way; results
       that came before stay.
    4. Slots and places in line are free. Messages that nobody has carried out mean nothing any more; signals and what
       steers stay.
    5. The run is abandoned, a hanging ``finally`` included: one event, one revision. Child runs and the parent are
       told in transactions of their own.

    Loses with ``run.not_found``, ``input.invalid`` (no reason), ``run.terminal``.
    """
    if not reason.strip():
        raise Refusal("input.invalid", reason="Abandoning a run needs a reason (`--reason`).")
    run = Run.objects.lock(run_id)
    if run.is_final:
        raise Refusal("run.terminal", run=run_id, status=run.status)
    ending = _Ending(run, now)
    interrupted, questions = ending.interrupt_attempts(), ending.close_questions()
    ending.withdraw_offers()
    ending.leave_lines()
    freed = tuple(sorted(set(Slot.objects.filter(run=run).values_list("kind", "name"))))
    Slot.objects.filter(run=run).delete()
    void = ControlMessage.objects.filter(run=run, kind__in=_VOID, consumed_at=None)
    voided = void.update(consumed_by="abandon", consumed_at=now)
    was = run.status
    state: dict[str, Any] = {"status": str(RunStatus.ABANDONED), "reasons": "[]", "ended_at": now}
    record_version(run, "run", "", state)
    ending.tell("run_abandoned", actor=actor, reason=reason[:1000])
    seen = run.controls_seen + voided
    _end_lease(run)
    Run.objects.change(run, events=ending.events, wake_at_ms=None, controls_seen=seen, **state)
    if audited:
        told = {"was": was, "questions": questions, "interrupted": interrupted}
        record_audit(actor=actor, action="run.abandon", at=now, run=run_id, reason=reason, data=told)
    announce(run_id, run.revision)
    return Abandoned(run_id=run_id, was=was, questions=questions, interrupted=interrupted, freed=freed)


class _Ending:
    """What is written about the attempts of a run that is being abandoned; ``events`` counts its events."""

    def __init__(self, run: Run, now: datetime) -> None:
        self.run = run
        self.now = now
        self.events = 0
        self.settled: dict[str, Any] = {"revision_settled": run.revision + 1, "ended_at": now}

    def tell(self, type: str, **more: Any) -> None:
        record_event(self.run, type, at=self.now, offset=self.events, **more)
        self.events += 1

    def interrupt_attempts(self) -> int:
        """Nobody knows what became of the attempts that run: they are interrupted, as after the death of a worker."""
        running = list(Attempt.objects.filter(run=self.run, status=AttemptStatus.RUNNING).order_by("visit"))
        if not running:
            return 0
        visits = {one.number: one for one in Visit.objects.filter(run=self.run, number__in=[a.visit for a in running])}
        plan = _readable_plan(self.run)
        for attempt in running:
            visit = visits[attempt.visit]
            uncertain = visit.access == Access.WRITE and not _is_idempotent(plan, visit.step, self.run)
            error = {"code": "crashed", "message": "The run was abandoned while this attempt was running."}
            marks = {*json.loads(attempt.marks), *(["uncertain"] if uncertain else [])}
            changed = {**self.settled, "error": compact(error), "marks": compact(sorted(marks))}
            Attempt.objects.interrupt(run_id=self.run.pk, visit=attempt.visit, number=attempt.number, **changed)
            versioned = {**changed, "status": str(AttemptStatus.INTERRUPTED)}
            record_version(self.run, "attempt", f"{attempt.visit}.{attempt.number}", versioned)
            told = {"visit": attempt.visit, "attempt": attempt.number, "step": visit.step, "reason": "abandoned"}
            self.tell("step_interrupted", **told)
            self._move(visit.scope, WaitsFor.RECONCILE if uncertain else "")
        return len(running)

    def close_questions(self) -> int:
        """Open questions and their paused attempts end; answers that came before stay for the steps that asked."""
        opened = list(Interrupt.objects.filter(run=self.run, status=InterruptStatus.OPEN).order_by("visit"))
        if not opened:
            return 0
        places = Visit.objects.filter(run=self.run, number__in=[one.visit for one in opened])
        visits = {visit.number: visit for visit in places}
        for question in opened:
            settled = self.settled["revision_settled"]
            closed = InterruptStatus.CLOSED
            Interrupt.objects.close(run_id=self.run.pk, visit=question.visit, status=closed, revision_settled=settled)
            this = Attempt.objects.filter(run=self.run, visit=question.visit, number=question.attempt)
            this.update(status=AttemptStatus.CANCELLED, outcome="cancelled", **self.settled)
            visit = visits[question.visit]
            self.tell("step_cancelled", visit=question.visit, attempt=question.attempt, step=visit.step)
            self._move(visit.scope, "")
        return len(opened)

    def withdraw_offers(self) -> None:
        """Open and reserved work is withdrawn with its attempt. Nobody knows whether a program that had it did it, so
        it is offered under the same key when the run is opened again."""
        for offer in list(ExternalOffer.objects.filter(run=self.run, status__in=LIVE_OFFERS).order_by("visit")):
            settled = self.settled["revision_settled"]
            ended_ms = database_now_ms()
            columns = {"reason": "abandoned", "revision_settled": settled, "ended_ms": ended_ms}
            ExternalOffer.objects.withdraw(run_id=self.run.pk, visit=offer.visit, **columns)
            error = {"code": "crashed", "message": "The run was abandoned while a program had the work."}
            unknown = offer.status == OfferStatus.RESERVED
            this = Attempt.objects.filter(run=self.run, visit=offer.visit, number=offer.attempt)
            this.update(
                status=AttemptStatus.CANCELLED,
                outcome="cancelled",
                error=compact(error) if unknown else "",
                **self.settled,
            )
            visit = Visit.objects.get(run=self.run, number=offer.visit)
            self.tell("step_cancelled", visit=offer.visit, attempt=offer.attempt, step=visit.step)
            self._move(visit.scope, "")

    def leave_lines(self) -> None:
        """Who waits for a place of a limit stands in line again when the run is opened again."""
        waiting = Scope.objects.filter(run=self.run, phase=ScopePhase.WAITING, waits_for=WaitsFor.SLOT)
        for path in waiting.order_by("pk").values_list("path", flat=True):
            self._move(path, "")

    def _move(self, path: str, waits_for: str) -> None:
        phase = ScopePhase.WAITING if waits_for else ScopePhase.READY
        changed = {"phase": str(phase), "waits_for": str(waits_for), "wake_at_ms": None}
        Scope.objects.filter(run=self.run, path=path).update(**changed)
        record_version(self.run, "scope", path, changed)


def _readable_plan(run: Run) -> Plan | None:
    try:
        return compiled(run.plan.hash, run.plan.document)
    except Refusal:
        return None


def _is_idempotent(plan: Plan | None, step: str, run: Run) -> bool:
    """Whether the receiver of the effect deduplicates; of a plan that cannot be read nothing is assumed."""
    if plan is None or step not in plan.steps:
        return False
    planned = plan.steps[step]
    if planned.idempotent is not None:
        return planned.idempotent
    declared = json.loads(run.frozen).get("functions", {}).get(planned.options.get("call"), {})
    return bool(declared.get("idempotent", False))


def _end_lease(run: Run) -> None:
    """End the lease, live or dead. A dead one counts as active up to its expiry."""
    lease = Lease.objects.filter(run=run, expires_ms__gt=0)
    live = lease.filter(expires_ms__gt=DatabaseNow())
    if not live.update(expires_ms=0, owner="", active_ms=F("active_ms") + DatabaseNow() - F("acquired_ms")):
        lease.update(owner="", active_ms=F("active_ms") + F("expires_ms") - F("acquired_ms"), expires_ms=0)
    active = Lease.objects.filter(run=run).values_list("active_ms", flat=True).first() or 0
    Run.objects.filter(pk=run.pk).update(active_ms=active)


def left_behind(root_id: int | None = None) -> list[int]:
    """Live child runs whose parent was abandoned while it waited for them: they are abandoned with it."""
    parents = Run.objects.filter(pk=OuterRef("parent_run_id"), status=RunStatus.ABANDONED)
    live = Run.objects.live().filter(Exists(parents), is_awaited(), root_run__isnull=False)
    if root_id is not None:
        live = live.filter(root_run_id=root_id)
    return list(live.order_by("pk").values_list("pk", flat=True))


def went_along(parent_id: int) -> list[int]:
    """Child runs that were abandoned with their parent, for which it still waits: they are opened again with it."""
    children = Run.objects.filter(parent_run_id=parent_id, root_run__isnull=False, status=RunStatus.ABANDONED)
    return [
        child.pk for child in children.filter(is_awaited()).order_by("pk") if last_abandoned_by(child.pk) == WITH_PARENT
    ]


def last_abandoned_by(run_id: int) -> str:
    """The actor of the event by which a run was abandoned last."""
    events = Event.objects.filter(run_id=run_id, type="run_abandoned").order_by("-sequence")
    return events.values_list("actor", flat=True).first() or ""


def abandoned_parent(run: Run) -> int | None:
    """The abandoned run that waits for this one; None if there is none."""
    awaited = Run.objects.filter(is_awaited(), pk=run.pk, parent_run__status=RunStatus.ABANDONED)
    found: int | None = awaited.values_list("parent_run_id", flat=True).first()
    return found
