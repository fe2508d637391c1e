"""``runs keep``: runs that stay whatever ``prune_runs`` is told."""

from __future__ import annotations

import argparse
from typing import Any

from workflows.errors import ExitCode, Refusal
from workflows.management.actions import RunAction, add_person
from workflows.management.base import Command, error_document
from workflows.management.targets import run_ids
from workflows.operations.people import shell_actor
from workflows.operations.pruning import keep, stop_keeping


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input")
    parser.add_argument("--off", action="store_true", help="end the audit hold")
    parser.add_argument("--reason", default="", help="why; needed to put a run on hold")
    add_person(parser)


def _keep(command: Command, options: dict[str, Any]) -> int:
    """A refusal of one run does not stop the others; the exit code is that of the first one."""
    actor = shell_actor(options["person"])
    answers: list[dict[str, Any]] = []
    code: int = ExitCode.SUCCEEDED
    for number in run_ids(options["runs"]):
        try:
            change = stop_keeping if options["off"] else keep
            is_new = change(number, actor=actor, reason=options["reason"])
        except Refusal as refusal:
            code = code or refusal.exit_code
            answers.append({"run": number, "kept": None, "new": False, "error": error_document(refusal)})
            if not options["as_json"]:
                command.refused(refusal, as_json=False)
            continue
        answers.append({"run": number, "kept": not options["off"], "new": is_new, "error": None})
        if not options["as_json"]:
            command.stdout.write(f"run {number}: {_words(options['off'], is_new)}")
    if options["as_json"]:
        command.print_json(answers)
    return code


def _words(off: bool, is_new: bool) -> str:
    if off:
        return "is no longer on audit hold" if is_new else "was not on audit hold"
    return "is kept: it will not be pruned" if is_new else "was kept already"


KEEP = RunAction(name="keep", help="keep runs from being pruned (audit hold)", add_words=_add_words, perform=_keep)
