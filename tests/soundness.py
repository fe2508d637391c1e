"""Whether what a test leaves in the ledger tells one story: every test that uses a database is asked at its end."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import Count, Max, Sum

from workflows.ledger.inspection import Verified, inspect_run
from workflows.models import Event, Run

#: What is larger is the matter of tests that inspect it themselves.
MOST_RUNS = 200
MOST_EVENTS = 5_000
#: How far everything was inspected by the test itself: not done again when nothing was written since.
_inspected: list[Any] = []


def forget_inspection() -> None:
    _inspected.clear()


def remember_inspection() -> None:
    """All runs were found sound as they are now."""
    _inspected[:] = _extent()


def _extent() -> list[Any]:
    """What grows with everything that is written about runs."""
    runs = Run.objects.aggregate(Count("pk"), Sum("revision"), Sum("next_event"), Sum("lease_epoch"))
    return [*runs.values(), *Event.objects.aggregate(Count("pk"), Max("pk")).values()]


def problems_left() -> list[str]:
    """What is wrong with the runs of this database, each problem with its run."""
    if Run._meta.db_table not in connection.introspection.table_names():
        return []
    if _inspected and _inspected == _extent():
        return []
    numbers = list(Run.objects.order_by("pk").values_list("pk", flat=True)[: MOST_RUNS + 1])
    if not numbers:
        return []
    if len(numbers) > MOST_RUNS or Event.objects.count() > MOST_EVENTS:
        return []
    verified = Verified()
    problems = [f"run {number}: {text}" for number in numbers for text in inspect_run(number, verified=verified)]
    return problems
