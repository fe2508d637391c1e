"""Workers, as they told of themselves."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from workflows.admin.base import LedgerAdmin, millis
from workflows.models import Worker


@admin.register(Worker)
class WorkerAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("name", "kind", "pool", "drivers", "code_version", "beat", "polled", "stopped")
    list_filter = ("kind",)
    search_fields = ("name__startswith",)

    @admin.display(description="Last beat")
    def beat(self, row: Worker) -> Any:
        return millis(row.beat_ms)

    @admin.display(description="Last look for work")
    def polled(self, row: Worker) -> Any:
        return millis(row.polled_ms)

    @admin.display(description="Stopped")
    def stopped(self, row: Worker) -> Any:
        return millis(row.stopped_ms)
