"""Runs: start, cancel, hold and go on, retry, abandon. What a person may do to a run (docs/architecture.md)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from workflows.clock import unix_ms
from workflows.conf import conf
from workflows.definitions.compiler import compiled
from workflows.definitions.parameters import check_parameters, for_expressions
from workflows.engine.consequences import cancel_child, give_way, tell_of_abandoned
from workflows.errors import Problem, Refusal
from workflows.expressions import BadExpression
from workflows.jsonvalue import store, text_of
from workflows.ledger import abandoning, reopening
from workflows.ledger.children import live_below as live_below
from workflows.ledger.controlling import Accepted, send
from workflows.ledger.publishing import Concurrency, Publication, publish
from workflows.models import Lease, Run, Scope
from workflows.operations.access import require
from workflows.operations.children import definitions_below, frozen_children
from workflows.operations.people import Actor
from workflows.operations.readiness import frozen_functions, refuse_unless_ready
from workflows.operations.reasons import checked_reason
from workflows.operations.workflows import LIBRARY, Definition, store_definition
from workflows.statuses import ControlKind, RunStatus, ScopePhase, WaitsFor

MOST_TITLE = 500
MOST_KEY = 200
#: How far ahead a start may lie, and how long ago: people give minutes.
MOST_LATER, MOST_PAST = timedelta(days=366), timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A wish to start a run. ``given`` are the parameters by name; ``from_text`` names those that are text yet to be
    converted; ``origin`` is the surface it comes from; ``over_limit`` is an operator's reason to start beside a full
    concurrency key, without taking a slot; workers take runs of higher ``priority`` first; nobody drives the
    run before ``start_at``."""

    definition: Definition
    actor: Actor
    given: Mapping[str, Any] = field(default_factory=dict)
    from_text: Collection[str] = ()
    title: str = ""
    key: str | None = None
    origin: str = "cli"
    over_limit: str | None = None
    priority: int = 0
    start_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """``created`` False: the key named a run that was there. ``warnings``: W601, and those of the file. ``queued``: it
    waits in line for a slot of its concurrency key."""

    run_id: int
    created: bool
    warnings: tuple[Problem, ...]
    queued: bool = False


def start(wish: Start) -> Started:
    """Start a run; nothing is stored before everything is checked.

    1. The actor may start runs of this workflow, and beside a full concurrency key where that is wished.
    2. The plan must be one that this version and this server can run.
    3. The parameters are checked against the declarations.
    4. The version is stored if it is new, then the run is published; the audit says who did it.

    Raises ``access.denied``, ``plan.unsupported_kind``, ``plan.unsupported_feature``, ``plan.missing_code``,
    ``params.invalid``, ``input.invalid``, ``run.key_conflict``, ``run.concurrency_full``; and ``workflow.not_found``
    or ``definition.invalid`` for a child workflow.
    """
    plan = wish.definition.plan
    require(wish.actor, "start_run", workflow=plan.name)
    if wish.over_limit:
        require(wish.actor, "exceed_limit", workflow=plan.name, action="run.start_over_limit")
    _check_texts(wish)
    # whoever repeats a start with its key gets the run that is there, also when its moment has passed meanwhile
    start_at_ms = None if _is_repeated(wish) else _start_moment(wish.start_at, timezone.now())
    below = definitions_below(plan, viewer=wish.actor.user)
    plans = [plan, *(definition.plan for definition in below.values())]
    for one in plans:
        refuse_unless_ready(one)
    checked = check_parameters(plan.params, wish.given, from_text=wish.from_text)
    if checked.problems:
        raise Refusal("params.invalid", count=len(checked.problems), problems=checked.problems)
    definition = wish.definition
    is_library = definition.plan_id is None and not definition.private
    stored = store_definition(definition, created_by=LIBRARY if is_library else wish.actor.name)
    published = publish(
        Publication(
            plan_id=stored.plan_id,
            params=store(checked.values),
            frozen={"functions": frozen_functions(plans), "children": frozen_children(below)},
            first_step=plan.main.first,
            started_by=wish.actor.name,
            commit_id=uuid.uuid4().hex,
            now=timezone.now(),
            title=wish.title,
            origin=wish.origin,
            key=wish.key,
            priority=wish.priority,
            engine_version=conf().engine_version,
            concurrency=None if wish.over_limit else _concurrency(wish, checked.values),
            over_limit=wish.over_limit or "",
            start_at_ms=start_at_ms,
            audited_as=wish.actor.recorded,
        )
    )
    if published.queued:
        give_way(published.run_id, sender=wish.actor.recorded)
    return Started(
        run_id=published.run_id,
        created=published.created,
        warnings=(*definition.warnings, *checked.warnings),
        queued=published.queued,
    )


