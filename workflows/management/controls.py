"""``runs cancel|resume|retry|pause|skip``: what operators do to runs, one or several at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from workflows.errors import ExitCode, Refusal
from workflows.management.actions import RunAction, add_person, goes_on_with, print_done, visit_word
from workflows.management.base import Command, error_document
from workflows.management.targets import run_id, run_ids
from workflows.operations import runs as operations
from workflows.operations.driving import carry_out_cancel
from workflows.operations.people import Actor, shell_actor
from workflows.queries.runs import run_result
from workflows.statuses import RunStatus

Change = Callable[[int, Actor, str], str]


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input")
    add_person(parser)
    parser.add_argument("--reason", default="", help="why; kept with the decision")


def _for_each(change: Change, command: Command, options: dict[str, Any]) -> int:
    """Do the same to every run; a refusal of one does not stop the others. The exit code is the first refusal's."""
    actor = shell_actor(options["person"])
    answers: list[dict[str, Any]] = []
    code: int = ExitCode.SUCCEEDED
    for number in run_ids(options["runs"]):
        try:
            done = change(number, actor, options["reason"])
            answers.append({"run": number, "done": done, "status": run_result(number)["status"], "error": None})
            if not options["as_json"]:
                command.stdout.write(f"run {number}: {done}")
        except Refusal as refusal:
            code = code or refusal.exit_code
            answers.append({"run": number, "done": None, "status": None, "error": error_document(refusal)})
            if not options["as_json"]:
                command.refused(refusal, as_json=False)
    if options["as_json"]:
        command.print_json(answers)
    return code


def _cancel(number: int, actor: Actor, reason: str) -> str:
    is_new = operations.cancel(number, actor=actor, reason=reason)
    if operations.ends_without_steps(number):
        carry_out_cancel(number)
    status = run_result(number)["status"]
    if status == RunStatus.CANCELLED:
        return "cancelled" if is_new else "was cancelled already"
    if operations.is_driven(number):
        return "is being cancelled by its worker"
    return f"is being cancelled; {goes_on_with(number)} runs its closing steps"


def _resume(number: int, actor: Actor, reason: str) -> str:
    how = operations.resume(number, actor=actor, reason=reason)
    words = {"released": "is no longer held", "reopened": "is open again", "woken": "will be looked at again"}
    return f"{words[how]}; {goes_on_with(number)} goes on with it"


def _pause(number: int, actor: Actor, reason: str) -> str:
    is_new = operations.pause(number, actor=actor, reason=reason)
    lifts = f"`python manage.py runs resume {number}`"
    return f"is held; {lifts} lets it go on" if is_new else "was held already"


def _retry(number: int, actor: Actor, reason: str) -> str:
    how = operations.retry(number, actor=actor, reason=reason)
    words = {"hurried": "tries again now", "reopened": "is open again at the step that failed"}
    return f"{words[how]}; {goes_on_with(number)} goes on with it"


def _add_skip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--visit", type=visit_word, metavar="V", help="which step, as v3; default: the only one")
    parser.add_argument("run", metavar="RUN", help="number of a run")
    add_person(parser)
    parser.add_argument("--reason", default="", help="why; kept with the decision")


def _skip(command: Command, options: dict[str, Any]) -> int:
    number = run_id(options["run"])
    actor = shell_actor(options["person"])
    visit = operations.skip(number, actor=actor, reason=options["reason"], visit=options["visit"])
    return print_done(command, options, {"run": number, "visit": visit}, f"v{visit} counts as skipped")


def _several(name: str, help: str, change: Change) -> RunAction:
    return RunAction(name=name, help=help, add_words=_add_words, perform=partial(_for_each, change))


CANCEL = _several("cancel", "end runs as cancelled", _cancel)
RESUME = _several("resume", "let held, failed, blocked and abandoned runs go on", _resume)
RETRY = _several("retry", "try the failed or waiting step again now", _retry)
PAUSE = _several("pause", "hold runs: what runs goes on, nothing new starts", _pause)
SKIP = RunAction(
    name="skip", help="let the failed or waiting step of a run count as skipped", add_words=_add_skip, perform=_skip
)
