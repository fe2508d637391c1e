"""``runs why``: what keeps a run from going on, since when, until when, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from workflows.errors import ExitCode
from workflows.management.actions import RunAction
from workflows.management.base import Command
from workflows.management.targets import run_ids
from workflows.management.wording import one_line
from workflows.queries.runs import find_run, moment_text
from workflows.queries.why_facts import Because
from workflows.queries.why_rows import why_run

#: Characters of a sentence, as many as the page of the run shows.
LONGEST = 600


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input")


def _why(command: Command, options: dict[str, Any]) -> int:
    documents = []
    for number in run_ids(options["runs"]):
        run = find_run(number)
        reasons = why_run(run)
        documents.append({"run": number, "status": run.status, "reasons": [_document(reason) for reason in reasons]})
        if not options["as_json"]:
            command.print_lines(why_lines(number, run.status, reasons, is_over=run.is_final))
    if options["as_json"]:
        command.print_json(documents[0] if len(documents) == 1 else documents)
    return ExitCode.SUCCEEDED


def _document(reason: Because) -> dict[str, Any]:
    document = asdict(reason)
    return {**document, "since": moment_text(reason.since), "until": moment_text(reason.until)}


def why_lines(number: int, status: str, reasons: list[Because], *, is_over: bool) -> Iterator[str]:
    """One reason after the other, each with what to do below it."""
    if not reasons:
        rest = "it is over" if is_over else "it moves"
        yield f"run {number} is {status}: {rest}."
        return
    yield f"run {number} is {status}:"
    for reason in reasons:
        since = f" since {_moment(reason.since)}" if reason.since else ""
        until = f" until {_moment(reason.until)}" if reason.until else ""
        when = f" ({(since + until).strip()})" if since or until else ""
        yield f"  {one_line(reason.sentence, LONGEST)}{when}"
        if reason.advice:
            yield f"      {one_line(reason.advice, LONGEST)}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


WHY = RunAction(name="why", help="why runs do not go on, and what to do", add_words=_add_words, perform=_why)
