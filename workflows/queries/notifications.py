"""Notifications as people look at them: what was sent to whom and what came of it, and the webhooks of a workflow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from workflows.clock import moment
from workflows.models import Delivery, Run, Webhook, Workflow
from workflows.queries.runs import moment_text
from workflows.queries.visible import hidden_workflows
from workflows.statuses import DeliveryStatus
from workflows.steps.http_address import shown_address

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

PAGE = 50
MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLine:
    """``receiver`` is a person or an address; ``next_at`` the next try of one that waits; ``run_exists`` False: it was
    pruned."""

    number: int
    kind: str
    run: int
    run_exists: bool
    workflow: str
    person: str
    webhook: int | None
    receiver: str
    message_id: str
    round: int
    status: str
    attempts: int
    response_code: int | None
    error: str
    requested_by: str
    created_at: datetime
    ended_at: datetime | None
    next_at: datetime | None

    @property
    def can_be_sent_again(self) -> bool:
        return self.status != DeliveryStatus.WAITING

    def as_json(self) -> dict[str, Any]:
        return {
            "delivery": self.number,
            "kind": self.kind,
            "run": self.run,
            "workflow": self.workflow,
            "person": self.person or None,
            "webhook": self.webhook,
            "receiver": self.receiver,
            "message_id": self.message_id,
            "round": self.round,
            "status": self.status,
            "attempts": self.attempts,
            "response_code": self.response_code,
            "error": self.error,
            "requested_by": self.requested_by or None,
            "created_at": moment_text(self.created_at),
            "ended_at": moment_text(self.ended_at),
            "next_at": moment_text(self.next_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    """The newest first; ``next_before`` continues the list, None at its end."""

    lines: list[DeliveryLine]
    next_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """What is None does not matter."""

    workflow: str | None = None
    run: int | None = None
    person: str | None = None
    status: str | None = None
    before: int | None = None


def deliveries(
    wanted: DeliveryFilter, *, viewer: AbstractUser | AnonymousUser | None = None, limit: int = PAGE
) -> DeliveryPage:
    """The deliveries that ``viewer`` may see; None is the operator's shell, which sees all. Three queries at most."""
    limit = max(1, min(limit, MOST))
    rows = Delivery.objects.filter(_wanted(wanted)).select_related("notification", "webhook")
    hidden = [] if viewer is None else hidden_workflows(viewer)
    if hidden:
        names = Workflow.objects.filter(pk__in=hidden).values("name")
        rows = rows.exclude(notification__workflow__in=names)
    found = list(rows.order_by("-pk")[: limit + 1])
    shown = found[:limit]
    present = set(Run.objects.filter(pk__in={row.notification.run for row in shown}).values_list("pk", flat=True))
    return DeliveryPage(
        lines=[_line(row, present) for row in shown],
        next_before=shown[-1].pk if len(found) > limit and shown else None,
    )


def _wanted(wanted: DeliveryFilter) -> Q:
    conditions = {
        "notification__workflow": wanted.workflow,
        "notification__run": wanted.run,
        "person": wanted.person,
        "status": wanted.status,
        "pk__lt": wanted.before,
    }
    return Q(**{name: value for name, value in conditions.items() if value is not None})


def _line(row: Delivery, present: set[int]) -> DeliveryLine:
    told, waits = row.notification, row.status == DeliveryStatus.WAITING
    return DeliveryLine(
        number=row.pk,
        kind=told.kind,
        run=told.run,
        run_exists=told.run in present,
        workflow=told.workflow,
        person=row.person,
        webhook=row.webhook_id,
        receiver=row.person or (shown_address(row.webhook.url) if row.webhook is not None else ""),
        message_id=row.message_id,
        round=row.round,
        status=row.status,
        attempts=row.attempts,
        response_code=row.response_code,
        error=row.error,
        requested_by=row.requested_by,
        created_at=row.created_at,
        ended_at=row.ended_at,
        next_at=moment(max(row.due_ms, row.claimed_until_ms)) if waits else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookLine:
    """``address`` is without its query; ``secret`` is the name of the secret."""

    number: int
    address: str
    secret: str
    kinds: tuple[str, ...]
    is_on: bool
    created_by: str
    created_at: datetime


def webhooks_of(workflow: Workflow) -> list[WebhookLine]:
    """The webhooks of a workflow that are there, the oldest first."""
    return [
        WebhookLine(
            number=row.pk,
            address=shown_address(row.url),
            secret=row.secret,
            kinds=tuple(json.loads(row.kinds)),
            is_on=row.is_on,
            created_by=row.created_by,
            created_at=row.created_at,
        )
        for row in Webhook.objects.filter(workflow=workflow, removed_at=None).order_by("pk")
    ]


def choosable_workflows(user: AbstractUser | AnonymousUser) -> list[str]:
    """The names of the workflows that a person can choose."""
    return list(Workflow.objects.visible_to(user).order_by("name").values_list("name", flat=True)[:500])