def _concurrency(wish: Start, values: Mapping[str, Any]) -> Concurrency | None:
    """The evaluated concurrency of the plan. Raises ``input.invalid`` when its key cannot be computed."""
    plan = wish.definition.plan
    if plan.concurrency is None:
        return None
    names = {
        "params": for_expressions(plan.params, values),
        "run": {"workflow": plan.name, "started_by": wish.actor.name},
    }
    try:
        key = text_of(plan.concurrency.key.evaluate(names))
    except (BadExpression, ValueError) as error:
        raise Refusal("input.invalid", reason=f"The concurrency key cannot be computed: {error}") from None
    return Concurrency(key=key, max=plan.concurrency.max, when_full=plan.concurrency.when_full)


def _is_repeated(wish: Start) -> bool:
    if wish.key is None or wish.start_at is None:
        return False
    known = Run.objects.filter(workflow__name=wish.definition.plan.name, idempotency_key=wish.key)
    return bool(known.exists())


def _start_moment(start_at: datetime | None, now: datetime) -> int | None:
    """None for a run that starts at once: also at a moment of the present minute. Raises ``input.invalid``."""
    if start_at is None:
        return None
    if start_at.tzinfo is None:
        raise Refusal("input.invalid", reason="The moment to start at needs a time zone.")
    if start_at <= now - MOST_PAST:
        raise Refusal("input.invalid", reason=f"{start_at:%Y-%m-%d %H:%M %Z} has passed; the run cannot start then.")
    if start_at > now + MOST_LATER:
        reason = f"A run can start at most {MOST_LATER.days} days from now."
        raise Refusal("input.invalid", reason=reason, advice="A schedule starts runs again and again.")
    return unix_ms(start_at) if start_at > now else None


def _check_texts(wish: Start) -> None:
    for what, text, limit in (("title", wish.title, MOST_TITLE), ("key", wish.key or "", MOST_KEY)):
        if len(text) > limit:
            raise Refusal("input.invalid", reason=f"The {what} has {len(text)} characters; the limit is {limit}.")
        if not text.isprintable():
            raise Refusal("input.invalid", reason=f"The {what} contains characters that cannot be shown.")
    if wish.key == "":
        raise Refusal("input.invalid", reason="The key is empty.")
    checked_reason(wish.over_limit or "")


def cancel(run_id: int, *, actor: Actor, reason: str = "", request_id: str | None = None) -> bool:
    """Ask a run to end as cancelled, with its child runs; True when that is new.

    A run that a worker drives is reached through its worker. Raises ``run.not_found``, ``access.denied``,
    ``run.terminal``, ``control.conflict``.
    """
    require(actor, "cancel_run", run=run_id)
    return _cancel(run_id, actor, checked_reason(reason), request_id, action="run.cancel")


def _cancel(run_id: int, actor: Actor, reason: str, request_id: str | None, *, action: str) -> bool:
    accepted = _send(run_id, ControlKind.CANCEL, actor, _because(reason), request_id, action=action)
    for child in live_below(run_id):
        cancel_child(child)
    return accepted.new


def _because(reason: str) -> dict[str, Any]:
    return {"reason": reason} if reason else {}


def _send(
    run_id: int,
    kind: ControlKind,
    actor: Actor,
    payload: Mapping[str, Any],
    request_id: str | None = None,
    *,
    action: str,
) -> Accepted:
    return send(
        run_id=run_id,
        kind=kind,
        payload=payload,
        request_id=request_id or uuid.uuid4().hex,
        sender=actor.recorded,
        now=timezone.now(),
        action=action,
    )


def abandon(run_id: int, *, actor: Actor, reason: str) -> abandoning.Abandoned:
    """End a run at once, whatever it is doing, with the child runs it waits for; ``resume`` undoes it.

    A reason is needed. Effects that run are stopped by their worker, which notices. Raises ``run.not_found``,
    ``access.denied``, ``input.invalid``, ``run.terminal``.
    """
    require(actor, "abandon_run", run=run_id)
    told = checked_reason(reason, needed_for="Abandoning a run")
    abandoned = abandoning.abandon(run_id=run_id, actor=actor.recorded, reason=told, now=timezone.now())
    tell_of_abandoned(abandoned)
    return abandoned


def pause(run_id: int, *, actor: Actor, reason: str = "", request_id: str | None = None) -> bool:
    """Hold a run: what runs settles, nothing new starts, deadlines of people go on. False when it is held already.

    Raises ``run.not_found``, ``access.denied``, ``run.terminal``, ``control.too_many``.
    """
    require(actor, "hold_run", run=run_id, action="run.pause")
    because = _because(checked_reason(reason))
    run = _run(run_id)
    if run.held and not run.is_final:
        return False
    return _send(run_id, ControlKind.PAUSE, actor, because, request_id, action="run.pause").new


def ends_without_steps(run_id: int) -> bool:
    """Whether a cancelled run can be brought to its end at once: nobody drives it, and no closing steps are to run."""
    run = _run(run_id)
    if run.is_final or run.engine_version != conf().engine_version or Lease.objects.is_live(run_id):
        return False
    try:
        return compiled(run.plan.hash, run.plan.document).closing is None
    except Refusal:  # a corrupt plan cannot be driven to its end
        return False


