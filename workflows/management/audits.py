"""``runs audit``: what people did to runs and what they were not allowed to do."""

from __future__ import annotations

import argparse
from typing import Any

from workflows.errors import ExitCode
from workflows.management.actions import RunAction
from workflows.management.base import Command
from workflows.management.listing import add_length
from workflows.management.tables import table
from workflows.management.targets import run_id
from workflows.management.wording import one_line
from workflows.queries.audit import AuditFilter, audit_page
from workflows.queries.runs import find_run

_WIDTH = 60


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="only what was done to this run")
    parser.add_argument("--by", metavar="USER", help="only what this person did, also through a key or the shell")
    parser.add_argument("--what", metavar="NAME", help="only this action, as run.abandon, or all of a noun, as run")
    parser.add_argument("--denied", action="store_true", help="only what was not allowed")
    parser.add_argument("--before", type=int, metavar="N", help="entries with a lower number: the next page")
    add_length(parser)


def _audit(command: Command, options: dict[str, Any]) -> int:
    number = None if options["run"] is None else run_id(options["run"])
    wanted = AuditFilter(
        run=number,
        actor=options["by"],
        action=options["what"],
        allowed=False if options["denied"] else None,
        before=options["before"],
    )
    page = audit_page(wanted, limit=options["limit"])
    if number is not None and not page.entries:
        find_run(number)  # a run that was pruned keeps its entries; one that never was has none
    if options["as_json"]:
        command.print_json(page.entries)
    elif not page.entries:
        command.stdout.write("There are no such entries.")
    else:
        command.print_lines(table(["ENTRY", "AT", "BY", "ACTION", "RUN", ""], [_cells(one) for one in page.entries]))
        if page.next_before is not None:
            command.stdout.write(f"There are more: `--before {page.next_before}` continues.")
    return ExitCode.SUCCEEDED


def _cells(entry: dict[str, Any]) -> list[object]:
    told = [] if entry["allowed"] else ["denied"]
    told += [one_line(entry["reason"], _WIDTH)] if entry["reason"] else []
    told += [f"{name}={one_line(str(value), 30)}" for name, value in entry["data"].items() if value not in (None, "")]
    what = entry["run"] if entry["run"] is not None else entry["workflow"] or ""
    return [entry["number"], entry["at"][:19].replace("T", " "), entry["actor"], entry["action"], what, " ".join(told)]


AUDIT = RunAction(
    name="audit", help="what people did to runs, and what was denied", add_words=_add_words, perform=_audit
)
