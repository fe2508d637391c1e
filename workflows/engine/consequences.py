"""Consequences: what a commit means for other runs, in transactions of their own (docs/architecture.md).

Each is idempotent and repeated by the sweep, so an error or a death here delays and loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.utils import timezone

from workflows.engine.draft import Draft
from workflows.engine.memory import read_plan
from workflows.errors import Refusal
from workflows.ledger import abandoning, adopting, children, controlling, slots
from workflows.models import ControlMessage, Plan, Run, Slot
from workflows.statuses import ControlKind, RunStatus, SlotKind

logger = logging.getLogger(__name__)


def carry_out(run: Run, draft: Draft) -> None:
    """After a commit of ``run``: cancel children, give freed places to others, wake the parent."""
    try:
        for child in draft.child_cancels:
            cancel_child(child)
        groups = {wish.group for wish in draft.slots_wanted.values()} | set(draft.slots_freed.values())
        for group in sorted(groups | _rated(draft)):
            slots.pass_on(kind=SlotKind.LIMIT, name=group, now=timezone.now())
        if run.concurrency_max and (draft.ended or draft.state.status == RunStatus.BLOCKED):
            slots.pass_on(kind=SlotKind.CONCURRENCY, name=run.concurrency_key, now=timezone.now())
        if draft.ended and run.parent_run_id is not None:
            children.hear_of_child(child_id=run.pk, now=timezone.now())
            for fork in adopting.forks_waiting_for(run.pk):
                adopting.hear_of_adopted(run_id=fork, child_id=run.pk, now=timezone.now())
    except Refusal as refusal:
        logger.warning("A consequence of run %s is left to the sweep: %s", run.pk, refusal)


def _rated(draft: Draft) -> set[str]:
    """The groups in which attempts started under a rate: when the next one may start is known from now on."""
    return {limit["group"] for limit in draft.slots_used.values() if "starts" in limit}


def give_turns(groups: set[str]) -> int:
    """Give the places of groups whose moment has come; how many were given."""
    return sum(len(slots.pass_on(kind=SlotKind.LIMIT, name=group, now=timezone.now())) for group in sorted(groups))


def cancel_child(child_id: int) -> bool:
    """Cancel a child run once; one that has ended meanwhile is left alone. Whether that was new."""
    try:
        return controlling.send(
            run_id=child_id,
            kind=ControlKind.CANCEL,
            payload={},
            request_id="parent",
            sender="parent run",
            now=timezone.now(),
        ).new
    except Refusal as refusal:
        if refusal.code not in ("run.terminal", "run.not_found"):
            raise
        return False


def give_way(newer: int, *, sender: str = "") -> bool:
    """``cancel_oldest``: cancel the oldest holder of the slots that run ``newer`` stands in line for, with its child
    runs; whether that was new. The plan says so, no person; ``sender`` is who started the new run.

    Once for each new run, whoever does it: a starter may have died before. Nobody is cancelled for a run that has its
    slot or is not new any more, nor who got a slot after it came, nor who is being cancelled already.
    """
    run = Run.objects.select_related("plan").filter(pk=newer, status=RunStatus.QUEUED, closing="").first()
    place = Slot.objects.filter(run_id=newer, kind=SlotKind.CONCURRENCY, number=None).first()
    if run is None or place is None or not _cancels_oldest(run.plan):
        return False
    held = Slot.objects.filter(kind=SlotKind.CONCURRENCY, name=run.concurrency_key, number__isnull=False)
    oldest = held.select_related("run").order_by("given_ms", "id").first()
    if oldest is None or oldest.run.closing or (oldest.given_ms or 0) > place.entered_ms:
        return False
    request_id = f"newer:{newer}"
    if ControlMessage.objects.filter(run__workflow=run.workflow_id, request_id=request_id).exists():
        return False
    return _cancel_for_newer(oldest.run_id, request_id, sender or run.started_by)


def _cancels_oldest(plan: Plan) -> bool:
    concurrency = read_plan(plan).concurrency
    return concurrency is not None and concurrency.when_full == "cancel_oldest"


def _cancel_for_newer(run_id: int, request_id: str, sender: str) -> bool:
    try:
        accepted = controlling.send(
            run_id=run_id,
            kind=ControlKind.CANCEL,
            payload={"reason": "a newer run takes its slot"},
            request_id=request_id,
            sender=sender,
            now=timezone.now(),
        )
    except Refusal as refusal:
        if refusal.code != "run.terminal":
            raise
        return False
    for child in children.live_below(run_id):
        cancel_child(child)
    return accepted.new


def tell_of_abandoned(abandoned: abandoning.Abandoned) -> None:
    """After a run was abandoned: its child runs get it too, its places go to others, its parent is woken."""
    now = timezone.now()
    try:
        for child in Run.objects.live().filter(parent_run_id=abandoned.run_id, root_run__isnull=False):
            abandon_child(child.pk)
        for kind, name in abandoned.freed:
            slots.pass_on(kind=kind, name=name, now=now)
        children.hear_of_child(child_id=abandoned.run_id, now=now)
    except Refusal as refusal:
        logger.warning("A consequence of run %s is left to the sweep: %s", abandoned.run_id, refusal)


def abandon_child(child_id: int) -> bool:
    """Abandon a child run with its parent; one that has ended meanwhile is left alone. Whether that was new."""
    try:
        abandoned = abandoning.abandon(
            run_id=child_id,
            actor=abandoning.WITH_PARENT,
            reason="The run that started it was abandoned.",
            now=timezone.now(),
            audited=False,
        )
    except Refusal as refusal:
        if refusal.code not in ("run.terminal", "run.not_found"):
            raise
        return False
    tell_of_abandoned(abandoned)
    return True


def sweep(root_id: int | None = None) -> int:
    """Repeat what a crash may have left undone, for one tree of runs or for all; how many runs were told something.

    An error with one run is logged and the sweep goes on.
    """
    told = 0
    for child in children.unheard_children(root_id):
        told += _quietly(partial(children.hear_of_child, child_id=child, now=timezone.now()))
    for fork, child in adopting.unheard_adopted():
        told += _quietly(partial(adopting.hear_of_adopted, run_id=fork, child_id=child, now=timezone.now()))
    for child in children.orphans(root_id):
        told += _quietly(partial(cancel_child, child))
    for child in abandoning.left_behind(root_id):
        told += _quietly(partial(abandon_child, child))
    for run in slots.without_place():
        told += _quietly(partial(slots.stand_in_line_again, run_id=run))
    for run in slots.newcomers():
        told += _quietly(partial(give_way, run))
    for kind, name in slots.groups_with_room():
        told += _quietly(partial(slots.pass_on, kind=kind, name=name, now=timezone.now()))
    for kind, run, scope in slots.unheard():
        told += _quietly(partial(slots.hear_of_slot, run_id=run, kind=kind, scope=scope, now=timezone.now()))
    return told


def _quietly(work: Callable[[], object]) -> int:
    try:
        return int(bool(work()))
    except Exception:
        logger.exception("A part of the sweep failed; it goes on.")
        return 0
