"""Sessions of people: ended for good, and the audit says by whom."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.contrib.sessions.models import Session

from workflows.ledger.auditing import record_audit
from workflows.ledger.transactions import ledger_transaction
from workflows.models import LoginSession


@ledger_transaction
def end_sessions(*, user_id: int, person: str, sessions: Collection[int], actor: str, now: datetime) -> int:
    """End sessions of one person; how many there were.

    1. Those of ``sessions`` that are this person's are found; of others nothing is said.
    2. Django's rows are deleted, so that the next request of such a browser is nobody's, and ours with them.
    3. The audit names the actor, the person and how many there were.
    """
    mine = LoginSession.objects.filter(user_id=user_id, pk__in=sessions)
    keys = list(mine.values_list("session_key", flat=True))
    if not keys:
        return 0
    Session.objects.filter(session_key__in=keys).delete()
    mine.delete()
    record_audit(actor=actor, action="session.end", at=now, data={"person": person, "sessions": len(keys)})
    return len(keys)
