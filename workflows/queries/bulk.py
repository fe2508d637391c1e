"""The bulk actions that were made last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from workflows.models import BulkAction

MOST_LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRow:
    number: int
    action: str
    actor: str
    reason: str
    created_at: datetime
    runs: int
    is_over: bool
    is_aborted: bool


def bulk_list(*, limit: int = MOST_LISTED) -> list[BulkRow]:
    """The newest first. One query."""
    rows = BulkAction.objects.order_by("-pk").annotate(runs=Count("items"))[:limit]
    return [
        BulkRow(
            number=row.pk,
            action=row.action,
            actor=row.actor,
            reason=row.reason,
            created_at=row.created_at,
            runs=row.runs,
            is_over=row.ended_at is not None,
            is_aborted=row.aborted_at is not None,
        )
        for row in rows
    ]
