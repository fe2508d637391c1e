"""Notifications: a fact is written down once with everybody who is told, and each way to one of them is gone by one
sender at a time (promises NOTE).

Nothing is sent in here. A sender claims a delivery, sends, and writes what came of it; one that dies in between leaves
a claim that ends, and the next one sends the same message with the same id.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max

from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.records import compact
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Delivery, Notification, NotificationPreference, Webhook, Workflow
from workflows.statuses import DeliveryStatus

MOST_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An event of a run that is told."""

    run: int
    event: int
    kind: str
    workflow: str
    at: datetime
    visit: int | None = None
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A person or a webhook, and the id that the message to it has for ever."""

    message_id: str
    person: str = ""
    webhook: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A delivery that is ours until its claim ends. ``attempt`` is the number of this try."""

    delivery: int
    claim: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a try. ``status`` waiting: it is tried again at ``due_ms``."""

    status: DeliveryStatus
    due_ms: int = 0
    response_code: int | None = None
    error: str = ""


@ledger_transaction
def record_notification(*, fact: Fact, receivers: Sequence[Receiver], now: datetime, now_ms: int) -> bool:
    """Write a fact down with a delivery for each receiver; False when somebody else has written it before.

    1. The row of the fact is unique for run and event, so of several who found it one writes.
    2. Its deliveries, due at once, are in the same transaction: none is lost, none is there twice.
    """
    mark = uuid.uuid4().hex
    row = Notification(
        run=fact.run,
        event=fact.event,
        kind=fact.kind,
        workflow=fact.workflow,
        visit=fact.visit,
        attempt=fact.attempt,
        at=fact.at,
        mark=mark,
    )
    Notification.objects.bulk_create([row], ignore_conflicts=True)
    stored = Notification.objects.get(run=fact.run, event=fact.event)
    if stored.mark != mark:
        return False
    Delivery.objects.bulk_create(
        Delivery(
            notification=stored,
            person=receiver.person,
            webhook_id=receiver.webhook,
            message_id=receiver.message_id,
            due_ms=now_ms,
            created_at=now,
        )
        for receiver in receivers
    )
    return True


@ledger_transaction
def claim_delivery(*, webhook: int | None, now_ms: int, for_ms: int) -> Claimed | None:
    """Take the next delivery that is due of one lane: those of a webhook, or the e-mails (``webhook`` None). None when
    nothing is due. The try is counted before anything is sent, so that a sender that dies has tried."""
    rows = Delivery.objects.filter(
        webhook=webhook, status=DeliveryStatus.WAITING, due_ms__lte=now_ms, claimed_until_ms__lte=now_ms
    )
    for delivery in rows.order_by("due_ms", "pk")[:5]:
        claim = uuid.uuid4().hex
        if Delivery.objects.claim(delivery, claim=claim, now_ms=now_ms, until_ms=now_ms + for_ms):
            return Claimed(delivery=delivery.pk, claim=claim, attempt=delivery.attempts + 1)
    return None


@ledger_transaction
def settle_delivery(*, claimed: Claimed, outcome: Outcome, now: datetime) -> bool:
    """Write what came of a try; False when the claim has ended and somebody else has taken the delivery."""
    columns: dict[str, Any] = {"response_code": outcome.response_code, "error": outcome.error[:MOST_ERROR]}
    if outcome.status == DeliveryStatus.WAITING:
        columns["due_ms"] = outcome.due_ms
    else:
        columns |= {"status": outcome.status, "ended_at": now}
    return Delivery.objects.settle(delivery_id=claimed.delivery, claim=claimed.claim, **columns)


@ledger_transaction
def replay_delivery(*, delivery_id: int, actor: str, now: datetime, now_ms: int) -> int:
    """Send a message again: a new delivery with the same id, so that a receiver who has it already can tell. Returns
    its number.

    Loses with ``delivery.not_found`` and with ``delivery.waits`` when one of its rounds is still on its way.
    """
    told = Delivery.objects.filter(pk=delivery_id).select_related("notification").first()
    if told is None:
        raise Refusal("delivery.not_found", delivery=delivery_id)
    rounds = Delivery.objects.filter(notification=told.notification, person=told.person, webhook=told.webhook_id)
    waiting = rounds.filter(status=DeliveryStatus.WAITING).values_list("pk", flat=True).first()
    if waiting is not None:
        raise Refusal("delivery.waits", delivery=waiting)
    again = Delivery(
        notification=told.notification,
        person=told.person,
        webhook_id=told.webhook_id,
        round=(rounds.aggregate(last=Max("round"))["last"] or 0) + 1,
        message_id=told.message_id,
        due_ms=now_ms,
        requested_by=actor,
        created_at=now,
    )
    # of two who want it at the same moment one makes the round
    Delivery.objects.bulk_create([again], ignore_conflicts=True)
    made = rounds.get(round=again.round)
    record_audit(
        actor=actor,
        action="delivery.replay",
        at=now,
        workflow=told.notification.workflow,
        data={"delivery": delivery_id, "made": made.pk, "run": told.notification.run},
    )
    return int(made.pk)


@ledger_transaction
def drop_notifications(*, before: datetime, most: int) -> int:
    """Remove up to ``most`` notifications of facts before a moment, with their deliveries; how many."""
    old = list(Notification.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)[:most])
    Delivery.objects.filter(notification__in=old).delete()
    Notification.objects.filter(pk__in=old).delete()
    return len(old)


@ledger_transaction
def add_webhook(
    *, workflow: str, url: str, secret: str, kinds: Sequence[str], shown: str, actor: str, now: datetime
) -> int:
    """Store a webhook of a workflow, and who did it; its number. ``shown`` is the address without its query, for the
    audit. Loses with ``workflow.not_found``."""
    row = Workflow.objects.filter(name=workflow).first()
    if row is None:
        raise Refusal("workflow.not_found", name=workflow)
    made = Webhook.objects.create(
        workflow=row, url=url, secret=secret, kinds=compact(list(kinds)), created_by=actor, created_at=now
    )
    data = {"webhook": made.pk, "address": shown, "secret": secret, "kinds": list(kinds)}
    record_audit(actor=actor, action="webhook.add", at=now, workflow=workflow, data=data)
    return int(made.pk)


@ledger_transaction
def change_webhook(*, webhook_id: int, action: str, actor: str, now: datetime) -> bool:
    """Switch a webhook ``on`` or ``off``, or ``remove`` it; False when it is so already. What was to be sent to one
    that is off is dropped when its turn comes. Loses with ``webhook.not_found``."""
    row = Webhook.objects.filter(pk=webhook_id, removed_at=None).select_related("workflow").first()
    if row is None:
        raise Refusal("webhook.not_found", webhook=webhook_id)
    changes: dict[str, Any] = {"is_on": action == "on"}
    if action == "remove":
        changes["removed_at"] = now
    elif row.is_on == changes["is_on"]:
        return False
    Webhook.objects.filter(pk=webhook_id, removed_at=None).update(**changes)
    data = {"webhook": webhook_id, "to": action}
    record_audit(actor=actor, action="webhook.change", at=now, workflow=row.workflow.name, data=data)
    return True


@ledger_transaction
def save_preference(*, person: str, choices: Mapping[str, Any], actor: str, now: datetime) -> None:
    """Store what a person wants to hear of, and who said so. ``choices`` are columns of the preference."""
    row = NotificationPreference(person=person, changed_at=now, **choices)
    NotificationPreference.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["person"], update_fields=[*choices, "changed_at"]
    )
    record_audit(actor=actor, action="preference.change", at=now, data={"person": person, **choices})
