"""A trial: a message that says that it is one, sent at once and written nowhere."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.utils import timezone

from workflows.conf import conf
from workflows.errors import Refusal
from workflows.ledger.notifying import Outcome
from workflows.models import Webhook
from workflows.operations.notifications_sending import send_email
from workflows.operations.notifications_webhook import post
from workflows.statuses import DeliveryStatus
from workflows.steps.http_address import shown_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """``to`` is an address; ``error`` says why it was not sent."""

    to: str
    is_sent: bool
    error: str = ""


def try_person(name: str) -> Tried:
    """An e-mail to a person. Raises ``user.not_found``, and ``input.invalid`` when nobody can get e-mail."""
    user = get_user_model()._default_manager.filter(username=name, is_active=True).first()
    if user is None:
        raise Refusal("user.not_found", user=name)
    address = str(getattr(user, "email", ""))
    if not address:
        raise Refusal("input.invalid", reason=f"{name} has no e-mail address.")
    if not conf().sends_email:
        raise Refusal("input.invalid", reason="There is no mail server.", advice="`EMAIL_URL` names it.")
    outcome = send_email(
        subject="[Waypost] A test",
        body=f"This is a test: messages of Waypost reach you. Its pages are at\n{conf().base_url}/\n",
        address=address,
        message_id=f"<{uuid.uuid4().hex}@waypost.test>",
        at=timezone.now(),
    )
    return _tried(address, outcome)


def try_webhook(number: int) -> Tried:
    """A signed request to a webhook, of type ``test``. Raises ``webhook.not_found``."""
    webhook = Webhook.objects.filter(pk=number, removed_at=None).select_related("workflow").first()
    if webhook is None:
        raise Refusal("webhook.not_found", webhook=number)
    now = timezone.now().isoformat().replace("+00:00", "Z")
    document = {"type": "test", "timestamp": now, "data": {"workflow": webhook.workflow.name}}
    return _tried(shown_address(webhook.url), post(webhook, message_id=f"msg_{uuid.uuid4().hex}", document=document))


def _tried(to: str, outcome: Outcome) -> Tried:
    return Tried(to=to, is_sent=outcome.status == DeliveryStatus.DELIVERED, error=outcome.error)
