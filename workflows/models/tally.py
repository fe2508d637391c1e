"""Tally: how often something has happened, added up over all workers; what the counters of the metrics read (OBS.4)."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import models
from django.db.models import F

from workflows.models.guard import GuardedQuerySet, require_ledger_transaction

#: What is counted, the kind of it, and how it ended ("" where it has no end).
TallyKey = tuple[str, str, str]


class TallyManager(models.Manager.from_queryset(GuardedQuerySet)):  # type: ignore[misc]
    """Counts only grow. Rows are added to in one order, so that workers never wait for each other in a circle."""

    def add(self, counts: Mapping[TallyKey, int]) -> None:
        require_ledger_transaction()
        keys = sorted(counts)
        self.bulk_create(
            [Tally(what=what, kind=kind, result=result, count=0) for what, kind, result in keys], ignore_conflicts=True
        )
        for what, kind, result in keys:
            this = self.filter(what=what, kind=kind, result=result)
            this.update(count=F("count") + counts[what, kind, result])


class Tally(models.Model):
    """``what`` is ``attempt`` (``kind`` of its step, ``result`` as a status of attempts) or ``event`` (``kind`` is its
    type). Nothing of a run depends on it: what a worker counted in its last seconds is lost when it is killed."""

    what = models.CharField(max_length=20)
    kind = models.CharField(max_length=40)
    result = models.CharField(max_length=12, default="", blank=True)
    count = models.PositiveBigIntegerField()

    objects = TallyManager()

    class Meta:
        ordering = ["what", "kind", "result"]
        verbose_name_plural = "tallies"
        constraints = [models.UniqueConstraint(fields=["what", "kind", "result"], name="tally_once")]

    def __str__(self) -> str:
        return f"{self.what} {self.kind} {self.result}".rstrip()
