"""Notifications: facts of runs that people and programs are told of (promises NOTE).

A fact is an event of the ledger. Workers look for events that no notification is written for, now and then, so a fact
is found whatever died after it was committed; the row of the notification, unique for run and event, makes it told
once. What is told is never a value of a run: a message says where to look, and its link decides nothing.

Of child runs that fail nothing is told: the step that waits for them fails, and so may the run that has it.
"""

from __future__ import annotations

import json
import logging
import uuid
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Exists, OuterRef
from django.utils import timezone

from workflows.clock import database_now_ms
from workflows.conf import conf
from workflows.errors import Refusal
from workflows.ledger.notifying import Fact, Receiver, drop_notifications, record_notification
from workflows.models import AuditEntry, Event, Notification, RowVersion, Run, Webhook
from workflows.models.event import is_told
from workflows.operations.notifications_audience import people_for

logger = logging.getLogger(__name__)

#: How far back is looked: often a little, seldom far enough for everything that may have been missed.
OFTEN_BACK, FAR_BACK = timedelta(minutes=15), timedelta(days=7)
#: Facts that are written down in one go.
MOST_FACTS = 200
#: How long notifications and their deliveries are kept.
KEPT_FOR = timedelta(days=90)
_DROPPED_AT_ONCE, _MOST_DROPPED = 500, 10_000


def tell_news(*, now: datetime | None = None) -> int:
    """Write down the facts of the last minutes; how many."""
    return tell_since(OFTEN_BACK, now=now)


def tell_missed(*, now: datetime | None = None) -> int:
    """Write down what was missed in the last days, and forget what is old; how many facts were written down."""
    moment = timezone.now() if now is None else now
    told = tell_since(FAR_BACK, now=moment)
    for _ in range(_MOST_DROPPED // _DROPPED_AT_ONCE):
        if drop_notifications(before=moment - KEPT_FOR, most=_DROPPED_AT_ONCE) < _DROPPED_AT_ONCE:
            break
    return told


def tell_since(back: timedelta, *, now: datetime | None = None) -> int:
    """Write down the facts of a stretch of time that nobody has written down, the oldest first; how many."""
    moment = timezone.now() if now is None else now
    told = 0
    for fact in untold(since=moment - back):
        try:
            told += record(fact, now=moment)
        except Refusal:
            raise
        except Exception:
            logger.exception("%s of run %s cannot be told; it is tried again.", fact.kind, fact.run)
    return told


def untold(*, since: datetime) -> list[Fact]:
    """Facts that no notification is written for, the oldest first."""
    known = Notification.objects.filter(run=OuterRef("run_id"), event=OuterRef("sequence"))
    # what a fork inherited happened to its origin
    events = Event.objects.filter(is_told(), ~Exists(known), at__gte=since, inherited=False)
    rows = events.order_by("at", "pk").values_list("run_id", "sequence", "type", "at", "visit", "attempt")
    found = list(rows[:MOST_FACTS])
    names = dict(Run.objects.filter(pk__in={row[0] for row in found}).values_list("pk", "workflow__name"))
    return [
        Fact(run=run, event=event, kind=kind, at=at, visit=visit, attempt=attempt, workflow=names[run])
        for run, event, kind, at, visit, attempt in found
        if run in names
    ]


def record(fact: Fact, *, now: datetime) -> bool:
    """Write a fact down with everybody who is told; whether it was new."""
    run = Run.objects.filter(pk=fact.run).first()
    receivers = [] if run is None or _is_untellable(fact, run) else receivers_of(fact, run)
    return record_notification(fact=fact, receivers=receivers, now=now, now_ms=database_now_ms())


def receivers_of(fact: Fact, run: Run) -> list[Receiver]:
    """The webhooks of the workflow that want this kind, and the people, each with the id of their message."""
    found = [
        Receiver(webhook=webhook.pk, message_id=f"msg_{uuid.uuid4().hex}")
        for webhook in Webhook.objects.filter(workflow_id=run.workflow_id, is_on=True, removed_at=None)
        if f'"{fact.kind}"' in webhook.kinds
    ]
    if conf().sends_email:
        domain = urlsplit(conf().base_url).hostname or "localhost"
        people = people_for(fact, run)
        found += [Receiver(person=name, message_id=f"<{uuid.uuid4().hex}@{domain}>") for name in people]
    return found


def _is_untellable(fact: Fact, run: Run) -> bool:
    """The end of a child run is its parent's affair, what was imported happened elsewhere, and a run that is still
    blocked, for other reasons, is told already."""
    if fact.kind == "run_failed" and run.parent_run_id is not None:
        return True
    if fact.kind == "run_blocked" and not _changed_status(fact):
        return True
    root = run.root_run_id or run.pk
    imports = AuditEntry.objects.filter(action="run.import", run=root, at__gte=fact.at)
    return bool(imports.exists())


def _changed_status(fact: Fact) -> bool:
    """Whether the run had another status before the event."""
    revision = Event.objects.filter(run_id=fact.run, sequence=fact.event).values("revision")
    version = RowVersion.objects.filter(run_id=fact.run, table="run", revision__in=revision).first()
    return version is None or "status" in json.loads(version.row)


def fact_of(notification: Notification) -> Fact:
    return Fact(
        run=notification.run,
        event=notification.event,
        kind=notification.kind,
        workflow=notification.workflow,
        at=notification.at,
        visit=notification.visit,
        attempt=notification.attempt,
    )


def run_of(fact: Fact) -> Run:
    """The run of a fact with its workflow. Raises ``run.not_found``."""
    run: Run | None = Run.objects.select_related("workflow").filter(pk=fact.run).first()
    if run is None:
        raise Refusal("run.not_found", run=fact.run)
    return run
