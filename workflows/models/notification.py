"""Notifications: facts that people and programs are told of, and each way to one of them (promises NOTE)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from workflows.models.columns import millis_column, name_column
from workflows.models.guard import GuardedManager, GuardedQuerySet, require_ledger_transaction
from workflows.statuses import About, DeliveryStatus


class Webhook(models.Model):
    """An address of a program that is told about the runs of one workflow. ``secret`` is a name; the value that signs
    is read when something is sent. ``kinds`` is JSON. A removed one stays, since deliveries name it."""

    workflow = models.ForeignKey("workflows.Workflow", on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=2_000)
    secret = name_column()
    kinds = models.TextField(default="[]")
    is_on = models.BooleanField(default=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    objects = GuardedManager()

    class Meta:
        ordering = ["id"]
        permissions = [("manage_webhook", "Can add, switch and remove webhooks")]

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class NotificationPreference(models.Model):
    """What one person wants to be told by e-mail; who has no row gets what is usual. ``kinds`` and ``workflows`` are
    JSON lists, the latter of names; they count where ``about`` is *chosen*."""

    person = models.CharField(max_length=200, unique=True)
    by_email = models.BooleanField(default=True)
    kinds = models.TextField(default="[]")
    about = models.CharField(max_length=10, choices=About.choices, default=About.EVERYTHING)
    workflows = models.TextField(default="[]")
    changed_at = models.DateTimeField()

    objects = GuardedManager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(about__in=About.values), name="preference_about_known")]

    def __str__(self) -> str:
        return f"preference of {self.person}"


class Notification(models.Model):
    """One fact of a run that is told: the event with this number, whose type is ``kind``. It is written when the fact
    is found, also where nobody is to be told, and outlives the run. ``mark`` is the random id of who wrote it."""

    run = models.PositiveBigIntegerField()
    event = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    workflow = name_column()
    visit = models.PositiveIntegerField(null=True)
    attempt = models.PositiveIntegerField(null=True)
    at = models.DateTimeField()
    mark = models.CharField(max_length=32)

    objects = GuardedManager()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["run", "event"], name="notification_event_once")]
        indexes = [models.Index(fields=["at"], name="notification_by_moment")]

    def __str__(self) -> str:
        return f"{self.kind} of run {self.run}"


class DeliveryManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of a delivery: one sender has it for a while, and only that one writes what came of it."""

    def claim(self, delivery: Delivery, *, claim: str, now_ms: int, until_ms: int) -> bool:
        """Take a delivery that is due, as it was read; False when somebody else was faster."""
        require_ledger_transaction()
        this = self.filter(
            pk=delivery.pk,
            status=DeliveryStatus.WAITING,
            attempts=delivery.attempts,
            due_ms__lte=now_ms,
            claimed_until_ms__lte=now_ms,
        )
        return bool(this.update(claim=claim, claimed_until_ms=until_ms, attempts=delivery.attempts + 1))

    def settle(self, *, delivery_id: int, claim: str, **columns: Any) -> bool:
        """Write what came of a try; False when it is not ours any more."""
        require_ledger_transaction()
        this = self.filter(pk=delivery_id, status=DeliveryStatus.WAITING, claim=claim)
        return bool(this.update(claim="", claimed_until_ms=0, **columns))


class Delivery(models.Model):
    """One notification on its way to a person (by e-mail) or to a webhook.

    ``message_id`` is the Message-ID of the e-mail or the webhook-id, the same at every try and at every replay;
    ``round`` counts replays. ``attempts`` are counted before something is sent. ``error`` ≤ 500 characters.
    """

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="deliveries")
    person = models.CharField(max_length=200, default="", blank=True)
    webhook = models.ForeignKey(Webhook, null=True, on_delete=models.PROTECT, related_name="deliveries")
    round = models.PositiveIntegerField(default=1)
    message_id = models.CharField(max_length=255)
    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    due_ms = millis_column()
    claim = models.CharField(max_length=32, default="", blank=True)
    claimed_until_ms = millis_column(default=0)
    response_code = models.PositiveIntegerField(null=True)
    error = models.TextField(default="", blank=True)
    requested_by = models.CharField(max_length=200, default="", blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects: ClassVar[DeliveryManager] = DeliveryManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["notification", "person", "round"], name="delivery_person_once", condition=Q(webhook=None)
            ),
            models.UniqueConstraint(
                fields=["notification", "webhook", "round"],
                name="delivery_webhook_once",
                condition=Q(webhook__isnull=False),
            ),
            models.CheckConstraint(condition=Q(status__in=DeliveryStatus.values), name="delivery_status_known"),
        ]
        indexes = [
            models.Index(fields=["webhook", "due_ms"], name="delivery_due", condition=Q(status="waiting")),
            models.Index(fields=["person", "-id"], name="delivery_by_person"),
        ]
        permissions = [("replay_delivery", "Can send notifications again")]

    def __str__(self) -> str:
        return f"delivery {self.pk} {self.status}"
