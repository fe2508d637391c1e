"""Slots: places that runs (``concurrency``) and attempts (``limit``) share over all workers (PUB 4, 5; MON 10, 11).

A place in line is written with the run or the decision that needs it; places are given out under the group's row, in
a transaction of their own, and those who get one are woken in another. The sweep repeats both, so a crash in between
delays and loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, Min, OuterRef, Q

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger.listeners import announce
from workflows.ledger.records import record_event
from workflows.ledger.transactions import ledger_transaction
from workflows.models import LimitGroup, LimitStart, Plan, Run, Scope, Slot
from workflows.models.slot import line_up
from workflows.statuses import RunStatus, ScopePhase, SlotKind, WaitsFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A place that was given: whose it is. With ``due_ms`` the rate gives it at that moment, and not before."""

    run_id: int
    scope: str
    due_ms: int | None = None


def holds_slot(run_id: int) -> bool:
    """Whether a run has its concurrency slot."""
    return bool(Slot.objects.filter(run_id=run_id, kind=SlotKind.CONCURRENCY, number__isnull=False).exists())


def enter_line(run: Run, now_ms: int) -> None:
    """A run takes its place in the line of its concurrency key, in the open transaction."""
    line_up(kind=SlotKind.CONCURRENCY, name=run.concurrency_key, max=run.concurrency_max, run=run, entered_ms=now_ms)


def lock_group(kind: str, name: str) -> None:
    """Serialize everything about one group; writing the row locks it on both databases."""
    LimitGroup.objects.bulk_create([LimitGroup(kind=kind, name=name)], ignore_conflicts=True)
    LimitGroup.objects.filter(kind=kind, name=name).update(name=name)


def take_now(run: Run, now_ms: int) -> bool:
    """Take a concurrency slot in the open transaction if nobody stands before this run; otherwise stand in line.
    Whether the run has one now."""
    lock_group(SlotKind.CONCURRENCY, run.concurrency_key)
    if not Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY).exists():
        enter_line(run, now_ms)
    Slot.objects.give(kind=SlotKind.CONCURRENCY, name=run.concurrency_key, now_ms=now_ms)
    return holds_slot(run.pk)


def come_back(run: Run, now_ms: int) -> None:
    """A run that gave its slot back when it was blocked, and shall go on, takes one or stands in line (PUB.5)."""
    if run.status == RunStatus.BLOCKED and run.concurrency_max and not run.closing:
        take_now(run, now_ms)


def stand_in_line(run: Run, now_ms: int) -> None:
    """A run whose moment to start has come takes a slot or stands in line (PUB.11)."""
    if run.status == RunStatus.QUEUED and run.concurrency_max and not run.closing and (run.start_at_ms or 0) <= now_ms:
        take_now(run, now_ms)


@ledger_transaction
def stand_in_line_again(*, run_id: int) -> bool:
    """The same for a woken run that nobody brought back (a deadline has passed, a message came), and for one whose
    moment to start has come: for the sweep."""
    run = Run.objects.lock(run_id)
    if Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY).exists():
        return False
    now_ms = database_now_ms()
    come_back(run, now_ms)
    stand_in_line(run, now_ms)
    return bool(Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY).exists())


def without_place() -> list[int]:
    """Blocked runs that were woken, and runs whose moment to start has come, which neither have a slot nor stand in
    line for one; the latter in the order of their moments."""
    placed = Slot.objects.filter(run_id=OuterRef("pk"), kind=SlotKind.CONCURRENCY)
    now_ms = database_now_ms()
    woken = Q(status=RunStatus.BLOCKED, wake_at_ms__lte=now_ms)
    due = Q(status=RunStatus.QUEUED, start_at_ms__lte=now_ms)
    runs = Run.objects.filter(woken | due, ~Exists(placed), concurrency_max__gt=0, closing="")
    return list(runs.order_by("start_at_ms", "pk").values_list("pk", flat=True))


def newcomers() -> list[int]:
    """New runs in line whose plans say ``cancel_oldest``, as far as their text tells: whoever started one may have died
    before the oldest holder was asked to give way."""
    waiting = Slot.objects.filter(kind=SlotKind.CONCURRENCY, number=None, run__status=RunStatus.QUEUED)
    plans = Plan.objects.filter(pk__in=waiting.values("run__plan"), document__contains='"when_full":"cancel_oldest"')
    return list(waiting.filter(run__plan__in=plans).order_by("id").values_list("run", flat=True))


def holders_of(key: str) -> list[int]:
    """The runs that hold the slots of a concurrency key, the oldest first."""
    held = Slot.objects.filter(kind=SlotKind.CONCURRENCY, name=key, number__isnull=False)
    return list(held.order_by("given_ms", "id").values_list("run_id", flat=True))


