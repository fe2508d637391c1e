"""``runs bulk``: the same to many runs that a filter finds, with a look at them first."""

from __future__ import annotations

import argparse
import sys
import uuid
from dataclasses import asdict
from typing import Any

from workflows.errors import ExitCode, Refusal
from workflows.management.actions import RunAction, add_person
from workflows.management.base import Command
from workflows.management.tables import table
from workflows.management.targets import run_ids
from workflows.management.wording import counted
from workflows.models import RunFilter
from workflows.operations import bulk
from workflows.operations.people import Actor, shell_actor
from workflows.statuses import RunStatus

#: How long the command works between two looks at what to print, in seconds.
SLICE_S = 1.0
_OLD = ("show", "continue", "abort")


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=[*bulk.ACTIONS, *_OLD],
        help="what to do to the runs; or show, continue or abort a bulk action that was made before",
    )
    parser.add_argument("number", nargs="?", type=_number, metavar="N", help="the bulk action to show, continue, abort")
    chosen = parser.add_argument_group("which runs", "at least one of these; a run is meant when all of them fit")
    chosen.add_argument("--status", action="append", choices=[str(status) for status in RunStatus], help="repeatable")
    chosen.add_argument("--workflow", metavar="NAME", help="runs of this workflow")
    chosen.add_argument("--started-by", metavar="USER", help="runs that this user started")
    chosen.add_argument("--error", metavar="CODE", help="runs that failed with this error")
    chosen.add_argument("--text", help="runs with this text in their title")
    chosen.add_argument("--stalled", action="store_true", help="runs that could go on and that no worker drives")
    chosen.add_argument("--run", action="append", metavar="RUN", help="these runs; - reads numbers from standard input")
    parser.add_argument("--reason", default="", help="why; kept with every run")
    parser.add_argument("--request-id", metavar="ID", help="the same id again finds the action that was made with it")
    parser.add_argument("--dry-run", action="store_true", help="say which runs are meant; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_person(parser)


def _bulk(command: Command, options: dict[str, Any]) -> int:
    actor = shell_actor(options["person"])
    if options["what"] in _OLD:
        return _old(command, options, actor)
    if options["number"] is not None:
        raise Refusal("input.invalid", reason=f"To {options['what']} single runs use `runs {options['what']} RUN …`.")
    chosen = _filter(options)
    found = bulk.preview(options["what"], chosen, actor=actor)
    if options["dry_run"]:
        _print_preview(command, options, found)
        return ExitCode.SUCCEEDED
    if found.runs and not options["yes"] and not _is_agreed(command, options, found):
        command.stderr.write("Nothing was changed.")
        return ExitCode.FAILED
    request_id = options["request_id"] or uuid.uuid4().hex
    number = bulk.create(options["what"], chosen, actor=actor, reason=options["reason"], request_id=request_id)
    return _carry_on(command, options, number, actor)


def _filter(options: dict[str, Any]) -> RunFilter:
    return RunFilter(
        workflow=options["workflow"],
        statuses=tuple(options["status"] or ()),
        started_by=options["started_by"],
        error_code=options["error"],
        text=options["text"],
        is_stalled=options["stalled"],
        numbers=tuple(run_ids(options["run"])) if options["run"] else (),
    )


def _is_agreed(command: Command, options: dict[str, Any], found: bulk.Preview) -> bool:
    if options["as_json"] or not sys.stdin.isatty():
        raise Refusal(
            "input.invalid",
            reason=f"{counted(found.runs, 'run')} would be changed, and nobody can be asked.",
            advice="`--yes` goes ahead, `--dry-run` shows which runs are meant.",
        )
    _print_preview(command, options, found)
    return input(f"{options['what'].capitalize()} them? [y/N] ").strip().lower() in ("y", "yes")


def _print_preview(command: Command, options: dict[str, Any], found: bulk.Preview) -> None:
    if options["as_json"]:
        command.print_json(asdict(found))
        return
    command.stdout.write(
        f"{counted(found.runs, 'run')} meant; {options['what']} can do something to {found.can_change}."
    )
    for counts in (found.by_status, found.by_workflow):
        command.stdout.write("    " + ", ".join(f"{name}: {count}" for name, count in counts.items()))
    command.stdout.write("    what it may cost to go on with them: unknown")
    if found.too_many:
        command.stdout.write(f"    more than {bulk.MOST_RUNS} runs: narrow the filter down")


def _carry_on(command: Command, options: dict[str, Any], number: int, actor: Actor) -> int:
    """Do the action to its end. Ctrl-C leaves the rest to whoever continues it."""
    try:
        how_far = bulk.progress(number)
        while not how_far.is_over:
            left = how_far.left
            how_far = bulk.carry_on(number, seconds=SLICE_S)
            if how_far.left == left:
                break  # somebody else works on what is left
    except KeyboardInterrupt:
        command.stderr.write(f"\nStopped. `python manage.py runs bulk continue {number}` goes on.")
        raise
    return _print_progress(command, options, how_far, actor)


def _print_progress(command: Command, options: dict[str, Any], how_far: bulk.Progress, actor: Actor) -> int:
    rows: list[dict[str, Any]] = []
    while page := bulk.results(how_far.bulk, actor=actor, after=rows[-1]["position"] if rows else 0, limit=1_000):
        rows += page
    if options["as_json"]:
        command.print_json({**asdict(how_far), "results": rows})
    else:
        if rows:
            told = [[row["run"], row["result"] or "not done", row["message"]] for row in rows]
            command.print_lines(table(["RUN", "RESULT", ""], told))
        command.stdout.write(_summed(how_far))
    return ExitCode.FAILED if how_far.refused or how_far.left else ExitCode.SUCCEEDED


def _summed(how_far: bulk.Progress) -> str:
    parts = [f"{how_far.done} of {counted(how_far.total, 'run')} done"]
    if how_far.refused:
        parts.append(f"{how_far.refused} refused")
    if how_far.left:
        how = (
            "left as they are" if how_far.is_aborted else f"left (`python manage.py runs bulk continue {how_far.bulk}`)"
        )
        parts.append(f"{how_far.left} {how}")
    return f"bulk action {how_far.bulk}, {how_far.action}: {', '.join(parts)}."


def _old(command: Command, options: dict[str, Any], actor: Actor) -> int:
    number = options["number"]
    if number is None:
        raise Refusal("input.invalid", reason=f"Which bulk action? `runs bulk {options['what']} N`.")
    if options["what"] == "continue":
        return _carry_on(command, options, number, actor)
    if options["what"] == "abort":
        bulk.abort(number, actor=actor)
    code = _print_progress(command, options, bulk.progress(number), actor)
    return code if options["what"] == "show" else ExitCode.SUCCEEDED


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a bulk action")
    return int(text)


BULK = RunAction(name="bulk", help="the same to all runs that a filter finds", add_words=_add_words, perform=_bulk)
