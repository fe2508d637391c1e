"""What a batch writes beside the rows of its run, last and never versioned: slots and child runs."""

from __future__ import annotations

from workflows.ledger.batch import Batch
from workflows.ledger.children import insert_child
from workflows.models import Slot
from workflows.models.slot import line_up
from workflows.statuses import SlotKind


def has_side_rows(batch: Batch) -> bool:
    return bool(batch.children or batch.slots_wanted or batch.slots_freed or batch.frees_run_slot)


def write_side_rows(batch: Batch) -> None:
    """In the transaction of the batch, after its other rows. Raises what ``insert_child`` raises."""
    for child in batch.children:
        insert_child(batch.run_id, child)
    if batch.slots_freed:
        Slot.objects.filter(run_id=batch.run_id, kind=SlotKind.LIMIT, scope__in=batch.slots_freed).delete()
    for wish in batch.slots_wanted:
        line_up(
            kind=SlotKind.LIMIT,
            name=wish.group,
            max=wish.max,
            run_id=batch.run_id,
            scope=wish.scope,
            entered_ms=wish.entered_ms,
        )
    if batch.frees_run_slot:
        Slot.objects.filter(run_id=batch.run_id).delete()
