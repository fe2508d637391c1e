"""How a run ended, and what a driver that died has left open: what the kit compares."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.crashes.effects import EffectLog, key_of
from tests.crashes.family import Member
from workflows.definitions.plan import StepPlan
from workflows.engine.paths import visit_path
from workflows.ledger.inspection import inspect_run
from workflows.models import Attempt, Payload, Run, Scope, ScopeVars, Visit
from workflows.statuses import Access, AttemptStatus, ScopePhase, VisitStatus, WaitsFor

#: What a message says about a child run; the number is another one each time.
_RUN_NUMBER = re.compile(r"\brun \d+")


def end_of(run_id: int) -> dict[str, Any]:
    """Status, error, output, and the path of every scope: its steps in order with all they gave."""
    run = Run.objects.get(pk=run_id)
    visits = list(Visit.objects.filter(run=run).order_by("number"))
    digests = {run.output_digest, *(visit.output_digest for visit in visits)} - {None}
    texts = dict(Payload.objects.filter(digest__in=digests).values_list("digest", "text"))
    error = json.loads(run.error) if run.error else {}
    paths: dict[str, list[dict[str, Any]]] = {}
    for visit in visits:
        paths.setdefault(visit.scope, []).append(
            {
                "step": visit.step,
                "round": visit.round,
                "status": visit.status,
                "outcome": visit.outcome,
                "output": texts.get(visit.output_digest or ""),
                "error": _RUN_NUMBER.sub("run N", visit.error),
                "exit_code": visit.exit_code,
                "attempts": visit.attempts,
            }
        )
    return {
        "status": run.status,
        "error": {name: error.get(name) for name in ("code", "step")},
        "output": texts.get(run.output_digest or ""),
        "path": paths,
        "items": {scope.path: scope.outcome for scope in Scope.objects.filter(run=run)},
        "variables": dict(ScopeVars.objects.filter(run=run).values_list("path", "values")),
    }


def found_after_death(members: Sequence[Member], log: EffectLog) -> dict[str, Any]:
    """What is there when a driver has died: begun effects, open attempts, and what is wrong with the rows."""
    found: dict[str, dict[str, Any]] = {}
    for member in members:
        found |= open_attempts(member, log)
    return {
        "published": sum(1 for member in members if member.is_started),
        "began": dict(log.began),
        "open": found,
        "problems": problems_of(members),
    }


def problems_of(members: Sequence[Member]) -> list[str]:
    """What is wrong with the rows of these runs."""
    return [f"{member.label}{problem}" for member in members for problem in inspect_run(member.run_id)]


def open_attempts(member: Member, log: EffectLog) -> dict[str, dict[str, Any]]:
    """The attempts whose end nobody has settled, by the key of their effect.

    ``phase``: how far the effect's own log shows it, *admitted*, *began* or *done*. ``repeats``: the plan allows to
    dispatch it again. ``more``: how often the effect shall still begin (promise KILL).
    """
    run_id = member.run_id
    found: dict[str, dict[str, Any]] = {}
    for visit in Visit.objects.filter(run_id=run_id, status=VisitStatus.OPEN):
        attempt = Attempt.objects.filter(run_id=run_id, visit=visit.number).order_by("-number").first()
        if attempt is None or attempt.status not in (AttemptStatus.RUNNING, AttemptStatus.INTERRUPTED):
            continue
        key = key_of_visit(member, visit)
        phase = "done" if key in log.done else "began" if key in log.began else "admitted"
        repeats = may_repeat(member.plan.steps[visit.step], visit.access)
        decision = json.loads(attempt.authorization)["decision"] if attempt.authorization else None
        more = repeats or phase != "done" if decision is None else decision == "did_not"
        found[key] = {"phase": phase, "repeats": repeats, "more": int(more)}
    return found


def key_of_visit(member: Member, visit: Visit) -> str:
    """The key of the effect that a visit is at."""
    return key_of(visit_path(visit.scope, visit.step, visit.round or 1), visit.attempts + 1, member.label)


def may_repeat(step: StepPlan, access: str) -> bool:
    """Whether a crash may be answered by a repetition: reads, idempotent steps, and policies that name it."""
    named = any("crashed" in (policy.errors or ()) for policy in step.retry)
    return access != Access.WRITE or bool(step.idempotent) or named


def undecided(run_id: int) -> list[Visit]:
    """The visits that are parked until somebody says what became of their effect."""
    waiting = Scope.objects.filter(run_id=run_id, phase=ScopePhase.WAITING, waits_for=WaitsFor.RECONCILE)
    visits = Visit.objects.filter(run_id=run_id, number__in=[scope.visit for scope in waiting]).order_by("number")
    return [visit for visit in visits if not _latest(run_id, visit.number).authorization]


def _latest(run_id: int, visit: int) -> Attempt:
    attempt: Attempt = Attempt.objects.filter(run_id=run_id, visit=visit).latest("number")
    return attempt
