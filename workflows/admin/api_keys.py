"""Keys of programs: looked at, and revoked. The keys themselves and the hashes of their secrets are not shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from workflows.admin.base import LedgerAdmin
from workflows.errors import Refusal
from workflows.models import ApiKey
from workflows.operations.access import may
from workflows.operations.api_keys import REVOKE, revoke
from workflows.operations.people import user_actor
from workflows.queries.api_keys import state_of


@admin.register(ApiKey)
class ApiKeyAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("name", "public_id", "owner", "state", "scopes", "created_at", "expires_at", "last_used_at")
    list_select_related = ("owner",)
    search_fields = ("name__startswith", "public_id", "owner__username")
    exclude = ("secret_hash", "minute", "taken")
    actions = ("revoke_keys",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [name for name in super().get_fields(request, obj) if name not in self.exclude]

    @admin.display(description="State")
    def state(self, row: ApiKey) -> str:
        return state_of(row, timezone.now())

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), REVOKE)

    @admin.action(description="Revoke these keys", permissions=["revoke"])
    def revoke_keys(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        """Each is ended for ever; what was revoked already stays so."""
        for key in chosen:
            try:
                is_new = revoke(key.public_id, actor=user_actor(request.user), now=timezone.now())
            except Refusal as refusal:
                messages.error(request, f"{key.name}: {refusal.message}")
                continue
            messages.success(request, f"{key.name} is revoked." if is_new else f"{key.name} was revoked already.")
