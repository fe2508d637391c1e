"""Values by their digest. They belong to no run alone, so only superusers look at them here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from workflows.admin.base import LedgerAdmin
from workflows.models import Payload


@admin.register(Payload)
class PayloadAdmin(LedgerAdmin):
    path_to_run = ""
    large = ("text",)
    list_display = ("short_digest", "size", "media_type")
    search_fields = ("digest__startswith",)
    search_help_text = "How a digest begins."
    ordering = ("digest",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What a person may see of a value is decided by the run that it belongs to, on its page."""
        return bool(request.user.is_superuser)  # type: ignore[union-attr]

    @admin.display(description="Digest")
    def short_digest(self, row: Payload) -> str:
        return str(row.digest)[:16]
