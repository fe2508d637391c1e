"""Whether what a test leaves in the ledger tells one story: every test that uses a database is asked at its end."""

from __future__ import annotations

from django.db import connection

from workflows.ledger.inspection import Verified, inspect_run
from workflows.models import Event, Run

#: What is larger is the matter of tests that inspect it themselves.
MOST_RUNS = 200
MOST_EVENTS = 5_000


def problems_left() -> list[str]:
    """What is wrong with the runs of this database, each problem with its run."""
    if Run._meta.db_table not in connection.introspection.table_names():
        return []
    numbers = list(Run.objects.order_by("pk").values_list("pk", flat=True)[: MOST_RUNS + 1])
    if not numbers:
        return []
    if len(numbers) > MOST_RUNS or Event.objects.count() > MOST_EVENTS:
        return []
    verified = Verified()
    problems = [f"run {number}: {text}" for number in numbers for text in inspect_run(number, verified=verified)]
    return problems
