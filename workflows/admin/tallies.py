"""What workers have counted."""

from __future__ import annotations

from django.contrib import admin

from workflows.admin.base import LedgerAdmin
from workflows.models import Tally


@admin.register(Tally)
class TallyAdmin(LedgerAdmin):
    path_to_run = ""
    list_display = ("what", "kind", "result", "count")
    list_filter = ("what",)
    search_fields = ("kind__startswith",)
