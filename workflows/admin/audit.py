"""The audit: what people did and what they were not allowed to do."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from workflows.admin.base import LedgerAdmin, cut, link_to_run
from workflows.models import AuditEntry, Workflow


@admin.register(AuditEntry)
class AuditEntryAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("at", "actor", "action", "allowed", "run_page", "workflow", "why")
    list_filter = ("allowed",)
    search_fields = ("=run", "=workflow", "actor__startswith", "action__startswith")
    search_help_text = "A run, a workflow, or how the name of a person or an action begins."

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        seen = Workflow.objects.visible_to(request.user).values("name")
        return rows.filter(Q(workflow="", run__isnull=True) | Q(workflow__in=seen))

    @admin.display(description="Run")
    def run_page(self, row: AuditEntry) -> SafeString:
        return link_to_run(row.run)

    @admin.display(description="Reason")
    def why(self, row: AuditEntry) -> str:
        return cut(row.reason)
