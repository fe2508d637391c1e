"""Inspect schedules: whether they, the times that have come, and the runs of these times tell one story. See
``inspection``. A run that was pruned, and a time that was trimmed, are no fault."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.db.models import Exists, F, OuterRef, Q

from workflows.ledger.scheduling_files import terms_of
from workflows.models import Run, Schedule, ScheduleFire, Workflow
from workflows.statuses import FireStatus

_OPEN = (FireStatus.DUE, FireStatus.WAITING)
_MOST = 100


def inspect_schedules() -> Iterator[str]:
    """What is wrong with schedules, one sentence each."""
    yield from _fires()
    yield from _runs()
    yield from _files()


def _fires() -> Iterator[str]:
    is_open = Q(settled_at=None)
    wrong = (is_open & ~Q(status__in=_OPEN)) | (~is_open & Q(status__in=_OPEN))
    wrong |= Q(status=FireStatus.STARTED, run=None)
    for fire in ScheduleFire.objects.filter(wrong).order_by("pk")[:_MOST]:
        yield f"{fire} is {fire.status}, which does not fit the rest of its row"
    for row in Schedule.objects.filter(next_at__lte=F("handled_until")).order_by("pk")[:_MOST]:
        yield f"{row} is due at {row.next_at}, which is dealt with already"


def _runs() -> Iterator[str]:
    run = Run.objects.filter(pk=OuterRef("run"))
    its_own = run.filter(origin="schedule", workflow=OuterRef("schedule__workflow"))
    strange = ScheduleFire.objects.filter(Exists(run), ~Exists(its_own), status=FireStatus.STARTED)
    for fire in strange.order_by("pk")[:_MOST]:
        yield f"{fire} is said to have started run {fire.run}, which no schedule of its workflow did"


def _files() -> Iterator[str]:
    said = Workflow.objects.filter(current__document__contains='"schedule":[') | Workflow.objects.filter(
        pk__in=Schedule.objects.current().filter(of_file=True).values("workflow")
    )
    for workflow in said.select_related("current").distinct().order_by("name"):
        document = json.loads(workflow.current.document) if workflow.current is not None else {}
        wanted = [(terms.cron, terms.timezone, terms.params) for terms in terms_of(document)]
        rows = Schedule.objects.current().filter(workflow=workflow, of_file=True).order_by("position", "pk")
        if wanted != list(rows.values_list("cron", "timezone", "params")):
            yield f"the schedules of workflow {workflow.name} are not those of its current version"
