"""Schedules that stand in a workflow's file: they follow its current version (promise SCH.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from workflows.jsonvalue import canonical
from workflows.ledger.scheduling import Terms, next_time
from workflows.ledger.transactions import require_ledger_transaction
from workflows.models import Schedule, Workflow
from workflows.statuses import CatchUp, IfRunning

#: Removed schedules that are looked at for one that comes back.
_MOST_REMOVED = 100


def terms_of(document: Mapping[str, Any]) -> list[Terms]:
    """The schedules of a canonical document, in their order."""
    return [
        Terms(
            cron=" ".join(str(entry["cron"]).split()),
            timezone=entry.get("timezone") or "UTC",
            params=canonical(entry.get("params") or {}),
            if_running=entry.get("if_running") or IfRunning.SKIP,
            catch_up=entry.get("catch_up") or CatchUp.LAST,
        )
        for entry in document.get("schedule") or ()
    ]


def follow_file(workflow: Workflow, document: str, *, owner: str, now: datetime) -> None:
    """Make the schedules of a workflow those of ``document``, inside the transaction that makes it current.

    1. One with the same times and parameters stays what it was, paused or not, also if its place in the file changed.
    2. Any other is changed at its place: it stays paused if it was, and goes on with its first time after now.
    3. One that had been removed and comes back is the old one again; what is left is made or removed.
    """
    require_ledger_transaction()
    wanted = dict(enumerate(terms_of(json.loads(document))))
    current = Schedule.objects.current().filter(workflow=workflow, of_file=True).order_by("position", "pk")
    if connection.features.has_select_for_update:  # whoever pauses one meanwhile comes before or after
        current = current.select_for_update()
    rows = list(current)
    for row in list(rows):
        place = _same(row, wanted)
        if place is not None:
            rows.remove(row)
            _follow(row, place, wanted.pop(place), owner=owner)
    for row in list(rows):
        if row.position in wanted:
            rows.remove(row)
            _follow(row, row.position, wanted.pop(row.position), owner=owner, now=now)
    for row in rows:
        Schedule.objects.change(schedule=row, removed_at=now, removed_by=owner[:200], next_at=None)
    if wanted:
        _bring_back(workflow, wanted, owner=owner, now=now)
    for place, terms in wanted.items():
        Schedule.objects.create(
            workflow=workflow,
            of_file=True,
            position=place,
            owner=owner[:200],
            created_at=now,
            handled_until=now,
            next_at=next_time(terms.cron, terms.timezone, now),
            **terms.columns(),
        )


def _bring_back(workflow: Workflow, wanted: dict[int, Terms], *, owner: str, now: datetime) -> None:
    removed = Schedule.objects.filter(workflow=workflow, of_file=True, removed_at__isnull=False)
    for row in removed.order_by("-removed_at", "position")[:_MOST_REMOVED]:
        place = _same(row, wanted)
        if place is not None:
            Schedule.objects.filter(pk=row.pk).update(removed_at=None, removed_by="")
            row.removed_at = None
            _follow(row, place, wanted.pop(place), owner=owner, now=now)


def _same(row: Schedule, wanted: Mapping[int, Terms]) -> int | None:
    """The place of the same times and parameters in the file, its own place before others."""
    mine = (row.cron, row.timezone, row.params)
    places = [place for place, terms in wanted.items() if (terms.cron, terms.timezone, terms.params) == mine]
    return row.position if row.position in places else next(iter(places), None)


def _follow(row: Schedule, place: int, terms: Terms, *, owner: str, now: datetime | None = None) -> None:
    """Let a row say what the file says; ``now`` begins its times anew."""
    columns = terms.columns() | {"position": place}
    if now is None and all(getattr(row, name) == value for name, value in columns.items()):
        return
    if now is not None:
        columns |= {"handled_until": now, "next_at": next_time(terms.cron, terms.timezone, now)}
    Schedule.objects.change(schedule=row, owner=owner[:200], **columns)
