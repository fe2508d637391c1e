"""Runs that people are to be told of, and the people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from tests.support.hand import expire
from tests.support.kinds import bad
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player
from workflows.ledger.notifying import Fact
from workflows.models import Delivery, Notification, Webhook
from workflows.operations import notifications_wishes as wishes
from workflows.operations.notifications import fact_of, tell_missed
from workflows.operations.notifications_sending import due_lanes, send_due
from workflows.operations.people import Actor, user_actor

SHELL = Actor(name="shell:ann", recorded="shell:ann")
HOUR = 3_600_000
ASKS = workflow(
    '  - { id: check, kind: approval, ask: "Pay ${ params.amount } to Eve?", remind: 1h }',
    name="pay",
    before="params:\n  amount: { type: integer, default: 7321 }",
)
FAILS = workflow("  - { id: work, kind: shell, run: make }", name="deploy")


def person(name: str, *groups: str, email: str | None = None, **more: Any) -> User:
    """Somebody of these roles with an e-mail address."""
    user = User.objects.create_user(name, email=f"{name}@example.com" if email is None else email, **more)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


def actor(name: str) -> Actor:
    return user_actor(User.objects.get(username=name))


def asking(text: str = ASKS, **more: Any) -> Player:
    """A run that waits for an answer."""
    player = Player(publish_run(text, {"amount": 7321}, now=timezone.now(), **more))
    player.play()
    return player


def failed(text: str = FAILS, **more: Any) -> int:
    player = Player(publish_run(text, now=timezone.now(), **more), {"work": bad(message="password=hunter2")})
    player.play()
    return player.run_id


def blocked(text: str = FAILS) -> int:
    """A run whose worker died in the middle of a write."""
    player = Player(publish_run(text, now=timezone.now()))
    player.step()
    expire(player.run_id)
    player.hand = player.take()
    assert player.step().parks
    return player.run_id


def hook(url: str, *kinds: str, workflow: str = "deploy", secret: str = "hook") -> Webhook:
    number = wishes.add_webhook(workflow, url=url, secret=secret, kinds=kinds or ("run_failed",), actor=SHELL)
    return Webhook.objects.get(pk=number)


def known(*names: str) -> None:
    """Workflows of these names."""
    for name in names:
        store_plan(workflow("  - { id: work, kind: shell, run: x }", name=name))


def tell(hours: int = 0) -> int:
    """Write down what there is to tell, as a worker does it now or in so many hours."""
    return tell_missed(now=timezone.now() + timedelta(hours=hours))


def send(clock: Any = None) -> int:
    """Send everything that is due."""
    options = {} if clock is None else {"clock": clock}
    return sum(send_due(lane, **options) for lane in due_lanes(10**15))


def told() -> list[tuple[str, str]]:
    """(kind, who) of every delivery."""
    rows = Delivery.objects.order_by("pk").select_related("notification")
    return [(row.notification.kind, row.person or f"webhook {row.webhook_id}") for row in rows]


def fact() -> Fact:
    return fact_of(Notification.objects.get())