@ledger_transaction
def give_places(*, kind: str, name: str, now_ms: int | None = None) -> list[Given]:
    """Give the free places of a group to those who wait, in order. The caller wakes them (``hear_of_slot``). ``now_ms``
    is the database clock unless a test passes it.

    1. The group's row is locked. Starts that no window reaches back to are forgotten.
    2. The line gets places until one of it does not fit.
    3. When only its rate keeps the first waiting, the moment of its turn is noted; it comes last in what is returned,
       if nobody has noted that moment before (``hear_of_turn``).
    """
    lock_group(kind, name)
    now_ms = database_now_ms() if now_ms is None else now_ms
    window_ms = LimitGroup.objects.values_list("window_ms", flat=True).get(kind=kind, name=name)
    if window_ms:
        LimitStart.objects.forget(name=name, window_ms=window_ms, now_ms=now_ms)
    giving = Slot.objects.give(kind=kind, name=name, now_ms=now_ms)
    told = [Given(run_id=slot.run_id, scope=slot.scope) for slot in giving.given]
    if giving.turn is not None and giving.is_new:
        told.append(Given(run_id=giving.turn.run_id, scope=giving.turn.scope, due_ms=giving.turn.due_ms))
    return told


@ledger_transaction
def hear_of_slot(*, run_id: int, kind: str, scope: str, now: datetime) -> bool:
    """Tell a run that it has the place it waits for; False when it does not wait any more. Idempotent: a run that was
    told and that nobody has driven since (it is held, or there is no worker) is not told again."""
    run = Run.objects.lock(run_id)
    if run.is_final:
        Slot.objects.filter(run=run).delete()
        return False
    if kind == SlotKind.LIMIT:
        waiting = Scope.objects.filter(run=run, path=scope, phase=ScopePhase.WAITING, waits_for=WaitsFor.SLOT).exists()
        if not waiting or _was_woken_since(run, scope):
            return False
    record_event(run, "slot_given", at=now, kind=str(kind), scope=scope)
    Run.objects.change(run, wake_at_ms=database_now_ms())
    announce(run_id, run.revision)
    return True


@ledger_transaction
def hear_of_turn(*, run_id: int, scope: str, due_ms: int, now: datetime) -> bool:
    """Tell a run when the rate lets it go on, and wake it then; False when it stands in this line no more."""
    run = Run.objects.lock(run_id)
    mine = Slot.objects.filter(run=run, kind=SlotKind.LIMIT, scope=scope, number=None, due_ms=due_ms)
    if run.is_final or not mine.exists():
        return False
    record_event(run, "slot_due", at=now, scope=scope, until_ms=due_ms)
    sooner = run.wake_at_ms is not None and run.wake_at_ms < due_ms
    Run.objects.change(run, wake_at_ms=run.wake_at_ms if sooner else due_ms)
    announce(run_id, run.revision)
    return True


def _was_woken_since(run: Run, scope: str) -> bool:
    """Whether a run was woken after it got its place, and has not parked again."""
    if run.wake_at_ms is None or run.wake_at_ms > database_now_ms():
        return False
    given = Slot.objects.filter(run=run, kind=SlotKind.LIMIT, scope=scope, given_ms__lte=run.wake_at_ms)
    return bool(given.exists())


def pass_on(*, kind: str, name: str, now: datetime, now_ms: int | None = None) -> list[Given]:
    """Give places and wake who got one: two transactions and more, called after a commit that freed a place, and when
    the moment of a rate has come. What was given."""
    told = give_places(kind=kind, name=name, now_ms=now_ms)
    for one in told:
        if one.due_ms is None:
            hear_of_slot(run_id=one.run_id, kind=kind, scope=one.scope, now=now)
        else:
            hear_of_turn(run_id=one.run_id, scope=one.scope, due_ms=one.due_ms, now=now)
    return [one for one in told if one.due_ms is None]


def refuse_when_full(run: Run, now_ms: int) -> None:
    """Take the run's slot again, or refuse (reopening, PUB.5)."""
    if run.concurrency_max and not take_now(run, now_ms):
        Slot.objects.filter(run=run, kind=SlotKind.CONCURRENCY).delete()
        raise full(run.concurrency_key, run.concurrency_max)


def full(key: str, max: int) -> Refusal:
    holders = holders_of(key)
    data: dict[str, Any] = {"key": key, "max": max, "holders": holders}
    return Refusal("run.concurrency_full", holder=f" (run {holders[0]})" if holders else "", **data)


def groups_with_room() -> list[tuple[str, str]]:
    """The groups in which the first of the line may find a place: what the sweep looks at."""
    heads = Slot.objects.in_line().values("kind", "name").annotate(head=Min("pk")).values_list("head", flat=True)
    first = Slot.objects.in_bulk(list(heads)).values()
    taken = Slot.objects.filter(number__isnull=False)
    now_ms = database_now_ms()
    return [
        (slot.kind, slot.name)
        for slot in sorted(first, key=lambda slot: int(slot.pk))
        if (slot.due_ms is None or slot.due_ms <= now_ms)
        and (not slot.max or taken.filter(kind=slot.kind, name=slot.name).count() < slot.max)
    ]


def unheard() -> list[tuple[str, int, str]]:
    """Limit slots that were given to scopes which still wait: (kind, run, scope), for the sweep."""
    given = Slot.objects.filter(kind=SlotKind.LIMIT, number__isnull=False)
    waiting = Scope.objects.filter(
        run_id=OuterRef("run_id"), path=OuterRef("scope"), phase=ScopePhase.WAITING, waits_for=WaitsFor.SLOT
    )
    return [(slot.kind, slot.run_id, slot.scope) for slot in given.filter(Exists(waiting))]
