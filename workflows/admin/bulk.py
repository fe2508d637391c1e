"""Bulk actions and what they did to each run."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from workflows.admin.base import LedgerAdmin, cut, link_to_run
from workflows.models import BulkAction, BulkItem, Run


@admin.register(BulkAction)
class BulkActionAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("id", "action", "actor", "created_at", "ended_at", "aborted_at", "why")
    search_fields = ("actor__startswith",)

    @admin.display(description="Reason")
    def why(self, row: BulkAction) -> str:
        return cut(row.reason)


@admin.register(BulkItem)
class BulkItemAdmin(LedgerAdmin):
    list_display = ("bulk", "position", "run_page", "result", "told")
    search_fields = ("=bulk__id", "=run")
    search_help_text = "The number of a bulk action or of a run."
    list_select_related = ("bulk",)

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(run__in=Run.objects.visible_to(request.user).values("pk"))

    @admin.display(description="Run")
    def run_page(self, row: BulkItem) -> SafeString:
        return link_to_run(row.run)

    @admin.display(description="Message")
    def told(self, row: BulkItem) -> str:
        return cut(row.message)
