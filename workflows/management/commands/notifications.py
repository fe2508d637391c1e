"""``notifications list|replay|test``: what people and programs were told, again if need be, and whether it can work."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.tables import table
from workflows.operations.notifications_trial import try_person, try_webhook
from workflows.operations.notifications_wishes import replay
from workflows.operations.people import shell_actor
from workflows.queries.notifications import MOST, PAGE, DeliveryFilter, DeliveryLine, deliveries
from workflows.statuses import DeliveryStatus

_MOST_ERROR = 60


class Command(WaypostCommand):
    help = "Shows what people and programs were told of, sends it again, and tries whether it can be sent."

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        listing = actions.add_parser("list", help="what was sent to whom, the newest first")
        listing.add_argument("--run", type=_number, metavar="RUN", help="about this run")
        listing.add_argument("--workflow", metavar="NAME", help="about runs of this workflow")
        listing.add_argument("--to", dest="person", metavar="USER", help="to this person")
        listing.add_argument("--status", choices=DeliveryStatus.values, help="what became of it")
        listing.add_argument("--limit", type=_number, default=PAGE, metavar="N", help=f"at most {MOST}; default {PAGE}")
        again = actions.add_parser("replay", help="send a message again, under the same id")
        again.add_argument("delivery", type=_number, metavar="DELIVERY", help="number of a delivery")
        again.add_argument("--as", dest="person", metavar="USER", help="the user who wants it")
        trial = actions.add_parser("test", help="send a message that says that it is a test, now")
        to = trial.add_mutually_exclusive_group(required=True)
        to.add_argument("--to", dest="person", metavar="USER", help="by e-mail to this person")
        to.add_argument("--webhook", type=_number, metavar="NUMBER", help="to this webhook")
        for action in (listing, again, trial):
            action.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        action = getattr(self, f"do_{options['action']}")
        code: int = action(**options)
        return code

    def do_list(
        self,
        *,
        run: int | None,
        workflow: str | None,
        person: str | None,
        status: str | None,
        limit: int,
        as_json: bool,
        **options: Any,
    ) -> int:
        wanted = DeliveryFilter(run=run, workflow=workflow, person=person, status=status)
        lines = deliveries(wanted, limit=limit).lines
        if as_json:
            self.print_json([line.as_json() for line in lines])
        elif not lines:
            self.stdout.write("Nothing was sent.")
        else:
            self.print_lines(
                table(["DELIVERY", "RUN", "KIND", "TO", "STATUS", "TRIES", "ERROR"], [_cells(line) for line in lines])
            )
        return ExitCode.SUCCEEDED

    def do_replay(self, *, delivery: int, person: str | None, as_json: bool, **options: Any) -> int:
        made = replay(delivery, actor=shell_actor(person))
        if as_json:
            self.print_json({"delivery": made})
        else:
            self.stdout.write(f"delivery {made}: the message is sent again by the next worker that looks")
        return ExitCode.SUCCEEDED

    def do_test(self, *, person: str | None, webhook: int | None, as_json: bool, **options: Any) -> int:
        tried = try_person(person) if person is not None else try_webhook(webhook or 0)
        if as_json:
            self.print_json({"to": tried.to, "sent": tried.is_sent, "error": tried.error})
        elif tried.is_sent:
            self.stdout.write(f"sent to {tried.to}")
        else:
            self.stderr.write(f"error: not sent to {tried.to}: {tried.error}")
        return ExitCode.SUCCEEDED if tried.is_sent else ExitCode.FAILED


def _cells(line: DeliveryLine) -> list[object]:
    code = f"{line.response_code} " if line.response_code else ""
    error = line.error if len(line.error) <= _MOST_ERROR else f"{line.error[: _MOST_ERROR - 1]}…"
    return [line.number, line.run, line.kind, line.receiver, line.status, line.attempts, f"{code}{error}".strip()]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)
