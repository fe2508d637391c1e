"""Places under a concurrency key or a limit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from workflows.admin.base import LedgerAdmin, millis
from workflows.models import LimitGroup, LimitStart, Run, Slot


@admin.register(Slot)
class SlotAdmin(LedgerAdmin):
    list_display = ("kind", "name", "number", "max", "run_link", "scope", "entered", "given", "due")
    list_filter = ("kind",)
    search_fields = ("name__startswith",)

    @admin.display(description="Entered")
    def entered(self, row: Slot) -> Any:
        return millis(row.entered_ms)

    @admin.display(description="Given")
    def given(self, row: Slot) -> Any:
        return millis(row.given_ms)

    @admin.display(description="Goes on at")
    def due(self, row: Slot) -> Any:
        return millis(row.due_ms)


class GroupedAdmin(LedgerAdmin):
    path_to_run = ""
    search_fields = ("name__startswith",)

    def visible(self, rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
        """A key may tell of a hidden workflow; only those of which a run can be seen are shown."""
        seen = Slot.objects.filter(run__in=Run.objects.visible_to(request.user))
        return rows.filter(name__in=seen.values("name"))


@admin.register(LimitGroup)
class LimitGroupAdmin(GroupedAdmin):
    list_display = ("kind", "name")
    list_filter = ("kind",)


@admin.register(LimitStart)
class LimitStartAdmin(GroupedAdmin):
    list_display = ("name", "started")

    @admin.display(description="Started")
    def started(self, row: LimitStart) -> Any:
        return millis(row.started_ms)
