"""Late results: what a displaced or stopped try brought after all is kept on its attempt and moves nothing (SET.4)."""

from __future__ import annotations

import json

from django.utils import timezone

from workflows.jsonvalue import Stored
from workflows.ledger.publishing import store_payloads
from workflows.ledger.records import compact, record_event, record_version
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Run
from workflows.statuses import AttemptStatus

_MAY_BE_LATE = (AttemptStatus.RUNNING, AttemptStatus.INTERRUPTED, AttemptStatus.FAILED, AttemptStatus.CANCELLED)


@ledger_transaction
def keep_late_result(*, run_id: int, visit: int, number: int, outcome: str, output: Stored | None) -> bool:
    """Keep a late result for the person who reconciles; False when the attempt has succeeded or has one already.

    Needs no lease: it settles nothing, whoever brings it and whatever the run's status is.
    """
    run = Run.objects.lock(run_id)
    this = Attempt.objects.filter(run=run, visit=visit, number=number, status__in=_MAY_BE_LATE, late_outcome="")
    attempt = this.first()
    if attempt is None:
        return False
    if output is not None:
        store_payloads([output])
    changed = {
        "late_outcome": outcome,
        "late_output_digest": output.digest if output else None,
        "marks": compact(sorted({*json.loads(attempt.marks), "late"})),
    }
    this.update(**changed)
    record_version(run, "attempt", f"{visit}.{number}", changed)
    record_event(run, "late_result", at=timezone.now(), visit=visit, attempt=number, outcome=outcome)
    Run.objects.change(run)
    return True
