"""Workflows and their plans."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from workflows.admin.base import LedgerAdmin, link_to_workflow
from workflows.models import Plan, Workflow


@admin.register(Workflow)
class WorkflowAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("name", "title", "current_version", "created_at", "page")
    search_fields = ("name", "title")
    ordering = ("name",)
    list_select_related = ("current",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("current__document", "current__source")

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(pk__in=Workflow.objects.visible_to(request.user))

    def view_on_site(self, obj: Workflow) -> str:
        return reverse("pages:workflow", args=[obj.name])

    @admin.display(description="Current version")
    def current_version(self, row: Workflow) -> int | None:
        return row.current.version if row.current is not None else None

    @admin.display(description="Page")
    def page(self, row: Workflow) -> SafeString:
        return link_to_workflow(row)


@admin.register(Plan)
class PlanAdmin(LedgerAdmin):
    path_to_run = ""
    large = ("document", "source")
    list_display = ("id", "workflow", "version", "short_hash", "created_by", "created_at", "page")
    search_fields = ("=workflow__name", "hash__startswith")
    list_select_related = ("workflow",)

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(workflow__in=Workflow.objects.visible_to(request.user))

    @admin.display(description="Hash")
    def short_hash(self, row: Plan) -> str:
        return str(row.hash)[:12]

    @admin.display(description="Page")
    def page(self, row: Plan) -> SafeString:
        return link_to_workflow(row.workflow)
