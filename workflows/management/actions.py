"""A sub-action of ``runs``: its words and what it does. The command lists them, one line each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workflows.errors import ExitCode
from workflows.management.base import Command
from workflows.management.targets import visit_number
from workflows.queries.waiting import driven_by


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAction:
    """``perform`` gets the command, to print with, and the options; it returns the exit code."""

    name: str
    help: str
    add_words: Callable[[argparse.ArgumentParser], None]
    perform: Callable[[Command, dict[str, Any]], int]


def add_person(parser: argparse.ArgumentParser, words: str = "the user who decides") -> None:
    parser.add_argument("--as", dest="person", metavar="USER", help=words)


def visit_word(text: str) -> int:
    """The type of an argument that names a visit, as ``v3``."""
    try:
        return visit_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def goes_on_with(number: int) -> str:
    """The command that takes a run on."""
    return f"`python manage.py run_workflow {number}`"


def print_done(
    command: Command, options: dict[str, Any], document: dict[str, Any], words: str, *, goes_on: bool = True
) -> int:
    """One run was changed: the document as JSON, or a line that says how it goes on unless a worker has it."""
    number = document["run"]
    if options["as_json"]:
        command.print_json(document)
    elif goes_on and driven_by(number).worker is None:
        command.stdout.write(f"run {number}: {words}; {goes_on_with(number)} goes on with it.")
    else:
        command.stdout.write(f"run {number}: {words}.")
    return ExitCode.SUCCEEDED
