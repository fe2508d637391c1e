"""Slot and LimitGroup: places that runs or attempts share, with the line of those who wait (PUB 4, 5; MON 10).

Of a group with a rate LimitStart remembers when attempts started, as long as the longest window of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import models
from django.db.models import Q

from workflows.models.columns import millis_column
from workflows.models.guard import GuardedManager, GuardedQuerySet, require_ledger_transaction
from workflows.statuses import SlotKind

#: How many of a line are read at a time.
LINE_READ = 20


class LimitGroup(models.Model):
    """One row per concurrency key or limit group: the lock under which places are given out."""

    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    name = models.TextField()
    window_ms = millis_column(default=0, db_default=0)

    objects = GuardedManager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="limitgroup_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class LimitStartManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """Starts are appended when an attempt is admitted, and forgotten when no window reaches back to them."""

    def opens_ms(self, *, name: str, starts: int, per_ms: int, pending: int) -> int | None:
        """The moment from which one more may start; 0: at once. None: ``pending`` places that are given and not
        started fill the window, so it depends on when they start."""
        if pending >= starts:
            return None
        latest = self.filter(name=name).order_by("-started_ms").values_list("started_ms", flat=True)
        oldest: int | None = latest[starts - pending - 1 : starts - pending].first()
        return 0 if oldest is None else oldest + per_ms

    def forget(self, *, name: str, window_ms: int, now_ms: int) -> None:
        """Drop what no window reaches back to."""
        self.filter(name=name, started_ms__lte=now_ms - window_ms).delete()


class LimitStart(models.Model):
    """One attempt of a group with a rate was admitted at this moment of the database clock."""

    name = models.TextField()
    started_ms = millis_column()

    objects = LimitStartManager()

    class Meta:
        indexes = [models.Index(fields=["name", "-started_ms"], name="limitstart_latest")]

    def __str__(self) -> str:
        return f"{self.name} at {self.started_ms}"


@dataclass(slots=True, kw_only=True)
class Giving:
    """``given``: the slots that were given, in order. ``turn``: the first of the line, when only the rate keeps it
    waiting, with the moment (``due_ms``) at which it may go on; ``is_new``: nobody knew this moment before."""

    given: list[Slot] = field(default_factory=list)
    turn: Slot | None = None
    is_new: bool = False


class SlotManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of slots. Callers hold the group's row."""

    def give(self, *, kind: str, name: str, now_ms: int) -> Giving:
        """Give free places to those who wait, first come first served.

        Each entry names the ``max`` and the rate it accepts; the first one that does not fit keeps the others waiting.
        Who stands in line for a limit and is held by an operator is passed over, and comes first again once it is not.
        """
        require_ledger_transaction()
        giving = Giving()
        # before the starts are read: a place that is used meanwhile is then counted twice, and never not at all
        held = list(self.filter(kind=kind, name=name, number__isnull=False).values_list("number", "started_ms"))
        taken, pending = {number for number, _ in held}, sum(1 for _, started in held if started is None)
        for slot in self._line(kind, name):
            if slot.max and len(taken) >= slot.max:
                break
            if slot.starts is not None and not self._may_start(slot, pending, now_ms):
                self._tell_turn(slot, giving, now_ms)
                break
            free = next(number for number in range(1, len(taken) + 2) if number not in taken)
            if self.filter(pk=slot.pk, number=None).update(number=free, given_ms=now_ms):
                slot.number = free
                taken.add(free)
                pending += 1
                giving.given.append(slot)
        return giving

    def in_line(self) -> models.QuerySet[Slot]:
        """Who waits and would use a place."""
        waiting: models.QuerySet[Slot] = self.filter(number=None)
        return waiting.exclude(Q(kind=SlotKind.LIMIT) & ~Q(run__held=""))

    def _line(self, kind: str, name: str) -> Iterator[Slot]:
        """Those who wait in a group, in order, read a few at a time: a line may be long, and few of it get a place."""
        last = 0
        while rows := list(self.in_line().filter(kind=kind, name=name, pk__gt=last).order_by("pk")[:LINE_READ]):
            yield from rows
            last = rows[-1].pk

    @staticmethod
    def _may_start(slot: Slot, pending: int, now_ms: int) -> bool:
        """Whether the rate of a slot lets one more start; ``due_ms`` says from when on."""
        assert slot.starts is not None
        assert slot.per_ms is not None
        slot.turn_ms = LimitStart.objects.opens_ms(
            name=slot.name, starts=slot.starts, per_ms=slot.per_ms, pending=pending
        )
        return slot.turn_ms is not None and slot.turn_ms <= now_ms

    def _tell_turn(self, slot: Slot, giving: Giving, now_ms: int) -> None:
        giving.is_new = slot.due_ms != slot.turn_ms and slot.turn_ms is not None
        if slot.due_ms != slot.turn_ms:
            self.filter(pk=slot.pk).update(due_ms=slot.turn_ms)
            slot.due_ms = slot.turn_ms
        giving.turn = slot if slot.due_ms is not None else None


class Slot(models.Model):
    """A place, or a place in line while ``number`` is None.

    A *concurrency* slot belongs to a run (``scope`` is ""); a *limit* slot to the attempt that runs in a scope.
    ``max`` 0: any number of places; ``starts`` and ``per_ms``: the rate it waits for, if there is one; ``due_ms``: when
    the rate lets it go on, as far as that is known. ``started_ms``: its attempt was admitted then.
    Never versioned: who holds what is a fact of the moment.
    """

    #: What its rate says at this moment; ``due_ms`` is what was told.
    turn_ms: int | None = None

    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    name = models.TextField()
    number = models.PositiveIntegerField(null=True)
    max = models.PositiveIntegerField()
    starts = models.PositiveIntegerField(null=True)
    per_ms = millis_column(null=True)
    run = models.ForeignKey("workflows.Run", on_delete=models.CASCADE, db_constraint=False, related_name="slots")
    scope = models.TextField(default="", blank=True)
    entered_ms = millis_column()
    given_ms = millis_column(null=True)
    due_ms = millis_column(null=True)
    started_ms = millis_column(null=True)

    objects = SlotManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name", "number"], name="slot_number_once", condition=Q(number__isnull=False)
            ),
            models.UniqueConstraint(fields=["run", "kind", "scope"], name="slot_holder_once"),
        ]
        indexes = [models.Index(fields=["kind", "name", "id"], name="slot_in_line", condition=Q(number__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} #{self.number or 'waiting'}: run {self.run_id}"


def line_up(*, kind: str, name: str, **columns: Any) -> Slot:
    """Join the line of a group, in the open ledger transaction. From the first rate on its starts are remembered."""
    LimitGroup.objects.bulk_create([LimitGroup(kind=kind, name=name)], ignore_conflicts=True)
    if per_ms := columns.get("per_ms"):
        LimitGroup.objects.filter(kind=kind, name=name, window_ms__lt=per_ms).update(window_ms=per_ms)
    slot: Slot = Slot.objects.create(kind=kind, name=name, **columns)
    return slot
