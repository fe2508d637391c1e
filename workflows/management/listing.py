"""``runs list|events``."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from workflows.errors import ExitCode
from workflows.management.actions import RunAction
from workflows.management.base import Command
from workflows.management.descriptions import event_line, list_table
from workflows.management.targets import run_id
from workflows.queries.events import events_after
from workflows.queries.runs import USUAL_LENGTH, RunFilter, run_list
from workflows.statuses import RunStatus

#: How often `--follow` looks for new events, in seconds.
FOLLOW_S = 0.5


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="runs of this workflow")
    parser.add_argument(
        "--status", action="append", choices=[str(status) for status in RunStatus], help="may be repeated"
    )
    parser.add_argument("--live", action="store_true", help="runs that have not ended")
    parser.add_argument("--started-by", metavar="USER", help="runs that this user started")
    parser.add_argument("--before", type=int, metavar="RUN", help="runs with a lower number")
    add_length(parser)


def add_length(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=_length, default=USUAL_LENGTH, metavar="N", help=f"default: {USUAL_LENGTH}")


def _length(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


def _list(command: Command, options: dict[str, Any]) -> int:
    wanted = RunFilter(
        workflow=options["workflow"],
        statuses=tuple(options["status"] or ()),
        started_by=options["started_by"],
        live=True if options["live"] else None,
        before=options["before"],
    )
    rows = run_list(wanted, limit=options["limit"])
    if options["as_json"]:
        command.print_json(rows)
    elif rows:
        command.print_lines(list_table(rows))
    else:
        command.stdout.write("There are no such runs.")
    return ExitCode.SUCCEEDED


def _add_events(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", type=int, default=0, metavar="N", help="only events after this number")
    parser.add_argument("--follow", action="store_true", help="wait for further events until the run has ended")
    parser.add_argument("run", metavar="RUN", help="number of a run")


def _events(command: Command, options: dict[str, Any]) -> int:
    number, cursor = run_id(options["run"]), options["after"]
    follow, as_json = options["follow"], options["as_json"]
    listed: list[dict[str, Any]] = []
    while True:
        page = events_after(number, cursor)
        cursor = page.cursor
        if as_json and not follow:
            listed += page.events
        for event in page.events if follow or not as_json else ():
            command.stdout.write(json.dumps(event, ensure_ascii=False) if as_json else event_line(event))
        if not page.events and (page.is_over or not follow):
            break
        if not page.events:
            time.sleep(FOLLOW_S)
        command.stdout.flush()
    if as_json and not follow:
        command.print_json(listed)
    return ExitCode.SUCCEEDED


LIST = RunAction(name="list", help="the newest runs", add_words=_add_list, perform=_list)
EVENTS = RunAction(name="events", help="what happened in a run", add_words=_add_events, perform=_events)
