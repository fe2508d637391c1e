"""Where a fork stands: what its first own revision changes in the rows it has inherited (promises FORK 2, 5, 6).

Each row that is changed leaves its version of that revision, so the cut stays visible below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workflows.clock import unix_ms
from workflows.jsonvalue import Stored
from workflows.ledger.past import Past
from workflows.ledger.publishing import store_payloads
from workflows.ledger.records import record_version
from workflows.models import Attempt, ExternalOffer, Interrupt, RowVersion, Run, Scope, ScopeVars, Visit
from workflows.statuses import AttemptStatus, InterruptStatus, OfferStatus, ScopePhase, VisitStatus, WaitsFor

#: What runs out after a while, counted from when it began: a fork gives it the rest that it had at the cut.
_RUNS_OUT = frozenset({WaitsFor.JOIN, WaitsFor.SIGNAL, WaitsFor.CHILD})
_RESULT = ("status", "outcome", "output_digest", "detail_digest", "error", "exit_code", "revision_settled", "ended_at")


def stand_at_cut(fork: Run, past: Past, *, child: str, now: datetime) -> None:
    """Let every scope go on from the cut, in the revision after it.

    A question that was open is asked anew: its attempt ends here, and the visit gets another one. Whoever stood in
    line for a place stands in line again. External work that was not finished is offered anew under another key. A
    child run that was awaited is started anew with ``child`` *new*. What ran stays as it was: the driver that takes
    the fork finds that nobody works on it.
    """
    passed_ms = unix_ms(now) - unix_ms(past.moment())
    for scope in Scope.objects.filter(run=fork, outcome="", phase=ScopePhase.WAITING).order_by("pk"):
        if scope.waits_for == WaitsFor.SLOT:
            _go_on(fork, scope)
        elif (
            (scope.waits_for == WaitsFor.PEOPLE and not _is_answered(fork, scope.visit))
            or (scope.waits_for == WaitsFor.CHILD and child == "new")
            or (scope.waits_for == WaitsFor.EXTERNAL and not _is_finished(fork, scope.visit))
        ):
            _end_attempt(fork, scope.visit, now)
            _go_on(fork, scope)
        elif scope.waits_for in _RUNS_OUT and scope.wake_at_ms is not None:
            _change(fork, scope, wake_at_ms=scope.wake_at_ms + passed_ms)


def _is_answered(fork: Run, visit: int | None) -> bool:
    last = Attempt.objects.filter(run=fork, visit=visit).order_by("-number").first()
    if last is None:
        return False
    answered = Interrupt.objects.filter(run=fork, visit=visit, attempt=last.number, status=InterruptStatus.ANSWERED)
    return bool(answered.exists())


def _is_finished(fork: Run, visit: int | None) -> bool:
    waiting = Attempt.objects.filter(run=fork, visit=visit, status=AttemptStatus.PAUSED).values("number")
    finished = ExternalOffer.objects.filter(run=fork, visit=visit, attempt__in=waiting, status=OfferStatus.FINISHED)
    return bool(finished.exists())


def _end_attempt(fork: Run, visit: int | None, now: datetime) -> None:
    """The attempt that waited for somebody waits no more; the next attempt of the visit asks or starts anew."""
    Attempt.objects.filter(run=fork, visit=visit, status=AttemptStatus.PAUSED).update(
        status=AttemptStatus.CANCELLED, outcome="cancelled", revision_settled=fork.revision + 1, ended_at=now
    )


def _go_on(fork: Run, scope: Scope) -> None:
    _change(fork, scope, phase=str(ScopePhase.READY), waits_for="", wake_at_ms=None)


def _change(fork: Run, scope: Scope, **changed: Any) -> None:
    Scope.objects.filter(pk=scope.pk).update(**changed)
    record_version(fork, "scope", scope.path, changed)


def edit(fork: Run, *, variables: Mapping[str, Stored], outputs: Mapping[int, Stored | None]) -> None:
    """Replace the variables of scopes, by path, and the outputs of settled visits, by number."""
    for path, values in variables.items():
        ScopeVars.objects.filter(run=fork, path=path).update(values=values.text)
        record_version(fork, "scopevars", path, {"values": values.text})
    store_payloads([output for output in outputs.values() if output is not None])
    for number, output in outputs.items():
        visit = Visit.objects.get(run=fork, number=number, status=VisitStatus.SETTLED)
        key = str(number)
        if not RowVersion.objects.filter(run=fork, table="visit", key=key).exists():
            former = {name: getattr(visit, name) for name in _RESULT}
            record_version(fork, "visit", key, former, revision=visit.revision_settled)
        changed = {"output_digest": output.digest if output else None}
        Visit.objects.filter(pk=visit.pk).update(**changed)
        record_version(fork, "visit", key, changed)
