"""Children: child runs appear with their parent's admission, and their end wakes it (promises CHD)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Exists, OuterRef

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger.listeners import announce
from workflows.ledger.publishing import Publication, insert_beginning, run_columns, store_payloads
from workflows.ledger.records import record_event
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Attempt, Event, Plan, Run
from workflows.statuses import FINAL_STATUSES, LIVE_STATUSES, AttemptStatus

DEEPEST = 8
MOST_CHILDREN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPublication:
    """A child run to insert with the admission of its parent's visit. ``invocation_key`` is the attempt's dispatch id.

    A detached child is nobody's: it is not cancelled with its parent, and its end wakes nobody.
    """

    visit: int
    invocation_key: str
    detached: bool
    publication: Publication


def insert_child(parent_id: int, child: ChildPublication) -> None:
    """Insert a child run in the transaction of its parent's driver, once per invocation key.

    Raises ``run.too_deep``, ``run.too_many_children``.
    """
    parent = Run.objects.get(pk=parent_id)
    if Run.objects.filter(parent_run=parent, invocation_key=child.invocation_key).exists():
        return
    if parent.depth + 1 > DEEPEST:
        raise Refusal("run.too_deep", run=parent_id, limit=DEEPEST)
    if child.visit > MOST_CHILDREN and Run.objects.filter(parent_run=parent).count() >= MOST_CHILDREN:
        raise Refusal("run.too_many_children", run=parent_id, limit=MOST_CHILDREN)
    plan = Plan.objects.select_related("workflow").get(pk=child.publication.plan_id)
    publication = replace(
        child.publication,
        extra={
            "parent_run": parent,
            "parent_visit": child.visit,
            "invocation_key": child.invocation_key,
            "root_run_id": None if child.detached else parent.root_run_id or parent.pk,
            "depth": parent.depth + 1,
        },
    )
    store_payloads([publication.params])
    run = Run.objects.create(**run_columns(plan, publication))
    insert_beginning(run, publication)
    announce(run.pk, 1)


@ledger_transaction
def hear_of_child(*, child_id: int, now: datetime) -> bool:
    """Tell a parent that its child has ended; False when it does not wait for it (any more). Idempotent."""
    child = Run.objects.filter(pk=child_id).first()
    if child is None or child.parent_run_id is None or not child.is_final:
        return False
    return tell_of_end(Run.objects.lock(child.parent_run_id), child, now)


def tell_of_end(parent: Run, child: Run, now: datetime) -> bool:
    """Wake a locked run that waits for a child which has ended, its own or one of its origin's; whether that is new."""
    waiting = Attempt.objects.filter(
        run=parent, visit=child.parent_visit, dispatch_id=child.invocation_key, status=AttemptStatus.PAUSED
    ).first()
    if parent.is_final or waiting is None:
        return False
    heard = Event.objects.filter(run=parent, type="child_ended", visit=waiting.visit, attempt=waiting.number).exists()
    if not heard:
        record_event(
            parent,
            "child_ended",
            at=now,
            visit=waiting.visit,
            attempt=waiting.number,
            child=child.pk,
            status=child.status,
        )
    again = int(not heard)
    Run.objects.change(parent, revisions=again, events=again, wake_at_ms=database_now_ms())
    announce(parent.pk, parent.revision)
    return not heard


def unheard_children(root_id: int | None = None) -> list[int]:
    """Child runs that have ended while their parent still waits for them: what the sweep repeats."""
    ended = Run.objects.filter(parent_run__isnull=False, root_run__isnull=False, status__in=sorted(FINAL_STATUSES))
    ended = ended.filter(is_awaited(), parent_run__status__in=sorted(LIVE_STATUSES))
    if root_id is not None:
        ended = ended.filter(root_run_id=root_id)
    return list(ended.order_by("pk").values_list("pk", flat=True))


def live_below(run_id: int) -> list[int]:
    """The live child runs of a run at any depth, detached ones left out."""
    found, level = [], [run_id]
    while level:
        children = Run.objects.live().filter(parent_run__in=level, root_run__isnull=False)
        level = list(children.values_list("pk", flat=True))
        found.extend(level)
    return found


def orphans(root_id: int | None = None) -> list[int]:
    """Live child runs whose parent does not wait for them any more (it ended, or timed out): to be cancelled. Those of
    an abandoned parent are abandoned with it (``abandoning.left_behind``)."""
    live = Run.objects.live().filter(~is_awaited(), root_run__isnull=False, closing="")
    if root_id is not None:
        live = live.filter(root_run_id=root_id)
    return list(live.order_by("pk").values_list("pk", flat=True))


def is_awaited() -> Exists:
    """Whether the attempt that published a child run still waits for it."""
    return Exists(
        Attempt.objects.filter(
            run_id=OuterRef("parent_run_id"),
            visit=OuterRef("parent_visit"),
            dispatch_id=OuterRef("invocation_key"),
            status=AttemptStatus.PAUSED,
        )
    )
