"""Bulk actions: the same to many runs, with a look at them first, one result for each, and an end at any time (ABR.4).

``preview`` shows what a filter finds, ``create`` fixes the set, ``carry_on`` does a part of it: whoever calls it, from
a page, a command or a worker, goes on where the last one stopped, and two at once never do the same run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, Q
from django.utils import timezone

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger import bulk as ledger
from workflows.models import BulkAction, BulkItem, Run, RunFilter
from workflows.operations import runs
from workflows.operations.access import may, require
from workflows.operations.people import Actor
from workflows.operations.reasons import checked_reason
from workflows.statuses import LIVE_STATUSES, RunStatus

#: Runs that one action is about at most.
MOST_RUNS = 10_000
#: How long a run that somebody works on is theirs, in milliseconds. One action takes far less.
TAKEN_MS = 120_000
DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Action:
    """``permission`` is what it needs, ``statuses`` those of runs that it can do something to; ``carry_out`` returns a
    word for what became of the run."""

    permission: str
    statuses: frozenset[str]
    carry_out: Callable[[int, Actor, str], str]
    needs_reason: bool = False


def _cancel(run: int, actor: Actor, reason: str) -> str:
    return "accepted" if runs.cancel(run, actor=actor, reason=reason) else "was cancelled already"


def _abandon(run: int, actor: Actor, reason: str) -> str:
    runs.abandon(run, actor=actor, reason=reason)
    return "abandoned"


def _resume(run: int, actor: Actor, reason: str) -> str:
    return runs.resume(run, actor=actor, reason=reason)


def _retry(run: int, actor: Actor, reason: str) -> str:
    return runs.retry(run, actor=actor, reason=reason)


def _pause(run: int, actor: Actor, reason: str) -> str:
    return "accepted" if runs.pause(run, actor=actor, reason=reason) else "was held already"


_LIVE = frozenset(map(str, LIVE_STATUSES))
_STOPPED = frozenset({str(RunStatus.FAILED), str(RunStatus.ABANDONED)})
ACTIONS: Mapping[str, _Action] = {
    "cancel": _Action(permission="cancel_run", statuses=_LIVE, carry_out=_cancel),
    "abandon": _Action(permission="abandon_run", statuses=_LIVE, carry_out=_abandon, needs_reason=True),
    "resume": _Action(permission="reopen_run", statuses=_LIVE | _STOPPED, carry_out=_resume),
    "retry": _Action(permission="reopen_run", statuses=_LIVE | _STOPPED, carry_out=_retry),
    "pause": _Action(permission="hold_run", statuses=_LIVE, carry_out=_pause),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a filter finds: how many runs, how many of them the action can do something to, and what they are.

    ``spend`` is what going on with them may cost at most; None: nobody knows. ``too_many``: they are more than one
    action takes.
    """

    runs: int
    can_change: int
    by_status: Mapping[str, int]
    by_workflow: Mapping[str, int]
    spend: str | None = None
    too_many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a bulk action is. ``is_over``: nothing more will be done."""

    bulk: int
    action: str
    reason: str
    actor: str
    criteria: Mapping[str, Any]
    total: int
    done: int
    refused: int
    left: int
    is_aborted: bool
    is_over: bool


def preview(action: str, chosen: RunFilter, *, actor: Actor) -> Preview:
    """What the action would be about; three queries, nothing is written.

    Raises ``input.invalid`` (no such action), ``bulk.empty_filter``, ``access.denied``.
    """
    what = _allowed(action, chosen, actor)
    found = _visible(chosen, actor)
    by_status = _counts(found, "status")
    return Preview(
        runs=sum(by_status.values()),
        can_change=sum(count for status, count in by_status.items() if status in what.statuses),
        by_status=by_status,
        by_workflow=_counts(found, "workflow__name"),
        too_many=sum(by_status.values()) > MOST_RUNS,
    )


def _counts(found: Any, column: str) -> dict[str, int]:
    return dict(found.order_by(column).values_list(column).annotate(count=Count("pk")))


def _allowed(action: str, chosen: RunFilter, actor: Actor) -> _Action:
    what = ACTIONS.get(action)
    if what is None:
        raise Refusal("input.invalid", reason=f'"{action[:40]}" is no bulk action; they are {", ".join(ACTIONS)}.')
    # an operator who may only lift holds may resume those runs: each of them is asked again
    if not (action == "resume" and may(actor, "hold_run")):
        require(actor, what.permission, action=f"bulk.{action}")
    if chosen.is_empty:
        raise Refusal("bulk.empty_filter")
    return what


def _visible(chosen: RunFilter, actor: Actor) -> Any:
    found = Run.objects.all() if actor.user is None else Run.objects.filter(pk__in=_seen(actor))
    return chosen.rows(found)


def _seen(actor: Actor) -> Any:
    """The runs a user may look at, as a subquery: the relation to groups would count runs twice."""
    if not may(actor, "view_run"):
        return Run.objects.none().values("pk")
    return Run.objects.visible_to(actor.user).values("pk")


def create(action: str, chosen: RunFilter, *, actor: Actor, reason: str = "", request_id: str) -> int:
    """Fix the set of runs and store the action; its number. ``request_id`` makes a second click find the first.

    The set is what the filter finds now, with the newest run first; runs that match later are not in it. Nothing is
    done yet: ``carry_on`` does. Raises what ``preview`` raises, ``input.invalid`` (a reason is needed),
    ``bulk.too_many``, ``bulk.conflict``.
    """
    what = _allowed(action, chosen, actor)
    told = checked_reason(reason, needed_for=f"To {action} runs" if what.needs_reason else "")
    if not 0 < len(request_id) <= 200:
        raise Refusal("input.invalid", reason="The request id is empty or longer than 200 characters.")
    stored = BulkAction.objects.filter(request_id=request_id).first()
    numbers: list[int] = []
    if stored is None:
        numbers = list(_visible(chosen, actor).order_by("-pk").values_list("pk", flat=True)[: MOST_RUNS + 1])
    if len(numbers) > MOST_RUNS:
        raise Refusal("bulk.too_many", limit=MOST_RUNS)
    number, _ = ledger.make_bulk(
        ledger.Bulk(
            request_id=request_id,
            action=action,
            criteria=chosen.as_json(),
            reason=told,
            actor=actor.recorded,
            runs=numbers,
            now=timezone.now(),
        )
    )
    return number


def carry_on(bulk_id: int, *, seconds: float = 5.0, stopping: Callable[[], bool] = lambda: False) -> Progress:
    """Do runs of the set, one by one, for about so many seconds; how far it is then.

    Each run is done on behalf of whoever made the action, with the permissions that they have now; a refusal is its
    result. Runs that somebody else works on are left to them. Raises ``bulk.not_found``.
    """
    action = _bulk(bulk_id)
    what, actor = ACTIONS[action.action], _acting(action.actor)
    deadline = time.monotonic() + seconds
    while not stopping():
        item = ledger.take_item(bulk_id=bulk_id, now_ms=database_now_ms(), for_ms=TAKEN_MS)
        if item is None:
            break
        result, message = _do(what, item.run, actor, action.reason)
        ledger.finish_item(item=item, result=result, message=message, now=timezone.now())
        if time.monotonic() >= deadline:
            break
    return progress(bulk_id)


def _do(what: _Action, run: int, actor: Actor | None, reason: str) -> tuple[str, str]:
    """The result of one run. A busy store is no result: it passes, and the run is tried again later."""
    if actor is None:
        return "user.not_found", "Whoever made this bulk action has no active account any more."
    try:
        return DONE, what.carry_out(run, actor, reason)
    except Refusal as refusal:
        if refusal.code.startswith("store."):
            raise
        return refusal.code, refusal.message


def _acting(recorded: str) -> Actor | None:
    """Whoever made an action, by how they are recorded: the operator's shell, or a user; None if they are gone."""
    if recorded.startswith("shell:"):
        return Actor(name=recorded.rpartition(" as ")[2], recorded=recorded)
    users = get_user_model()._default_manager.filter(is_active=True)
    user = users.filter(username=recorded).first() or users.filter(username=recorded.rpartition(" (")[0]).first()
    return None if user is None else Actor(name=user.get_username(), recorded=recorded, user=user)


