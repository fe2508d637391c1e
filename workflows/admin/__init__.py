"""The admin: every table of the ledger to look at, people and their access to change, actions on runs.

Rows of the ledger are never changed here: an action goes through ``operations``, as it does everywhere else.
"""

from __future__ import annotations

from django.contrib import admin

from workflows.admin import (
    access,
    api_keys,
    audit,
    bulk,
    external,
    notifications,
    parts,
    payloads,
    people,
    runs,
    schedules,
    slots,
    tallies,
    workers,
    workflows,
)

__all__ = [
    "access",
    "api_keys",
    "audit",
    "bulk",
    "external",
    "notifications",
    "parts",
    "payloads",
    "people",
    "runs",
    "schedules",
    "slots",
    "tallies",
    "workers",
    "workflows",
]

admin.site.site_header = "Waypost"
admin.site.site_title = "Waypost admin"
admin.site.index_title = "Tables, people and access"
