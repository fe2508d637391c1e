"""Lease: the right to drive a run, for a while, under an epoch."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F

from workflows.clock import DatabaseNow
from workflows.models.columns import millis_column
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction


class LeaseManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of a lease. ``now`` is an expression in Unix milliseconds, by default the database clock."""

    def is_live(self, run_id: int, *, now: Any = None) -> bool:
        """Whether somebody holds the run at this moment: live before its expiry, dead exactly at it."""
        return bool(self.filter(run_id=run_id, expires_ms__gt=DatabaseNow() if now is None else now).exists())

    def take(self, *, run_id: int, owner: str, epoch: int, ttl_ms: int, active_ms: int, now: Any = None) -> bool:
        """Give the lease to ``owner`` under ``epoch`` if it is free or dead. The caller holds the run row's lock."""
        require_ledger_transaction()
        moment = DatabaseNow() if now is None else now
        return bool(
            self.filter(run_id=run_id, epoch__lt=epoch, expires_ms__lte=moment).update(
                owner=owner,
                epoch=epoch,
                acquired_ms=moment,
                heartbeat_ms=moment,
                last_poll_ms=moment,
                expires_ms=moment + ttl_ms,
                active_ms=active_ms,
            )
        )

    def renew(self, *, run_id: int, epoch: int, ttl_ms: int, polled_ms: int | None = None, now: Any = None) -> bool:
        """Move the expiry of a live lease of this epoch. An expired lease cannot be renewed.

        Touches the lease row only, so it never queues behind a ledger transaction of the run.
        """
        require_ledger_transaction()
        moment = DatabaseNow() if now is None else now
        values: dict[str, Any] = {"heartbeat_ms": moment, "expires_ms": moment + ttl_ms}
        if polled_ms is not None:
            values["last_poll_ms"] = polled_ms
        return bool(self.filter(run_id=run_id, epoch=epoch, expires_ms__gt=moment).update(**values))

    def release(self, *, run_id: int, epoch: int, now: Any = None) -> bool:
        """End a live lease of this epoch and add its time to the active time; a lost lease is a quiet no-op."""
        require_ledger_transaction()
        moment = DatabaseNow() if now is None else now
        return bool(
            self.filter(run_id=run_id, epoch=epoch, expires_ms__gt=moment).update(
                expires_ms=0, owner="", active_ms=F("active_ms") + moment - F("acquired_ms")
            )
        )


class Lease(models.Model):
    """One row per run. Free: ``expires_ms`` is 0. ``active_ms`` sums the time of the leases that ended."""

    run = models.OneToOneField("workflows.Run", primary_key=True, on_delete=models.CASCADE, related_name="lease")
    owner = models.CharField(max_length=200, default="", help_text="host, process and boot nonce of the worker")
    epoch = models.PositiveBigIntegerField(default=0)
    acquired_ms = millis_column(default=0)
    heartbeat_ms = millis_column(default=0)
    expires_ms = millis_column(default=0)
    last_poll_ms = millis_column(default=0)
    active_ms = millis_column(default=0)

    objects = LeaseManager()

    class Meta:
        indexes = [models.Index(fields=["expires_ms"], name="lease_by_expiry")]

    def __str__(self) -> str:
        return f"run {self.run_id} epoch {self.epoch} {self.owner or 'free'}"
