"""``createsuperuser``: Django's, on tables that are there. The embedded database is made by whoever comes first."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.core.management.base import CommandError

from workflows.errors import Refusal
from workflows.stores.bootstrap import ensure_schema


class Command(createsuperuser.Command):
    # ours says it in words, and makes the tables of the embedded database
    requires_migrations_checks = False

    def execute(self, *words: Any, **options: Any) -> Any:
        try:
            ensure_schema()
        except Refusal as refusal:
            hint = f"\nhint: {refusal.hint}" if refusal.hint else ""
            raise CommandError(f"{refusal.message}{hint}", returncode=int(refusal.exit_code)) from None
        return super().execute(*words, **options)
