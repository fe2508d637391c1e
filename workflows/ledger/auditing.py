"""Audit: what a person did, or was not allowed to do, is kept for ever (promises WEB.2, ADM.6, PUB.10).

An action that is carried out leaves its entry in the transaction of the change, so there is never one without the
other. A denied one changes nothing, so its entry is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workflows.ledger.records import compact
from workflows.ledger.transactions import ledger_transaction, require_ledger_transaction
from workflows.models import AuditEntry, Run

MOST_DATA = 8 * 1024
MOST_REASON = 2_000
MOST_ACTOR = 200


def record_audit(
    *,
    actor: str,
    action: str,
    at: datetime,
    run: int | None = None,
    workflow: str = "",
    reason: str = "",
    allowed: bool = True,
    data: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Insert an entry in the open ledger transaction.

    ``actor`` is who did it as it is recorded (``shell:root as alice``), ``action`` a noun with its verb
    (``run.abandon``), ``run`` the number of a run, whose workflow is found. ``data`` are ids and choices, never
    parameters, outputs or secrets; what is longer than 8 KiB is left out, its names are kept.
    """
    require_ledger_transaction()
    if run is not None and not workflow:
        workflow = Run.objects.filter(pk=run).values_list("workflow__name", flat=True).first() or ""
    entry: AuditEntry = AuditEntry.objects.create(
        at=at,
        actor=actor[:MOST_ACTOR],
        action=action,
        allowed=allowed,
        run=run,
        workflow=workflow,
        reason=reason[:MOST_REASON],
        data=_data_text(data or {}),
    )
    return entry


@ledger_transaction
def audit(
    *,
    actor: str,
    action: str,
    at: datetime,
    run: int | None = None,
    workflow: str = "",
    reason: str = "",
    allowed: bool = True,
    data: Mapping[str, Any] | None = None,
) -> None:
    """The same as a transaction of its own: for what changes no row of the ledger, such as a denied action."""
    record_audit(
        actor=actor, action=action, at=at, run=run, workflow=workflow, reason=reason, allowed=allowed, data=data
    )


def _data_text(data: Mapping[str, Any]) -> str:
    text = compact(dict(data))
    if len(text.encode()) <= MOST_DATA:
        return text
    return compact({"left_out": sorted(name[:60] for name in data)[:100]})
