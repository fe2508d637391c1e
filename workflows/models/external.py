"""ExternalOffer: work of a run that another program may reserve and finish (promises EXT)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q

from workflows.clock import DatabaseNow
from workflows.models.columns import RunRow, digest_column, millis_column, name_column
from workflows.models.guard import GuardedQuerySet, require_ledger_transaction
from workflows.statuses import OfferStatus


class ExternalOfferManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """The swaps of an offer: each goes from one status to the next once. Only ``renew`` needs no lock on the run."""

    def take(self, *, offer_id: int, lease_ms: int, **columns: Any) -> bool:
        """From open to reserved, until ``lease_ms`` from now; False when somebody else was first."""
        require_ledger_transaction()
        now_ms = columns["reserved_ms"]
        this = self.filter(pk=offer_id, status=OfferStatus.OPEN)
        return bool(this.update(status=OfferStatus.RESERVED, lease_until_ms=now_ms + lease_ms, **columns))

    def renew(self, *, token_hash: str, now: Any = None) -> bool:
        """Move the end of a reservation; False when it has ended, also at this very moment."""
        require_ledger_transaction()
        moment = DatabaseNow() if now is None else now
        this = self.filter(token_hash=token_hash, inherited=False, status=OfferStatus.RESERVED)
        renewed = this.filter(lease_until_ms__gt=moment).update(
            lease_until_ms=moment + F("lease_ms"), renewals=F("renewals") + 1
        )
        return bool(renewed)

    def finish(self, *, offer_id: int, token_hash: str, **columns: Any) -> bool:
        """From reserved under this token to finished; False when it is not reserved so any more."""
        require_ledger_transaction()
        this = self.filter(pk=offer_id, token_hash=token_hash, status=OfferStatus.RESERVED)
        return bool(this.update(status=OfferStatus.FINISHED, **columns))

    def lapse(self, *, offer_id: int, now_ms: int, **columns: Any) -> bool:
        """From reserved to lapsed, when the reservation has ended; False when it was renewed or is over."""
        require_ledger_transaction()
        this = self.filter(pk=offer_id, status=OfferStatus.RESERVED, lease_until_ms__lte=now_ms)
        return bool(this.update(status=OfferStatus.LAPSED, **columns))

    def withdraw(self, *, run_id: int, visit: int, **columns: Any) -> bool:
        """End the live offer of a visit: nobody is to do the work any more; False when there is none."""
        require_ledger_transaction()
        this = self.filter(run_id=run_id, visit=visit, status__in=LIVE_OFFERS)
        return bool(this.update(status=OfferStatus.WITHDRAWN, **columns))


LIVE_OFFERS = (OfferStatus.OPEN, OfferStatus.RESERVED)


class ExternalOffer(RunRow):
    """One offer of one attempt: who reserved it until when, and what came of it.

    ``number`` counts the offers of the attempt: work that was reserved and not renewed is offered again. The token of
    a reservation is known only to whoever reserved; ``token_hash`` is its SHA-256, "" while nobody has. ``error`` is
    JSON: code, message, and whether a retry is wanted. ``digest`` is that of the result, by which a repeated one is
    recognised; an offer that lapsed or was withdrawn keeps here what came too late. ``timeout_ms`` counts from the
    first reservation of the attempt.
    """

    visit = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    number = models.PositiveIntegerField(default=1)
    queue = name_column()
    status = models.CharField(max_length=10, choices=OfferStatus.choices, default=OfferStatus.OPEN)
    input_digest = digest_column(null=True)
    lease_ms = millis_column()
    timeout_ms = millis_column(null=True)
    offered_ms = millis_column()
    token_hash = digest_column(default="", blank=True)
    worker = models.CharField(max_length=200, default="", blank=True)
    reserved_by = models.CharField(max_length=200, default="", blank=True)
    reserved_ms = millis_column(null=True)
    lease_until_ms = millis_column(null=True)
    renewals = models.PositiveIntegerField(default=0)
    outcome = name_column(default="", blank=True)
    output_digest = digest_column(null=True)
    error = models.TextField(default="", blank=True)
    digest = digest_column(default="", blank=True)
    reason = models.CharField(max_length=200, default="", blank=True, help_text="why it was withdrawn")
    ended_ms = millis_column(null=True)
    revision_created = models.PositiveBigIntegerField()
    revision_settled = models.PositiveBigIntegerField(null=True)
    inherited = models.BooleanField(default=False)

    objects: ClassVar[ExternalOfferManager] = ExternalOfferManager()

    class Meta:
        ordering = ["run", "visit", "attempt", "number"]
        verbose_name = "external work"
        verbose_name_plural = "external work"
        constraints = [
            models.UniqueConstraint(fields=["run", "visit", "attempt", "number"], name="offer_number_once"),
            models.UniqueConstraint(
                fields=["run", "visit"], name="offer_live_once", condition=Q(status__in=["open", "reserved"])
            ),
            models.UniqueConstraint(
                fields=["token_hash"], name="offer_token_once", condition=Q(inherited=False) & ~Q(token_hash="")
            ),
            models.CheckConstraint(condition=Q(status__in=OfferStatus.values), name="offer_status_known"),
        ]
        indexes = [
            models.Index(fields=["queue", "offered_ms"], name="offer_open", condition=Q(status="open")),
            models.Index(fields=["lease_until_ms"], name="offer_reserved", condition=Q(status="reserved")),
        ]
        permissions = [("work_externaloffer", "Can reserve and finish external work")]

    def __str__(self) -> str:
        return f"{self.run_id} v{self.visit}.{self.attempt} {self.queue} {self.status}"
