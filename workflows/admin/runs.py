"""Runs: looked at, and acted on through the operations, after a page that asks why."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from workflows.admin import run_actions
from workflows.admin.base import LedgerAdmin, cut, link_to_workflow
from workflows.models import Run
from workflows.operations.access import may
from workflows.operations.people import user_actor


@admin.register(Run)
class RunAdmin(LedgerAdmin):
    large = ("frozen", "error", "reasons", "held", "closing", "audit_hold")
    list_display = ("number", "workflow_page", "plan_version", "status", "name", "started_by", "created_at", "ended_at")
    list_filter = ("status",)
    search_fields = ("=id", "=workflow__name", "=started_by", "=idempotency_key", "=concurrency_key")
    search_help_text = "The number of a run, a workflow, who started it, its key or its concurrency key."
    list_select_related = ("workflow", "plan")
    list_display_links = ("status",)
    actions = ("cancel", "abandon", "resume", "fork", "export")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer(*self.large, "plan__document", "plan__source")

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(pk__in=Run.objects.visible_to(request.user).values("pk"))

    def view_on_site(self, obj: Run) -> str:
        return reverse("pages:run", args=[obj.pk])

    # ---- columns

    @admin.display(description="Run", ordering="id")
    def number(self, row: Run) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("pages:run", args=[row.pk]), row.pk)

    @admin.display(description="Workflow", ordering="workflow")
    def workflow_page(self, row: Run) -> SafeString:
        return link_to_workflow(row.workflow)

    @admin.display(description="Version")
    def plan_version(self, row: Run) -> str:
        return str(row.plan.version or row.plan.hash[:8])

    @admin.display(description="Title")
    def name(self, row: Run) -> str:
        return cut(row.title)

    # ---- actions: each with its permission, a page that asks why, and one result for each run

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), "cancel_run")

    def has_abandon_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), "abandon_run")

    def has_resume_permission(self, request: HttpRequest) -> bool:
        actor = user_actor(request.user)
        return may(actor, "reopen_run") or may(actor, "hold_run")

    def has_fork_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), "fork_run")

    def has_export_permission(self, request: HttpRequest) -> bool:
        return may(user_actor(request.user), "export_run")

    @admin.action(permissions=["cancel"], description="Cancel…")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        return run_actions.answer(self, request, queryset, "cancel")

    @admin.action(permissions=["abandon"], description="Abandon…")
    def abandon(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        return run_actions.answer(self, request, queryset, "abandon")

    @admin.action(permissions=["resume"], description="Resume…")
    def resume(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        return run_actions.answer(self, request, queryset, "resume")

    @admin.action(permissions=["fork"], description="Fork…")
    def fork(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        return run_actions.answer(self, request, queryset, "fork")

    @admin.action(permissions=["export"], description="Export…")
    def export(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase:
        return run_actions.answer(self, request, queryset, "export")
