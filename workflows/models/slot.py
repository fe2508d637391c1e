"""Slot and LimitGroup: places that runs or attempts share, with the line of those who wait (PUB 4, 5; MON 10)."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from workflows.models.columns import millis_column
from workflows.models.guard import GuardedManager, GuardedQuerySet, require_ledger_transaction
from workflows.statuses import SlotKind


class LimitGroup(models.Model):
    """One row per concurrency key or limit group: the lock under which places are given out."""

    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    name = models.TextField()

    objects = GuardedManager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="limitgroup_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SlotManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of slots. Callers hold the group's row."""

    def give(self, *, kind: str, name: str, now_ms: int) -> list[Slot]:
        """Give free places to those who wait, first come first served; the slots that were given.

        Each entry names the ``max`` it accepts; the first one that does not fit keeps the others waiting.
        """
        require_ledger_transaction()
        taken = set(self.filter(kind=kind, name=name, number__isnull=False).values_list("number", flat=True))
        given: list[Slot] = []
        for slot in self.filter(kind=kind, name=name, number=None).order_by("id"):
            free = next((number for number in range(1, slot.max + 1) if number not in taken), None)
            if free is None or len(taken) >= slot.max:
                break
            if self.filter(pk=slot.pk, number=None).update(number=free, given_ms=now_ms):
                slot.number = free
                taken.add(free)
                given.append(slot)
        return given


class Slot(models.Model):
    """A place, or a place in line while ``number`` is None.

    A *concurrency* slot belongs to a run (``scope`` is ""); a *limit* slot to the attempt that runs in a scope.
    Never versioned: who holds what is a fact of the moment.
    """

    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    name = models.TextField()
    number = models.PositiveIntegerField(null=True)
    max = models.PositiveIntegerField()
    run = models.ForeignKey("workflows.Run", on_delete=models.CASCADE, db_constraint=False, related_name="slots")
    scope = models.TextField(default="", blank=True)
    entered_ms = millis_column()
    given_ms = millis_column(null=True)

    objects = SlotManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name", "number"], name="slot_number_once", condition=Q(number__isnull=False)
            ),
            models.UniqueConstraint(fields=["run", "kind", "scope"], name="slot_holder_once"),
        ]
        indexes = [models.Index(fields=["kind", "name"], name="slot_waiting", condition=Q(number__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} #{self.number or 'waiting'}: run {self.run_id}"


def line_up(*, kind: str, name: str, **columns: Any) -> Slot:
    """Join the line of a group, in the open ledger transaction."""
    LimitGroup.objects.bulk_create([LimitGroup(kind=kind, name=name)], ignore_conflicts=True)
    slot: Slot = Slot.objects.create(kind=kind, name=name, **columns)
    return slot
