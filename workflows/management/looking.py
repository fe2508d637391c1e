"""``runs show``."""

from __future__ import annotations

import argparse
from typing import Any

from workflows.errors import ExitCode
from workflows.management.actions import RunAction
from workflows.management.base import Command
from workflows.management.descriptions import Beside, described
from workflows.management.targets import run_ids
from workflows.queries.history import state_at
from workflows.queries.questions import questions_of
from workflows.queries.runs import run_document
from workflows.queries.waiting import driven_by, held_by, places_of


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--at", dest="revision", type=int, metavar="REVISION", help="as it was at this revision")
    parser.add_argument("--revision", type=int, help=argparse.SUPPRESS)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input")


def _show(command: Command, options: dict[str, Any]) -> int:
    revision = options["revision"]
    documents = [
        run_document(number) if revision is None else state_at(number, revision) for number in run_ids(options["runs"])
    ]
    if options["as_json"]:
        command.print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for document in documents:
            command.print_lines(described(document, _beside(document["run"]) if revision is None else None))
    return ExitCode.SUCCEEDED


def _beside(number: int) -> Beside:
    return Beside(
        questions=questions_of(number), held=held_by(number), slots=places_of(number), driven=driven_by(number)
    )


SHOW = RunAction(name="show", help="everything about runs", add_words=_add_show, perform=_show)
