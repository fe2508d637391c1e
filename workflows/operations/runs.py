"""Runs: start, cancel, hold and go on, retry. What a person may do to a run (DESIGN §8)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from workflows.conf import conf
from workflows.definitions.compiler import compiled
from workflows.definitions.parameters import check_parameters
from workflows.errors import Problem, Refusal
from workflows.jsonvalue import store
from workflows.ledger import reopening
from workflows.ledger.controlling import send
from workflows.ledger.publishing import Publication, publish
from workflows.models import Lease, Run
from workflows.operations.people import Actor
from workflows.operations.readiness import frozen_beside, refuse_unless_ready
from workflows.operations.workflows import LIBRARY, Definition, store_definition
from workflows.statuses import ControlKind, RunStatus

MOST_TITLE = 500
MOST_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A wish to start a run. ``given`` are the parameters by name; ``from_text`` names those that are text yet to be
    converted; ``origin`` is the surface it comes from."""

    definition: Definition
    actor: Actor
    given: Mapping[str, Any] = field(default_factory=dict)
    from_text: Collection[str] = ()
    title: str = ""
    key: str | None = None
    origin: str = "cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """``created`` False: the key named a run that was there. ``warnings``: W601, and those of the file."""

    run_id: int
    created: bool
    warnings: tuple[Problem, ...]


def start(wish: Start) -> Started:
    """Start a run; nothing is stored before everything is checked.

    1. The plan must be one that this version and this server can run.
    2. The parameters are checked against the declarations.
    3. The version is stored if it is new, then the run is published.

    Raises ``plan.unsupported_kind``, ``plan.unsupported_feature``, ``plan.missing_code``, ``params.invalid``,
    ``input.invalid``, ``run.key_conflict``.
    """
    plan = wish.definition.plan
    _check_texts(wish)
    refuse_unless_ready(plan)
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
            frozen=frozen_beside(plan),
            first_step=plan.main.first,
            started_by=wish.actor.name,
            commit_id=uuid.uuid4().hex,
            now=timezone.now(),
            title=wish.title,
            origin=wish.origin,
            key=wish.key,
            engine_version=conf().engine_version,
        )
    )
    return Started(
        run_id=published.run_id, created=published.created, warnings=(*definition.warnings, *checked.warnings)
    )


def _check_texts(wish: Start) -> None:
    for what, text, limit in (("title", wish.title, MOST_TITLE), ("key", wish.key or "", MOST_KEY)):
        if len(text) > limit:
            raise Refusal("input.invalid", reason=f"The {what} has {len(text)} characters; the limit is {limit}.")
        if not text.isprintable():
            raise Refusal("input.invalid", reason=f"The {what} contains characters that cannot be shown.")
    if wish.key == "":
        raise Refusal("input.invalid", reason="The key is empty.")


def cancel(run_id: int, *, actor: Actor, reason: str = "", request_id: str | None = None) -> bool:
    """Ask a run to end as cancelled; True when that is new.

    A run that a worker drives is reached through its worker. Raises ``run.not_found``, ``run.terminal``.
    """
    accepted = send(
        run_id=run_id,
        kind=ControlKind.CANCEL,
        payload={"reason": reason} if reason else {},
        request_id=request_id or uuid.uuid4().hex,
        sender=actor.recorded,
        now=timezone.now(),
    )
    return accepted.new


def ends_without_steps(run_id: int) -> bool:
    """Whether a cancelled run can be brought to its end at once: nobody drives it, and no closing steps are to run."""
    run = _run(run_id)
    if run.is_final or run.engine_version != conf().engine_version or Lease.objects.is_live(run_id):
        return False
    try:
        return compiled(run.plan.hash, run.plan.document).closing is None
    except Refusal:  # a corrupt plan cannot be driven to its end
        return False


def is_driven(run_id: int) -> bool:
    """Whether a worker holds the run at this moment."""
    return Lease.objects.is_live(run_id)


def resume(run_id: int, *, actor: Actor, reason: str = "") -> str:
    """Let a run go on; the answer says how: ``released``, ``reopened`` or ``woken``.

    A hold is lifted; a failed or abandoned run is opened again at the failed step; a blocked one is looked at again,
    for the case that the missing code is back. Raises ``run.not_found``, ``run.not_reopenable``, ``lease.held``.
    """
    run = _run(run_id)
    if run.held:
        send(
            run_id=run_id,
            kind=ControlKind.RESUME,
            payload={"reason": reason} if reason else {},
            request_id=uuid.uuid4().hex,
            sender=actor.recorded,
            now=timezone.now(),
        )
        return "released"
    if run.status == RunStatus.BLOCKED:
        reopening.wake(run_id=run_id)
        return "woken"
    _reopen(run_id, actor, reason)
    return "reopened"


def retry(run_id: int, *, actor: Actor, reason: str = "") -> str:
    """Try again now: ends the back-off of waiting retries (``hurried``), or opens a failed run again (``reopened``).

    Raises ``run.not_found``, ``run.terminal``, ``run.nothing_to_retry``, ``run.not_reopenable``, ``lease.held``.
    """
    run = _run(run_id)
    if run.status in (RunStatus.FAILED, RunStatus.ABANDONED):
        _reopen(run_id, actor, reason)
        return "reopened"
    reopening.hurry(run_id=run_id, actor=actor.recorded, now=timezone.now())
    return "hurried"


def _reopen(run_id: int, actor: Actor, reason: str) -> None:
    reopening.reopen(run_id=run_id, actor=actor.recorded, reason=reason, now=timezone.now())


def _run(run_id: int) -> Run:
    run: Run | None = Run.objects.select_related("plan").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return run
