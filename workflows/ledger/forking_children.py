"""Child runs that were awaited at the cut, forked with their parent (promise FORK.6)."""

from __future__ import annotations

from datetime import datetime

from workflows.ledger.forking_start import begin_at_cut, insert_fork, number_first_revision
from workflows.ledger.past import Past
from workflows.ledger.records import compact
from workflows.ledger.reopening import refuse_when_driven
from workflows.models import Attempt, Event, Run
from workflows.statuses import AttemptStatus


def awaited_children(run_id: int, revision: int) -> list[Run]:
    """The child runs that a run waited for at a revision, in the order of their numbers."""
    waiting = Attempt.objects.filter(run_id=run_id, revision_created__lte=revision).exclude(
        revision_settled__lte=revision
    )
    keys = list(waiting.values_list("dispatch_id", flat=True))
    children = Run.objects.select_related("workflow").filter(parent_run_id__in=lineage(run_id), invocation_key__in=keys)
    return list(children.order_by("pk"))


def lineage(run_id: int) -> list[int]:
    """A run and those it was forked from, the nearest first; a pruned one is named and leads no further."""
    found = [run_id]
    while True:
        origin = Run.objects.filter(pk=found[-1]).values_list("fork_of_id", flat=True).first()
        if origin is None or origin in found:
            return found
        found.append(origin)


def fork_children(run: Run, origin_id: int, revision: int, *, moment: datetime, actor: str, now: datetime) -> list[int]:
    """Fork the awaited children of a fork's origin as they were at ``moment``, and theirs; the new runs.

    A child that had ended by then is left to be taken. Loses with ``lease.held`` when a worker drives one of them.
    """
    forked: list[int] = []
    for child in awaited_children(origin_id, revision):
        attempt = Attempt.objects.filter(run=run, dispatch_id=child.invocation_key, status=AttemptStatus.PAUSED).first()
        cut = _revision_at(child, moment)
        if attempt is None or cut is None:
            continue
        refuse_when_driven(child)
        copy = insert_fork(
            child,
            cut,
            now=now,
            came_from="child",
            parent_run=run,
            parent_visit=attempt.visit,
            invocation_key=child.invocation_key,
            root_run_id=None if child.root_run_id is None else run.root_run_id or run.pk,
            depth=run.depth + 1,
            fork_request=compact({"cut": {"revision": cut, "visit": None}, "child": "fork", "by": actor}),
        )
        past = begin_at_cut(copy, child, retries={}, child="fork", now=now)
        number_first_revision(copy, past, actor=actor, now=now)
        forked += [copy.pk, *fork_children(copy, child.pk, cut, moment=moment, actor=actor, now=now)]
    return forked


def _revision_at(child: Run, moment: datetime) -> int | None:
    """The last revision of a child that was there at a moment; None when it had ended, or was over at once."""
    events = Event.objects.filter(run=child, at__lte=moment).order_by("-sequence")
    last = events.values_list("revision", flat=True).first() or 1
    past = Past(child.pk, last, wanted=lambda table, key: table == "run")
    return None if past.state["ended_at"] else last