def status_of(run_id: int) -> str:
    """The status of a run and nothing else of it (CTL.6). Raises ``run.not_found``."""
    found: str | None = Run.objects.filter(pk=run_id).values_list("status", flat=True).first()
    if found is None:
        raise Refusal("run.not_found", run=run_id)
    return found


def is_driven(run_id: int) -> bool:
    """Whether a worker holds the run at this moment."""
    return Lease.objects.is_live(run_id)


def resume(run_id: int, *, actor: Actor, reason: str = "") -> str:
    """Let a run go on; the answer says how: ``released``, ``reopened`` or ``woken``.

    A failed run is opened again at the failed step, an abandoned one where it stood, together with the child runs that
    were abandoned with it; a hold is lifted; a blocked run is looked at again, for the case that the missing code is
    back. Raises ``run.not_found``, ``access.denied``, ``run.not_reopenable``, ``run.parent_abandoned``,
    ``run.concurrency_full``, ``lease.held``.
    """
    run = Run.objects.filter(pk=run_id).first()
    lifts_hold = run is not None and bool(run.held) and not run.is_final
    require(actor, "hold_run" if lifts_hold else "reopen_run", run=run_id, action="run.resume")
    told = checked_reason(reason)
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    if lifts_hold:
        _send(run_id, ControlKind.RESUME, actor, _because(told), action="run.resume")
        return "released"
    _reopen(run, actor, told, action="run.resume")
    return "woken" if run.status == RunStatus.BLOCKED else "reopened"


def retry(run_id: int, *, actor: Actor, reason: str = "") -> str:
    """Try again now: ends the back-off of waiting retries (``hurried``), or opens a failed run again (``reopened``).

    Raises ``run.not_found``, ``access.denied``, ``run.terminal``, ``run.nothing_to_retry``, ``run.not_reopenable``,
    ``run.concurrency_full``, ``lease.held``.
    """
    require(actor, "reopen_run", run=run_id, action="run.retry")
    told = checked_reason(reason)
    run = _run(run_id)
    if run.status in (RunStatus.FAILED, RunStatus.ABANDONED):
        _reopen(run, actor, told, action="run.retry")
        return "reopened"
    reopening.hurry(run_id=run_id, actor=actor.recorded, reason=told, now=timezone.now())
    return "hurried"


def skip(run_id: int, *, actor: Actor, reason: str, visit: int | None = None) -> int:
    """Let a step count as skipped: the failed one of a failed run, or one that waits. Returns its visit.

    A reason is needed, since it stays on the run for ever. Raises ``run.not_found``, ``access.denied``,
    ``input.invalid``, ``run.nothing_to_skip``, ``run.terminal``, ``lease.held``.
    """
    require(actor, "reopen_run", run=run_id, action="run.skip")
    told = checked_reason(reason, needed_for="Skipping a step")
    run = _run(run_id)
    number = step_to_skip(run, visit)
    if run.status == RunStatus.FAILED:
        _reopen(run, actor, told, action="run.skip", skip=True)
        return number
    _send(run_id, ControlKind.SKIP, actor, {"visit": number, "reason": told}, action="run.skip")
    return number


def step_to_skip(run: Run, visit: int | None) -> int:
    """The visit that a skip is about: the one that failed the run, or the one that waits; ``visit`` says which if
    there are several. Raises ``run.nothing_to_skip``."""
    if run.status == RunStatus.FAILED:
        failed = reopening.visit_to_skip(run)
        if failed is None or visit not in (None, failed):
            raise Refusal("run.nothing_to_skip", run=run.pk)
        return failed
    waiting = Scope.objects.filter(run=run, phase=ScopePhase.WAITING, visit__isnull=False)
    waiting = waiting.exclude(waits_for=WaitsFor.JOIN)
    visits = list(waiting.values_list("visit", flat=True)[:2])
    if visit is None and len(visits) == 1:
        visit = visits[0]
    if run.is_final or visit is None or not waiting.filter(visit=visit).exists():
        raise Refusal("run.nothing_to_skip", run=run.pk)
    return visit


def _reopen(run: Run, actor: Actor, reason: str, *, action: str, skip: bool = False) -> int | None:
    """Child runs that were abandoned with a run are opened before it, so that it never meets their end."""
    if run.status == RunStatus.ABANDONED:
        parent = abandoning.abandoned_parent(run)
        if parent is not None and action:
            raise Refusal("run.parent_abandoned", run=run.pk, parent=parent)
        for child in abandoning.went_along(run.pk):
            _reopen(_run(child), actor, reason, action="")
    now = timezone.now()
    return reopening.reopen(run_id=run.pk, actor=actor.recorded, reason=reason, now=now, skip=skip, action=action)


def _run(run_id: int) -> Run:
    run: Run | None = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return run
