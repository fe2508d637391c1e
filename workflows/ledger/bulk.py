"""Bulk actions: a set of runs that is fixed when the action is made, and one result for each of them (ABR.4).

The action itself is carried out outside, run by run, by whoever goes on with it. An item is taken before it is worked
on, for a while, so that two who go on at once never do the same one; what somebody took and did not finish is free
again after that while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.records import compact
from workflows.ledger.transactions import ledger_transaction
from workflows.models import BulkAction, BulkItem

#: What an item is while somebody works on it: this word and the moment until which it is theirs, in Unix milliseconds.
TAKEN = "taken"
_ITEMS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """A bulk action to make. ``runs`` in the order in which they are done."""

    request_id: str
    action: str
    criteria: Mapping[str, Any]
    reason: str
    actor: str
    runs: Sequence[int]
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An item that is ours until ``mark`` says otherwise."""

    bulk: int
    run: int
    mark: str


@ledger_transaction
def make_bulk(wish: Bulk) -> tuple[int, bool]:
    """Store a bulk action with its set; its number, and whether it is new.

    1. The same request made before is the action that is there, whatever the filter finds now.
    2. The set is written with it, and one audit entry.

    Loses with ``bulk.conflict``: the request id was used for another action.
    """
    action = BulkAction(
        request_id=wish.request_id,
        action=wish.action,
        criteria=compact(dict(wish.criteria)),
        reason=wish.reason,
        actor=wish.actor,
        created_at=wish.now,
        ended_at=None if wish.runs else wish.now,
    )
    BulkAction.objects.bulk_create([action], ignore_conflicts=True)
    stored = BulkAction.objects.get(request_id=wish.request_id)
    same = (stored.action, stored.criteria, stored.reason, stored.actor)
    if same != (action.action, action.criteria, action.reason, action.actor):
        raise Refusal("bulk.conflict", request_id=wish.request_id, bulk=stored.pk)
    if stored.created_at != wish.now or BulkItem.objects.filter(bulk=stored).exists():
        return stored.pk, False
    items = [BulkItem(bulk=stored, position=position, run=run) for position, run in enumerate(wish.runs, start=1)]
    BulkItem.objects.bulk_create(items, batch_size=_ITEMS_AT_ONCE)
    record_audit(
        actor=wish.actor,
        action=f"bulk.{wish.action}",
        at=wish.now,
        reason=wish.reason,
        data={"bulk": stored.pk, "runs": len(wish.runs), "criteria": dict(wish.criteria)},
    )
    return stored.pk, True


def _lock(bulk_id: int) -> BulkAction:
    """The action's row, locked. Raises ``bulk.not_found``."""
    rows = BulkAction.objects.filter(pk=bulk_id)
    if connection.features.has_select_for_update:
        rows = rows.select_for_update()
    action: BulkAction | None = rows.first()
    if action is None:
        raise Refusal("bulk.not_found", bulk=bulk_id)
    return action


@ledger_transaction
def take_item(*, bulk_id: int, now_ms: int, for_ms: int) -> Taken | None:
    """Take the next run of the set; None when nothing is left to take, or the action was aborted.

    1. Under the action's lock: the first item without a result, or one that somebody took and let expire.
    2. When every item has its result the action has ended.

    Loses with ``bulk.not_found``.
    """
    action = _lock(bulk_id)
    if action.aborted_at is not None or action.ended_at is not None:
        return None
    mark = f"{TAKEN} {now_ms + for_ms}"
    items = BulkItem.objects.filter(bulk=action).order_by("position")
    item = items.filter(result="").first()
    if item is None:
        taken = items.filter(result__startswith=TAKEN)
        item = next((one for one in taken if int(one.result.split()[1]) <= now_ms), None)
    if item is None:
        return None
    BulkItem.objects.filter(pk=item.pk).update(result=mark)
    return Taken(bulk=bulk_id, run=item.run, mark=mark)


@ledger_transaction
def finish_item(*, item: Taken, result: str, message: str, now: datetime) -> bool:
    """Write the result of an item that is still ours; False when somebody else has taken it since.

    The last result ends the action. Loses with ``bulk.not_found``.
    """
    action = _lock(item.bulk)
    mine = BulkItem.objects.filter(bulk=action, run=item.run, result=item.mark)
    if not mine.update(result=result, message=message[:2_000]):
        return False
    open_items = BulkItem.objects.filter(bulk=action, result="") | BulkItem.objects.filter(
        bulk=action, result__startswith=TAKEN
    )
    if action.ended_at is None and not open_items.exists():
        BulkAction.objects.filter(pk=action.pk).update(ended_at=now)
    return True


@ledger_transaction
def abort_bulk(*, bulk_id: int, actor: str, now: datetime) -> bool:
    """Let the runs that were not done yet stay as they are; False when the action has ended or was aborted.

    What somebody works on at this moment gets its result. Loses with ``bulk.not_found``.
    """
    action = _lock(bulk_id)
    if action.aborted_at is not None or action.ended_at is not None:
        return False
    BulkAction.objects.filter(pk=bulk_id).update(aborted_at=now, ended_at=now)
    record_audit(actor=actor, action="bulk.abort", at=now, data={"bulk": bulk_id})
    return True
