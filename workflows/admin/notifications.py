"""Notifications, what became of each message, webhooks, and what people want to hear of. All of it to look at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from workflows.admin.base import LedgerAdmin, cut, link_to_run, link_to_workflow, millis
from workflows.models import Delivery, Notification, NotificationPreference, Webhook, Workflow
from workflows.steps.http_address import shown_address


@admin.register(Notification)
class NotificationAdmin(LedgerAdmin):
    list_display = ("at", "kind", "run_page", "event", "workflow")
    search_fields = ("=run", "=workflow")
    search_help_text = "The number of a run, or a workflow."

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(workflow__in=Workflow.objects.visible_to(request.user).values("name"))

    @admin.display(description="Run")
    def run_page(self, row: Notification) -> SafeString:
        return link_to_run(row.run)


@admin.register(Delivery)
class DeliveryAdmin(LedgerAdmin):
    list_display = (
        "created_at",
        "kind",
        "run_page",
        "person",
        "webhook",
        "status",
        "attempts",
        "response_code",
        "told",
    )
    list_filter = ("status",)
    search_fields = ("=notification__run", "=notification__workflow", "person__startswith")
    search_help_text = "The number of a run, a workflow, or how the name of a person begins."
    list_select_related = ("notification", "webhook")

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(notification__workflow__in=Workflow.objects.visible_to(request.user).values("name"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        hidden = {"due_ms": "due", "claim": None, "claimed_until_ms": None}
        names = [hidden.get(name, name) for name in super().get_fields(request, obj)]
        return [name for name in names if name is not None]

    @admin.display(description="Kind")
    def kind(self, row: Delivery) -> str:
        return str(row.notification.kind)

    @admin.display(description="Run")
    def run_page(self, row: Delivery) -> SafeString:
        return link_to_run(row.notification.run)

    @admin.display(description="Error")
    def told(self, row: Delivery) -> str:
        return cut(row.error)

    @admin.display(description="Due")
    def due(self, row: Delivery) -> Any:
        return millis(row.due_ms)


@admin.register(Webhook)
class WebhookAdmin(LedgerAdmin):
    list_display = ("id", "workflow_page", "address", "secret", "is_on", "created_by", "created_at", "removed_at")
    search_fields = ("=workflow__name",)
    search_help_text = "A workflow."
    list_select_related = ("workflow",)

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        return rows.filter(workflow__in=Workflow.objects.visible_to(request.user))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["address" if name == "url" else name for name in super().get_fields(request, obj)]

    @admin.display(description="Workflow")
    def workflow_page(self, row: Webhook) -> SafeString:
        return link_to_workflow(row.workflow)

    @admin.display(description="Address")
    def address(self, row: Webhook) -> str:
        """Without its query, which may hold what nobody should read."""
        return shown_address(row.url)


@admin.register(NotificationPreference)
class NotificationPreferenceAdmin(LedgerAdmin):
    list_display = ("person", "by_email", "about", "changed_at")
    search_fields = ("person__startswith",)

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        """What others want to hear of is their own affair."""
        return rows.filter(person=request.user.get_username())
