"""Which groups see a workflow. A change is in the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from workflows.ledger.auditing import audit
from workflows.models import Workflow, WorkflowAccess
from workflows.operations.people import user_actor

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[WorkflowAccess]
else:
    _Admin = admin.ModelAdmin


@admin.register(WorkflowAccess)
class WorkflowAccessAdmin(_Admin):
    """A workflow without any such row is open to everyone who may look."""

    list_display = ("workflow", "group")
    search_fields = ("=workflow__name", "group__name__startswith")
    list_select_related = ("workflow", "group")
    ordering = ("workflow__name", "group__name")
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowAccess]:
        rows = super().get_queryset(request)
        return rows.filter(workflow__in=Workflow.objects.visible_to(request.user))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "workflow":
            options["queryset"] = Workflow.objects.visible_to(request.user).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **options)

    def save_model(self, request: HttpRequest, obj: WorkflowAccess, form: forms.ModelForm[Any], change: bool) -> None:
        if change:
            before = WorkflowAccess.objects.select_related("workflow", "group").get(pk=obj.pk)
            _keep(request, "workflow.close", before)
        super().save_model(request, obj, form, change)
        _keep(request, "workflow.open", obj)

    def delete_model(self, request: HttpRequest, obj: WorkflowAccess) -> None:
        _keep(request, "workflow.close", obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WorkflowAccess]) -> None:
        for row in queryset.select_related("workflow", "group"):
            _keep(request, "workflow.close", row)
        super().delete_queryset(request, queryset)


def _keep(request: HttpRequest, action: str, row: WorkflowAccess) -> None:
    """The entry is written once the change is committed: it is a transaction of its own."""
    actor, workflow, group, now = user_actor(request.user), row.workflow.name, row.group.name, timezone.now()
    transaction.on_commit(
        lambda: audit(actor=actor.recorded, action=action, at=now, workflow=workflow, data={"group": group})
    )
