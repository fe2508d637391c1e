"""``workers``: who drives runs, with signs of life, and what waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser
from django.utils import timezone

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.wording import counted
from workflows.queries.workers import LineRow, WorkerRow, WorkersPage, workers_document, workers_page


class Command(WaypostCommand):
    help = "Lists the workers with their last signs of life, what each drives, the queues and the lines for places."

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        # the shell of the server sees everything
        page = workers_page(get_user_model()(is_superuser=True))
        if options["as_json"]:
            self.print_json(workers_document(page))
        else:
            for line in _lines(page):
                self.write_now(line)
        return ExitCode.SUCCEEDED


def _lines(page: WorkersPage) -> Iterator[str]:
    yield from (_worker(row) for row in page.workers)
    if not page.listening:
        yield "no worker listens; `python manage.py run_worker` starts one"
    for queue in page.queues:
        yield f"{queue.workflow}: {counted(queue.waiting, 'run')} could go on, the first since {_ago(queue.since)}"
    yield from (_line(row) for row in page.lines)


def _worker(row: WorkerRow) -> str:
    drives = ", ".join(f"run {run}" for run in row.runs) or "nothing"
    looked = f", looked for work {_ago(row.looked_at)}" if row.state == "deaf" and row.looked_at else ""
    kind = f" ({row.kind})" if row.kind else ""
    return f"{row.name}{kind}: {row.state}, drives {drives}; last sign {_ago(row.heartbeat_at)}{looked}"


def _line(row: LineRow) -> str:
    held = ", ".join(f"run {run}" for run in row.holders) or "nobody"
    waiting = ", ".join(f"run {run} ({place})" for place, run in row.waiting)
    return f"{row.kind} {row.name}: held by {held}" + (f"; in line: {waiting}" if waiting else "")


def _ago(moment: Any) -> str:
    return f"{max(0, int((timezone.now() - moment).total_seconds()))} s ago"
