"""The Django application."""

from __future__ import annotations

import importlib
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate

_LIMITS_OF_A_SESSION = ("statement_timeout", "idle_in_transaction_session_timeout")


class WorkflowsConfig(AppConfig):
    name = "workflows"
    verbose_name = "Workflows"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        importlib.import_module("workflows.checks")  # registers the system checks
        if getattr(settings, "CELERY_BROKER_URL", ""):
            importlib.import_module("workflows.tasks.doorbell").listen()
        connection_created.connect(_prepare_connection, dispatch_uid="waypost.connection")
        pre_migrate.connect(_lift_limits, sender=self, dispatch_uid="waypost.limits")
        post_migrate.connect(_restore_limits, sender=self, dispatch_uid="waypost.limits")


def _prepare_connection(*, connection: BaseDatabaseWrapper, **signal: Any) -> None:
    if connection.vendor == "postgresql":
        from workflows.stores.whole_numbers import keep_all_digits  # slow to import: the driver of PostgreSQL

        keep_all_digits(connection)


def _lift_limits(*, using: str, **signal: Any) -> None:
    """A migration may rewrite a large table; the limits of a session are meant for the ledger's short transactions."""
    _each_limit(using, "SET {} = 0")


def _restore_limits(*, using: str, **signal: Any) -> None:
    _each_limit(using, "RESET {}")


def _each_limit(using: str, statement: str) -> None:
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for limit in _LIMITS_OF_A_SESSION:
            cursor.execute(statement.format(limit))
