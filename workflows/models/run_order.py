"""RunOrder: how a list of runs is sorted, and the pages of it: by the run that a page follows, never by counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q

#: What runs can be sorted by, and the column. A run without the moment is no part of such a list.
SORTS: Mapping[str, str] = {
    "number": "pk",
    "started": "started_at",
    "ended": "ended_at",
    "status": "status",
    "workflow": "workflow__name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """Runs of equal ``by`` follow each other by number, in the same direction."""

    by: str = "number"
    goes_up: bool = False

    @property
    def column(self) -> str:
        return SORTS[self.by]

    @property
    def turned(self) -> RunOrder:
        return RunOrder(by=self.by, goes_up=not self.goes_up)

    def sort(self, runs: Any) -> Any:
        """``runs`` in this order."""
        if self.by == "number":
            return runs.order_by("pk" if self.goes_up else "-pk")
        if self.column.endswith("_at"):
            runs = runs.filter(**{f"{self.column}__isnull": False})
        names = (F(self.column), F("pk"))
        return runs.order_by(*(name.asc() if self.goes_up else name.desc() for name in names))

    def beyond(self, runs: Any, number: int) -> Any:
        """Those of ``runs`` that follow a run in this order; all of them when it has no place in it any more."""
        step = "gt" if self.goes_up else "lt"
        if self.by == "number":
            return runs.filter(**{f"pk__{step}": number})
        value = runs.model.objects.filter(pk=number).values_list(self.column, flat=True).first()
        if value is None:
            return runs
        same = Q(**{self.column: value, f"pk__{step}": number})
        # the first condition is what an index can begin at
        bounded = runs.filter(**{f"{self.column}__{step}e": value})
        return bounded.filter(Q(**{f"{self.column}__{step}": value}) | same)
