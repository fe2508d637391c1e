"""External work: what is offered to other programs, and who has it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from workflows.admin.base import LedgerAdmin, millis
from workflows.models import ExternalOffer


@admin.register(ExternalOffer)
class ExternalOfferAdmin(LedgerAdmin):
    list_display = ("run_link", "visit", "attempt", "number", "queue", "status", "worker", "offered", "until")
    list_filter = ("status",)
    search_fields = ("queue__startswith",)
    exclude = ("token_hash",)
    large = ("error",)

    @admin.display(description="Offered")
    def offered(self, row: ExternalOffer) -> Any:
        return millis(row.offered_ms)

    @admin.display(description="Reserved until")
    def until(self, row: ExternalOffer) -> Any:
        return millis(row.lease_until_ms)
