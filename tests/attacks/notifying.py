"""Verbs of notifications in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from tests.attacks.verbs import ONE, Call, attacked, fresh
from tests.support.plans import START, store_plan
from workflows.ledger import notifying
from workflows.models import Delivery, Notification
from workflows.statuses import DeliveryStatus

PEOPLE = [notifying.Receiver(message_id="<a@b>", person="ann"), notifying.Receiver(message_id="<b@b>", person="bob")]
NOW_MS = 1_000_000


def _fact(kind: str = "run_failed") -> notifying.Fact:
    number = 1 + Notification.objects.count()
    return notifying.Fact(run=number, event=7, kind=kind, workflow="demo", at=START)


def _told() -> Delivery:
    fact = _fact()
    notifying.record_notification(fact=fact, receivers=PEOPLE, now=START, now_ms=NOW_MS)
    return Delivery.objects.filter(notification__run=fact.run).order_by("pk")[0]


def _claimed() -> notifying.Claimed:
    _told()
    claimed = notifying.claim_delivery(webhook=None, now_ms=NOW_MS, for_ms=10)
    assert claimed is not None
    return claimed


@attacked(notifying.record_notification)
def record_notification() -> Call:
    return partial(notifying.record_notification, fact=_fact(), receivers=PEOPLE, now=START, now_ms=NOW_MS)


@attacked(notifying.claim_delivery)
def claim_delivery() -> Call:
    _told()
    return partial(notifying.claim_delivery, webhook=None, now_ms=NOW_MS, for_ms=10)


@attacked(notifying.settle_delivery)
def settle_delivery() -> Call:
    outcome = notifying.Outcome(status=DeliveryStatus.DELIVERED)
    return partial(notifying.settle_delivery, claimed=_claimed(), outcome=outcome, now=START)


@attacked(notifying.replay_delivery)
def replay_delivery() -> Call:
    claimed = _claimed()
    outcome = notifying.Outcome(status=DeliveryStatus.GIVEN_UP)
    notifying.settle_delivery(claimed=claimed, outcome=outcome, now=START)
    return partial(notifying.replay_delivery, delivery_id=claimed.delivery, actor="bob", now=START, now_ms=NOW_MS)


@attacked(notifying.drop_notifications)
def drop_notifications() -> Call:
    _told()
    return partial(notifying.drop_notifications, before=START + timedelta(days=1), most=1)


def _webhook() -> int:
    store_plan(ONE)
    return notifying.add_webhook(
        workflow="demo",
        url="https://a.example/?b",
        secret="hook",
        kinds=["run_failed"],
        shown="https://a.example/?…",
        actor="bob",
        now=START,
    )


@attacked(notifying.add_webhook)
def add_webhook() -> Call:
    store_plan(ONE)
    more = {"url": "https://a.example/", "secret": "hook", "kinds": ["run_failed"], "shown": "https://a.example/"}
    return partial(notifying.add_webhook, workflow="demo", actor="bob", now=START, **more)


@attacked(notifying.change_webhook)
def change_webhook() -> Call:
    return partial(notifying.change_webhook, webhook_id=_webhook(), action="remove", actor="bob", now=START)


@attacked(notifying.save_preference)
def save_preference() -> Call:
    choices = {"by_email": False, "kinds": "[]", "about": "mine", "workflows": "[]"}
    return partial(notifying.save_preference, person=fresh(), choices=choices, actor="bob", now=START)
