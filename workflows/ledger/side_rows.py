"""What a batch writes beside the rows of its run, last and never versioned: slots, offers and child runs."""

from __future__ import annotations

from workflows.clock import database_now_ms
from workflows.ledger.batch import Batch
from workflows.ledger.children import insert_child
from workflows.ledger.external import write_offers
from workflows.models import LimitGroup, LimitStart, Slot
from workflows.models.slot import line_up
from workflows.statuses import SlotKind


def has_side_rows(batch: Batch) -> bool:
    return bool(
        batch.children
        or batch.offers
        or batch.slots_wanted
        or batch.slots_freed
        or batch.slots_used
        or batch.frees_run_slot
    )


def write_side_rows(batch: Batch) -> None:
    """In the transaction of the batch, after its other rows. Raises what ``insert_child`` raises."""
    for child in batch.children:
        insert_child(batch.run_id, child)
    write_offers(batch)
    if batch.slots_freed:
        Slot.objects.filter(run_id=batch.run_id, kind=SlotKind.LIMIT, scope__in=batch.slots_freed).delete()
    for wish in batch.slots_wanted:
        line_up(
            kind=SlotKind.LIMIT,
            name=wish.group,
            max=wish.max,
            starts=wish.starts,
            per_ms=wish.per_ms,
            run_id=batch.run_id,
            scope=wish.scope,
            entered_ms=wish.entered_ms,
        )
    if batch.slots_used:
        note_starts(batch.run_id, batch.slots_used)
    if batch.frees_run_slot:
        Slot.objects.filter(run_id=batch.run_id).delete()


def note_starts(run_id: int, scopes: tuple[str, ...], now_ms: int | None = None) -> None:
    """Attempts are admitted on these places; groups with a rate remember when, by the database clock."""
    slots = Slot.objects.filter(run_id=run_id, kind=SlotKind.LIMIT, scope__in=scopes, number__isnull=False)
    rated = LimitGroup.objects.filter(kind=SlotKind.LIMIT, window_ms__gt=0, name__in=slots.values("name"))
    names = set(rated.values_list("name", flat=True))
    if not names:
        return
    used = list(slots.filter(name__in=names, started_ms=None).values_list("pk", "name"))
    started_ms = database_now_ms() if now_ms is None else now_ms
    Slot.objects.filter(pk__in=[pk for pk, _ in used]).update(started_ms=started_ms)
    LimitStart.objects.bulk_create([LimitStart(name=name, started_ms=started_ms) for _, name in used])