def _bulk(bulk_id: int) -> BulkAction:
    action: BulkAction | None = BulkAction.objects.filter(pk=bulk_id).first()
    if action is None:
        raise Refusal("bulk.not_found", bulk=bulk_id)
    return action


def abort(bulk_id: int, *, actor: Actor) -> bool:
    """Leave the runs that were not done yet as they are; False when it is over already.

    Whoever may do the action may abort it. Raises ``bulk.not_found``, ``access.denied``.
    """
    action = _bulk(bulk_id)
    require(actor, ACTIONS[action.action].permission, action="bulk.abort")
    return ledger.abort_bulk(bulk_id=bulk_id, actor=actor.recorded, now=timezone.now())


def progress(bulk_id: int) -> Progress:
    """How far a bulk action is; two queries. Raises ``bulk.not_found``."""
    action = _bulk(bulk_id)
    is_left = Q(result="") | Q(result__startswith=ledger.TAKEN)
    counts = BulkItem.objects.filter(bulk=action).aggregate(
        total=Count("pk"), done=Count("pk", filter=Q(result=DONE)), left=Count("pk", filter=is_left)
    )
    return Progress(
        bulk=action.pk,
        action=action.action,
        reason=action.reason,
        actor=action.actor,
        criteria=json.loads(action.criteria),
        total=counts["total"],
        done=counts["done"],
        refused=counts["total"] - counts["done"] - counts["left"],
        left=counts["left"],
        is_aborted=action.aborted_at is not None,
        is_over=action.ended_at is not None,
    )


def results(bulk_id: int, *, actor: Actor, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
    """The runs of the set in their order, with what became of each: ``{position, run, result, message}``.

    ``result`` is empty while it was not their turn, ``done``, or the code of the refusal. Runs that the actor may not
    see are left out. Raises ``bulk.not_found``.
    """
    items = BulkItem.objects.filter(bulk=_bulk(bulk_id), position__gt=after).order_by("position")
    if actor.user is not None:
        items = items.filter(run__in=_seen(actor))
    rows = items.values("position", "run", "result", "message")[:limit]
    return [{**row, "result": "" if row["result"].startswith(ledger.TAKEN) else row["result"]} for row in rows]


def unfinished() -> list[int]:
    """Bulk actions that somebody has to go on with: for a worker's sweep, the oldest first."""
    return list(BulkAction.objects.filter(ended_at=None).order_by("pk").values_list("pk", flat=True))
