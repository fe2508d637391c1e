"""``external list``: the queues in which work waits for other programs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.tables import table
from workflows.queries.external import QueueFacts, queues_of
from workflows.queries.runs import moment_text


class Command(WaypostCommand):
    help = "Lists the queues in which work waits for other programs, or is done by them."

    def add_words(self, parser: CommandParser) -> None:
        listed = self.add_actions(parser).add_parser("list", help="the queues with work, and since when it waits")
        listed.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        queues = queues_of()
        if options["as_json"]:
            self.print_json([_document(queue) for queue in queues])
            return ExitCode.SUCCEEDED
        headings = ["QUEUE", "WAITING", "RESERVED", "WAITS SINCE"]
        cells = [[queue.name, queue.open, queue.reserved, _moment(queue)] for queue in queues]
        self.print_lines(table(headings, cells) if cells else ["No work waits for other programs."])
        return ExitCode.SUCCEEDED


def _moment(queue: QueueFacts) -> str:
    return "–" if queue.oldest is None else f"{queue.oldest:%Y-%m-%d %H:%M:%S} UTC"


def _document(queue: QueueFacts) -> dict[str, Any]:
    since = moment_text(queue.oldest)
    return {"queue": queue.name, "open": queue.open, "reserved": queue.reserved, "oldest": since}
