"""Column types that many tables share."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from workflows.models.guard import GuardedManager


def digest_column(**options: Any) -> models.CharField[Any, Any]:
    """The SHA-256 (64 hex digits) that names a payload."""
    return models.CharField(max_length=64, **options)


def name_column(**options: Any) -> models.CharField[Any, Any]:
    """A name of the file format: at most 63 characters."""
    return models.CharField(max_length=63, **options)


def millis_column(**options: Any) -> models.BigIntegerField[Any, Any]:
    """Unix milliseconds by the database clock; integers, since SQLite compares the text of datetimes."""
    return models.BigIntegerField(**options)


class RunRow(models.Model):
    """A row that belongs to a run.

    The reference has no database constraint: rows of a run are written in bulk in the transaction that locks the run,
    and ``check_ledger`` verifies what the constraint would.
    """

    run = models.ForeignKey(
        "workflows.Run", on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )

    objects: ClassVar[models.Manager[Any]] = GuardedManager()

    class Meta:
        abstract = True
