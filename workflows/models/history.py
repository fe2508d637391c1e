"""RowVersion: what a row that changes looked like after a revision."""

from __future__ import annotations

from django.db import models

from workflows.models.columns import RunRow


class RowVersion(RunRow):
    """The changed columns of one row at one revision, as JSON; the first version of a row holds all of them.

    ``table`` is the model's name in lower case, ``key`` the row's name inside the run (scope path, visit number,
    ``visit.attempt``). The state at revision r merges the versions up to r in order.
    """

    revision = models.PositiveBigIntegerField()
    table = models.CharField(max_length=20)
    key = models.TextField()
    row = models.TextField()

    class Meta:
        ordering = ["run", "revision"]
        constraints = [
            models.UniqueConstraint(fields=["run", "revision", "table", "key"], name="rowversion_once_per_revision")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}@{self.revision} {self.table} {self.key}"
