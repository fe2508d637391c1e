"""What people say about notifications: what they want to hear of, which webhooks there are, what is sent again."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from django.utils import timezone

from workflows.clock import database_now_ms
from workflows.errors import Refusal
from workflows.ledger import notifying
from workflows.ledger.records import compact
from workflows.models import Delivery, Webhook, Workflow
from workflows.models.event import TOLD_TYPES
from workflows.operations.access import require
from workflows.operations.notifications_audience import Preference
from workflows.operations.notifications_webhook import checked_url
from workflows.operations.people import Actor
from workflows.statuses import About
from workflows.steps.http_address import shown_address

MANAGE, REPLAY = "manage_webhook", "replay_delivery"
#: Workflows that one person chooses, and webhooks of a workflow, at most.
MOST_CHOSEN, MOST_WEBHOOKS = 100, 20
_SECRET = re.compile(r"[a-z][a-z0-9_]{0,62}")


def choose(wanted: Preference, *, actor: Actor) -> None:
    """Store what the person who acts wants to hear of. Everybody decides for themselves, so no permission is needed;
    a shell is nobody who gets e-mail. Raises ``input.invalid``, and ``workflow.not_found`` for what they cannot see."""
    if actor.user is None:
        raise Refusal("input.invalid", reason="A shell gets no e-mail; people choose on their own page.")
    _known_kinds(wanted.kinds)
    if wanted.about not in About.values:
        raise Refusal("input.invalid", reason=f'Runs are {", ".join(About.values)}, not "{wanted.about[:40]}".')
    if len(wanted.workflows) > MOST_CHOSEN:
        raise Refusal("input.invalid", reason=f"At most {MOST_CHOSEN} workflows can be chosen.")
    seen = set(Workflow.objects.visible_to(actor.user).filter(name__in=wanted.workflows).values_list("name", flat=True))
    for name in sorted(wanted.workflows - seen):
        raise Refusal("workflow.not_found", name=name)
    choices = {
        "by_email": wanted.by_email,
        "kinds": compact(sorted(wanted.kinds)),
        "about": str(wanted.about),
        "workflows": compact(sorted(wanted.workflows)),
    }
    notifying.save_preference(person=actor.name, choices=choices, actor=actor.recorded, now=timezone.now())


def add_webhook(workflow: str, *, url: str, secret: str, kinds: Sequence[str], actor: Actor) -> int:
    """Tell an address about the runs of a workflow from now on; the number of the webhook.

    ``secret`` is the name of the secret that signs, not its value. Raises ``access.denied``, ``workflow.not_found``,
    ``input.invalid``.
    """
    require(actor, MANAGE, workflow=workflow, action="webhook.add")
    _known_kinds(kinds)
    if not kinds:
        raise Refusal("input.invalid", reason="A webhook is told of one kind of news at least.")
    if not _SECRET.fullmatch(secret):
        raise Refusal(
            "input.invalid",
            reason="The secret is given by its name: lower-case letters, digits and _.",
            advice="The value stands in the environment of the workers, as `WAYPOST_SECRET_` and the name in capitals.",
        )
    if Webhook.objects.filter(workflow__name=workflow, removed_at=None).count() >= MOST_WEBHOOKS:
        raise Refusal("input.invalid", reason=f"A workflow has at most {MOST_WEBHOOKS} webhooks.")
    return notifying.add_webhook(
        workflow=workflow,
        url=checked_url(url),
        secret=secret,
        kinds=sorted(set(kinds)),
        shown=shown_address(url),
        actor=actor.recorded,
        now=timezone.now(),
    )


def change_webhook(webhook: int, action: str, *, actor: Actor, workflow: str | None = None) -> bool:
    """Switch a webhook ``on`` or ``off``, or ``remove`` it; False when it is so already. ``workflow``: the one that it
    has to belong to. Raises ``webhook.not_found``, ``access.denied``, ``input.invalid``."""
    row = Webhook.objects.filter(pk=webhook, removed_at=None).select_related("workflow").first()
    if row is None or workflow not in (None, row.workflow.name):
        raise Refusal("webhook.not_found", webhook=webhook)
    require(actor, MANAGE, workflow=row.workflow.name, action="webhook.change")
    if action not in ("on", "off", "remove"):
        raise Refusal("input.invalid", reason=f'A webhook is switched on or off, or removed; not "{action[:40]}".')
    return notifying.change_webhook(webhook_id=webhook, action=action, actor=actor.recorded, now=timezone.now())


def replay(delivery: int, *, actor: Actor, workflow: str | None = None) -> int:
    """Send the message of a delivery again, under the same id; the number of the new delivery. Raises
    ``delivery.not_found``, ``delivery.waits``, ``access.denied``."""
    row = Delivery.objects.filter(pk=delivery).select_related("notification").first()
    if row is None or workflow not in (None, row.notification.workflow):
        raise Refusal("delivery.not_found", delivery=delivery)
    require(actor, REPLAY, workflow=row.notification.workflow, action="delivery.replay")
    return notifying.replay_delivery(
        delivery_id=delivery, actor=actor.recorded, now=timezone.now(), now_ms=database_now_ms()
    )


def _known_kinds(kinds: Collection[str]) -> None:
    for kind in sorted(set(kinds) - set(TOLD_TYPES)):
        raise Refusal("input.invalid", reason=f'There is no news of the kind "{kind[:40]}".')
