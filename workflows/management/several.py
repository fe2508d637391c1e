"""The same action for one run or several: confirmed, rehearsed with ``--dry-run``, told run by run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from workflows.errors import ExitCode, Refusal
from workflows.management.actions import RunAction, add_person
from workflows.management.base import Command, error_document
from workflows.management.targets import run_ids
from workflows.operations.people import Actor, shell_actor
from workflows.operations.runs import status_of

#: Runs that a question names.
MOST_NAMED = 10

Options = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``act`` does it to one run and says in words what was done; ``foresee`` says what would be, and writes nothing.
    Before anything is asked or done, ``prepare`` reads the options and then ``check`` the runs that are named.
    ``add_words`` come after the runs."""

    name: str
    help: str
    act: Callable[[int, Actor, Options], str]
    foresee: Callable[[int, Options], str]
    prepare: Callable[[Options], None] = lambda options: None
    check: Callable[[Options, list[int]], None] = lambda options, numbers: None
    add_words: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def action_of(change: Change) -> RunAction:
    """The sub-action of ``runs`` that makes this change."""

    def add_words(parser: argparse.ArgumentParser) -> None:
        _add_runs(parser)
        change.add_words(parser)

    return RunAction(
        name=change.name,
        help=change.help,
        add_words=add_words,
        perform=lambda command, options: _perform(change, command, options),
    )


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input")
    add_person(parser)
    parser.add_argument("--reason", default="", help="why; kept with the decision")
    parser.add_argument("--dry-run", action="store_true", help="say what would happen to each run, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask before several runs are changed")


def _perform(change: Change, command: Command, options: Options) -> int:
    """A refusal of one run does not stop the others. The exit code is the first refusal's."""
    change.prepare(options)
    numbers = run_ids(options["runs"])
    change.check(options, numbers)
    if options["dry_run"]:
        results = list(_foreseen(change, command, options, numbers))
    else:
        actor = shell_actor(options["person"])
        if not _is_confirmed(change, command, options, numbers):
            command.stderr.write("Nothing was changed.")
            return ExitCode.FAILED
        results = list(_done(change, command, options, numbers, actor))
    if options["as_json"]:
        command.print_json([document for document, _ in results])
    return next((code for _, code in results if code), ExitCode.SUCCEEDED)


def _done(
    change: Change, command: Command, options: Options, numbers: list[int], actor: Actor
) -> Iterator[tuple[dict[str, Any], int]]:
    for number in numbers:
        try:
            done = change.act(number, actor, options)
            document = {"run": number, "done": done, "status": status_of(number), "error": None}
        except Refusal as refusal:
            yield _refused(command, options, number, refusal, "done")
            continue
        if not options["as_json"]:
            command.write_now(f"run {number}: {done}")
        yield document, ExitCode.SUCCEEDED


def _foreseen(
    change: Change, command: Command, options: Options, numbers: list[int]
) -> Iterator[tuple[dict[str, Any], int]]:
    for number in numbers:
        try:
            words = change.foresee(number, options)
            document = {"run": number, "would": words, "status": status_of(number), "error": None}
        except Refusal as refusal:
            yield _refused(command, options, number, refusal, "would")
            continue
        if not options["as_json"]:
            command.write_now(f"run {number}: {words}")
        yield document, ExitCode.SUCCEEDED


def _refused(command: Command, options: Options, number: int, refusal: Refusal, key: str) -> tuple[dict[str, Any], int]:
    if not options["as_json"]:
        command.refused(refusal, as_json=False)
    return {"run": number, key: None, "status": None, "error": error_document(refusal)}, refusal.exit_code


def _is_confirmed(change: Change, command: Command, options: Options, numbers: list[int]) -> bool:
    """Several runs are changed when somebody says so. Raises ``input.invalid`` where nobody can be asked."""
    if len(numbers) < 2 or options["yes"]:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refusal(
            "input.invalid",
            reason=f"{len(numbers)} runs are named, and nobody can be asked whether all are meant.",
            advice="`--yes` says so; `--dry-run` shows what would happen.",
        )
    named = ", ".join(str(number) for number in numbers[:MOST_NAMED])
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    command.stderr.write(f"{change.name.capitalize()} {len(numbers)} runs ({named}{more})? [y/N] ", ending="")
    command.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
