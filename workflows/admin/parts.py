"""What a run consists of: scopes, visits, attempts, questions, messages, events, versions of rows, and its lease."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin

from workflows.admin.base import LedgerAdmin, cut, millis
from workflows.models import (
    Attempt,
    ControlMessage,
    Event,
    Fanout,
    Interrupt,
    Lease,
    RowVersion,
    Scope,
    ScopeVars,
    Visit,
    Vote,
)


class PartAdmin(LedgerAdmin):
    """A table whose rows belong to a run. Search finds the rows of a run by its number."""

    search_fields: ClassVar[Any] = ("=run__id",)
    search_help_text = "The number of a run."


@admin.register(Scope)
class ScopeAdmin(PartAdmin):
    list_display = ("run_link", "path", "kind", "phase", "step", "waits_for", "outcome")
    list_filter = ("phase", "kind", "section", "waits_for")
    large = ("error",)


@admin.register(ScopeVars)
class ScopeVarsAdmin(PartAdmin):
    list_display = ("run_link", "path")
    large = ("values",)


@admin.register(Visit)
class VisitAdmin(PartAdmin):
    list_display = ("run_link", "number", "scope", "step", "kind", "status", "outcome", "started_at", "ended_at")
    list_filter = ("status", "inherited")
    large = ("error", "retries")


@admin.register(Attempt)
class AttemptAdmin(PartAdmin):
    list_display = ("run_link", "visit", "number", "status", "outcome", "worker", "epoch", "started_at", "ended_at")
    list_filter = ("status", "inherited")
    large = ("error",)


@admin.register(Fanout)
class FanoutAdmin(PartAdmin):
    list_display = ("run_link", "visit", "total", "revision_created")


@admin.register(Interrupt)
class InterruptAdmin(PartAdmin):
    list_display = ("run_link", "visit", "kind", "status", "asks", "answered_by", "asked_at", "answered_at")
    list_filter = ("status", "kind")
    large = ("form", "answer")

    @admin.display(description="Ask")
    def asks(self, row: Interrupt) -> str:
        return cut(row.ask)


@admin.register(Vote)
class VoteAdmin(PartAdmin):
    list_display = ("run_link", "visit", "attempt", "voter", "recorded_by", "decision", "voted_at")
    large = ("answer", "comment")


@admin.register(ControlMessage)
class ControlMessageAdmin(PartAdmin):
    list_display = ("run_link", "kind", "sender", "sequence", "accepted_at", "consumed_by", "consumed_at")
    list_filter = ("kind",)
    large = ("payload",)


@admin.register(Event)
class EventAdmin(PartAdmin):
    list_display = ("run_link", "sequence", "revision", "type", "at", "actor", "visit", "attempt")
    large = ("payload",)


@admin.register(RowVersion)
class RowVersionAdmin(PartAdmin):
    list_display = ("run_link", "revision", "table", "key")
    large = ("row",)


@admin.register(Lease)
class LeaseAdmin(PartAdmin):
    list_display = ("run_link", "owner", "epoch", "acquired", "heartbeat", "expires")
    search_fields = ("=run__id", "owner__startswith")
    search_help_text = "The number of a run, or how the name of a worker begins."

    @admin.display(description="Acquired")
    def acquired(self, row: Lease) -> Any:
        return millis(row.acquired_ms)

    @admin.display(description="Heartbeat")
    def heartbeat(self, row: Lease) -> Any:
        return millis(row.heartbeat_ms)

    @admin.display(description="Expires")
    def expires(self, row: Lease) -> Any:
        return millis(row.expires_ms)
