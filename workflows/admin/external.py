"""External work: what is offered to other programs, and who has it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from workflows.admin.base import LedgerAdmin, millis
from workflows.models import ExternalOffer


@admin.register(ExternalOffer)
class ExternalOfferAdmin(LedgerAdmin):
    list_display = ("run_link", "visit", "attempt", "number", "queue", "status", "worker", "offered", "until")
    list_filter = ("status",)
    search_fields = ("queue__startswith",)
    large = ("error",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [name for name in super().get_fields(request, obj) if name != "token_hash"]

    @admin.display(description="Offered")
    def offered(self, row: ExternalOffer) -> Any:
        return millis(row.offered_ms)

    @admin.display(description="Reserved until")
    def until(self, row: ExternalOffer) -> Any:
        return millis(row.lease_until_ms)
