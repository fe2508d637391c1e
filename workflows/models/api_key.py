"""ApiKey: what a program acts with, in the name of its owner (promises KEY)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce

from workflows.models.guard import GuardedManager, require_ledger_transaction


class KeyScope(models.TextChoices):
    """What a key may be used for, besides what its owner may do."""

    READ = "read", "look at workflows, runs, questions and events"
    START = "start", "start runs and send them signals"
    OPERATE = "operate", "cancel, pause, resume, steer, retry, skip, reconcile, abandon, fork and export runs"
    ANSWER = "answer", "answer questions"
    PUBLISH = "publish", "publish versions of workflows"
    EXTERNAL = "external", "take and finish work that runs wait for"
    SCHEDULES = "schedules", "change schedules"


class ApiKeyManager(GuardedManager):
    """The swaps of a key. Every one is a guarded statement inside a ledger transaction."""

    def revoke(self, *, key: ApiKey, by: str, now: datetime) -> bool:
        """False when it was revoked already."""
        require_ledger_transaction()
        return bool(self.filter(pk=key.pk, revoked_at=None).update(revoked_at=now, revoked_by=by))

    def take(self, *, key_id: int, count: int, limit: int, minute: int, now: datetime) -> bool:
        """Take ``count`` requests of the ``limit`` of a minute; False when fewer are left. A new minute begins with
        none taken, and notes that the key is in use."""
        require_ledger_transaction()
        is_new = ~Q(minute=minute)
        rows = self.filter(Q(pk=key_id) & (is_new | Q(taken__lte=limit - count)))
        taken = Case(When(is_new, then=Value(count)), default=F("taken") + count)
        used = Case(When(is_new, then=Value(now)), default=Coalesce("last_used_at", Value(now)))
        return bool(rows.update(taken=taken, last_used_at=used, minute=minute))


class ApiKey(models.Model):
    """``public_id`` is the part of the key that may be shown; ``secret_hash`` the SHA-256 of the other, which is
    nowhere. ``scopes`` is JSON. ``minute`` (since 1970) is the one in which ``taken`` requests were allotted."""

    public_id = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=80)
    scopes = models.TextField(default="[]")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=200, default="", blank=True)
    last_used_at = models.DateTimeField(null=True)
    minute = models.PositiveBigIntegerField(default=0)
    taken = models.PositiveIntegerField(default=0)

    objects: Any = ApiKeyManager()

    class Meta:
        verbose_name = "API key"
        ordering = ["-id"]
        default_permissions = ("view", "add")
        permissions = [("revoke_apikey", "Can revoke API keys of others")]
        indexes = [models.Index(fields=["owner", "-id"], name="api_key_by_owner")]

    def __str__(self) -> str:
        return f"key {self.name}"
