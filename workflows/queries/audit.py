"""The audit: what people did and what they were not allowed to do, the newest first (promise WEB.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet

from workflows.models import AuditEntry, Run, Workflow
from workflows.queries.runs import moment_text

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

#: Entries of a page unless it is asked for another number, and at most.
PAGE = 50
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries; what is None does not matter. ``actor`` finds also what somebody did through a key or the shell;
    ``action`` a whole noun too (``run`` for ``run.cancel``). ``before`` is an entry's number: the next page."""

    run: int | None = None
    workflow: str | None = None
    actor: str | None = None
    action: str | None = None
    allowed: bool | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """``next_before`` continues the list; None at its end."""

    entries: list[dict[str, Any]]
    next_before: int | None


def audit_page(
    wanted: AuditFilter, *, viewer: AbstractUser | AnonymousUser | None = None, limit: int = PAGE
) -> AuditPage:
    """The entries that ``viewer`` may see; None is the operator's shell, which sees all. Two queries at most.

    Entries about a run or a workflow are seen by who sees these, also when they are gone; what is about neither is
    for everyone who may look at the audit at all (permission ``view_auditentry``, asked by whoever calls).
    """
    limit = max(1, min(limit, MOST))
    rows = list(_visible(_wanted(wanted), viewer).order_by("-pk")[: limit + 1])
    shown = rows[:limit]
    return AuditPage(
        entries=[_entry(row) for row in shown], next_before=shown[-1].pk if len(rows) > limit and shown else None
    )


def audit_of_run(run_id: int, *, limit: int = PAGE) -> list[dict[str, Any]]:
    """The newest entries of one run, for who may see the run."""
    return audit_page(AuditFilter(run=run_id), limit=limit).entries


def audit_actions() -> list[str]:
    """The actions that occur, for a list to choose from."""
    return sorted(AuditEntry.objects.order_by().values_list("action", flat=True).distinct())


def _wanted(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    rows: QuerySet[AuditEntry] = AuditEntry.objects.all()
    if wanted.run is not None:
        rows = rows.filter(run=wanted.run)
    if wanted.workflow is not None:
        rows = rows.filter(workflow=wanted.workflow)
    if wanted.actor is not None:
        rows = rows.filter(_by(wanted.actor))
    if wanted.action is not None:
        rows = rows.filter(Q(action=wanted.action) | Q(action__startswith=f"{wanted.action}."))
    if wanted.allowed is not None:
        rows = rows.filter(allowed=wanted.allowed)
    if wanted.since is not None:
        rows = rows.filter(at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(at__lt=wanted.until)
    return rows if wanted.before is None else rows.filter(pk__lt=wanted.before)


def _by(actor: str) -> Q:
    """In person, through a key (``alice (key ci)``), or by the shell (``shell:root as alice``)."""
    return Q(actor=actor) | Q(actor__startswith=f"{actor} (") | Q(actor__endswith=f" as {actor}")


def _visible(rows: QuerySet[AuditEntry], viewer: AbstractUser | AnonymousUser | None) -> QuerySet[AuditEntry]:
    """By the name of the workflow: one that restricts who sees it hides what is told of it."""
    if viewer is None or viewer.is_superuser:
        return rows
    hidden = Workflow.objects.exclude(pk__in=Workflow.objects.visible_to(viewer).values("pk"))
    return rows.exclude(workflow__in=hidden.values("name"))


def _entry(row: AuditEntry) -> dict[str, Any]:
    return {
        "number": row.pk,
        "at": moment_text(row.at),
        "actor": row.actor,
        "action": row.action,
        "allowed": row.allowed,
        "run": row.run,
        "workflow": row.workflow or None,
        "reason": row.reason,
        "data": json.loads(row.data),
    }


def existing_runs(numbers: Iterable[int | None]) -> set[int]:
    """Which of these runs are still there, to link to."""
    wanted = {number for number in numbers if number is not None}
    return set(Run.objects.filter(pk__in=wanted).values_list("pk", flat=True))
