"""``runs list|show|events|answer|signal|cancel|pause|resume|retry|skip|reconcile``."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import FAILURES, ExitCode, Refusal
from workflows.jsonvalue import read_json
from workflows.management import answers
from workflows.management.base import Command as WaypostCommand
from workflows.management.base import error_document, read_text
from workflows.management.descriptions import Beside, described, event_line, list_table
from workflows.management.targets import run_id, run_ids, visit_number
from workflows.operations import runs as operations
from workflows.operations.driving import carry_out_cancel
from workflows.operations.people import Actor, shell_actor
from workflows.operations.reconciling import Told, reconcile
from workflows.queries.events import events_after
from workflows.queries.history import state_at
from workflows.queries.questions import questions_of
from workflows.queries.runs import USUAL_LENGTH, RunFilter, run_document, run_list, run_result
from workflows.queries.waiting import driven_by, held_by, places_of, signals_awaited
from workflows.statuses import RunStatus

#: How often `--follow` looks for new events, in seconds.
FOLLOW_S = 0.5


class Command(WaypostCommand):
    help = "Lists and shows runs, and changes what becomes of them."

    def add_words(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        _add_list(actions.add_parser("list", help="the newest runs"))
        show = actions.add_parser("show", help="everything about runs")
        show.add_argument("--revision", type=int, metavar="R", help="as it was at this revision")
        events = actions.add_parser("events", help="what happened in a run")
        events.add_argument("--after", type=int, default=0, metavar="N", help="only events after this number")
        events.add_argument("--follow", action="store_true", help="wait for further events until the run has ended")
        cancel = actions.add_parser("cancel", help="end runs as cancelled")
        resume = actions.add_parser("resume", help="let held, failed, blocked and abandoned runs go on")
        retry = actions.add_parser("retry", help="try the failed or waiting step again now")
        pause = actions.add_parser("pause", help="hold runs: what runs goes on, nothing new starts")
        skip = actions.add_parser("skip", help="let the failed or waiting step of a run count as skipped")
        skip.add_argument("--visit", type=_visit, metavar="V", help="which step, as v3; default: the only one")
        answer = actions.add_parser("answer", help="answer an open question of a run")
        signal = actions.add_parser("signal", help="send a signal to a run")
        answers.add_answer(answer)
        answers.add_signal(signal)
        decide = actions.add_parser("reconcile", help="say what became of a step whose worker died")
        for action in (show, cancel, pause, resume, retry):
            action.add_argument(
                "runs", nargs="+", metavar="RUN", help="number of a run; - reads numbers from standard input"
            )
        for action in (events, skip, decide):
            action.add_argument("run", metavar="RUN", help="number of a run")
        for action in (cancel, pause, resume, retry, skip, decide):
            action.add_argument("--as", dest="person", metavar="USER", help="the user who decides")
            action.add_argument("--reason", default="", help="why; kept with the decision")
        _add_decision(decide)
        for action in actions.choices.values():
            action.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        code: int = getattr(self, f"do_{options['action']}")(**options)
        return code

    # ---- looking ----------------------------------------------------------------------------------------------------

    def do_list(self, *, as_json: bool, limit: int, **options: Any) -> int:
        wanted = RunFilter(
            workflow=options["workflow"],
            statuses=tuple(options["status"] or ()),
            started_by=options["started_by"],
            live=True if options["live"] else None,
            before=options["before"],
        )
        rows = run_list(wanted, limit=limit)
        if as_json:
            self.print_json(rows)
        elif rows:
            self.print_lines(list_table(rows))
        else:
            self.stdout.write("There are no such runs.")
        return ExitCode.SUCCEEDED

    def do_show(self, *, runs: list[str], revision: int | None, as_json: bool, **options: Any) -> int:
        documents = [
            run_document(number) if revision is None else state_at(number, revision) for number in run_ids(runs)
        ]
        if as_json:
            self.print_json(documents[0] if len(documents) == 1 else documents)
        else:
            for document in documents:
                self.print_lines(described(document, _beside(document["run"]) if revision is None else None))
        return ExitCode.SUCCEEDED

    def do_events(self, *, run: str, after: int, follow: bool, as_json: bool, **options: Any) -> int:
        number, cursor = run_id(run), after
        listed: list[dict[str, Any]] = []
        while True:
            page = events_after(number, cursor)
            cursor = page.cursor
            if as_json and not follow:
                listed += page.events
            for event in page.events if follow or not as_json else ():
                self.stdout.write(json.dumps(event, ensure_ascii=False) if as_json else event_line(event))
            if not page.events and (page.is_over or not follow):
                break
            if not page.events:
                time.sleep(FOLLOW_S)
            self.stdout.flush()
        if as_json and not follow:
            self.print_json(listed)
        return ExitCode.SUCCEEDED

    # ---- changing ---------------------------------------------------------------------------------------------------

    def do_cancel(self, **options: Any) -> int:
        return self.for_each(options, _cancel)

    def do_resume(self, **options: Any) -> int:
        return self.for_each(options, _resume)

    def do_retry(self, **options: Any) -> int:
        return self.for_each(options, _retry)

    def do_pause(self, **options: Any) -> int:
        return self.for_each(options, _pause)

    def do_skip(self, **options: Any) -> int:
        number = run_id(options["run"])
        actor = shell_actor(options["person"])
        visit = operations.skip(number, actor=actor, reason=options["reason"], visit=options["visit"])
        return self.done(options, {"run": number, "visit": visit}, f"v{visit} counts as skipped")

    def do_answer(self, **options: Any) -> int:
        answered = answers.carry_out_answer(options)
        document = {
            "run": answered.run_id,
            "interrupt": f"v{answered.visit}",
            "settled": answered.settled,
            "new": answered.new,
            "votes": answered.votes,
            "quorum": answered.quorum,
        }
        if answered.settled:
            return self.done(options, document, f"v{answered.visit} is answered")
        return self.done(
            options, document, f"v{answered.visit} has {answered.votes} of {answered.quorum} approvals", goes_on=False
        )

    def do_signal(self, **options: Any) -> int:
        awaited = signals_awaited(run_id(options["run"]))
        number, is_new = answers.carry_out_signal(options)
        words = _kept(options["name"], awaited) if is_new else "the signal was accepted before"
        return self.done(options, {"run": number, "new": is_new}, words)

    def done(self, options: dict[str, Any], document: dict[str, Any], words: str, *, goes_on: bool = True) -> int:
        number = document["run"]
        if options["as_json"]:
            self.print_json(document)
        elif goes_on and not operations.is_driven(number):
            self.stdout.write(f"run {number}: {words}; `run_workflow {number}` goes on with it.")
        else:
            self.stdout.write(f"run {number}: {words}.")
        return ExitCode.SUCCEEDED

    def do_reconcile(self, **options: Any) -> int:
        number = run_id(options["run"])
        visit = reconcile(number, _told(options), actor=shell_actor(options["person"]), visit=options["visit"])
        document = {"run": number, "visit": visit, "decision": options["decision"]}
        return self.done(options, document, f"v{visit} is reconciled")

    def for_each(self, options: dict[str, Any], action: Callable[[int, Actor, str], str]) -> int:
        """Do the same to every run; a refusal of one does not stop the others. The exit code is the first refusal's."""
        actor = shell_actor(options["person"])
        answers: list[dict[str, Any]] = []
        code: int = ExitCode.SUCCEEDED
        for number in run_ids(options["runs"]):
            try:
                done = action(number, actor, options["reason"])
                answers.append({"run": number, "done": done, "status": run_result(number)["status"], "error": None})
                if not options["as_json"]:
                    self.stdout.write(f"run {number}: {done}")
            except Refusal as refusal:
                code = code or refusal.exit_code
                answers.append({"run": number, "done": None, "status": None, "error": error_document(refusal)})
                if not options["as_json"]:
                    self.refused(refusal, as_json=False)
        if options["as_json"]:
            self.print_json(answers)
        return code


def _beside(number: int) -> Beside:
    return Beside(
        questions=questions_of(number), held=held_by(number), slots=places_of(number), driven=driven_by(number)
    )


def _kept(name: str, awaited: Mapping[int, str]) -> str:
    """What becomes of a signal, by what is waited for as it comes."""
    if name in awaited.values():
        return "the signal was accepted"
    others = ", ".join(f'v{visit} waits for "{other}"' for visit, other in sorted(awaited.items()))
    return f'the signal is kept: no step waits for "{name}" now' + (f"; {others}" if others else "")


def _cancel(number: int, actor: Actor, reason: str) -> str:
    is_new = operations.cancel(number, actor=actor, reason=reason)
    if operations.ends_without_steps(number):
        carry_out_cancel(number)
    status = run_result(number)["status"]
    if status == RunStatus.CANCELLED:
        return "cancelled" if is_new else "was cancelled already"
    if operations.is_driven(number):
        return "is being cancelled by its worker"
    return f"is being cancelled; `run_workflow {number}` runs its closing steps"


def _resume(number: int, actor: Actor, reason: str) -> str:
    how = operations.resume(number, actor=actor, reason=reason)
    words = {"released": "is no longer held", "reopened": "is open again", "woken": "will be looked at again"}
    return f"{words[how]}; `run_workflow {number}` goes on with it"


def _pause(number: int, actor: Actor, reason: str) -> str:
    is_new = operations.pause(number, actor=actor, reason=reason)
    return f"is held; `runs resume {number}` lets it go on" if is_new else "was held already"


def _retry(number: int, actor: Actor, reason: str) -> str:
    how = operations.retry(number, actor=actor, reason=reason)
    words = {"hurried": "tries again now", "reopened": "is open again at the step that failed"}
    return f"{words[how]}; `run_workflow {number}` goes on with it"


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="runs of this workflow")
    parser.add_argument(
        "--status", action="append", choices=[str(status) for status in RunStatus], help="may be repeated"
    )
    parser.add_argument("--live", action="store_true", help="runs that have not ended")
    parser.add_argument("--started-by", metavar="USER", help="runs that this user started")
    parser.add_argument("--before", type=int, metavar="RUN", help="runs with a lower number")
    parser.add_argument("--limit", type=_length, default=USUAL_LENGTH, metavar="N", help=f"default: {USUAL_LENGTH}")


def _add_decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "decision", choices=["happened", "did_not", "stop"], help="what became of the interrupted attempt"
    )
    parser.add_argument(
        "--visit", type=_visit, metavar="V", help="which step, as v3; may be left out when only one waits"
    )
    happened = parser.add_argument_group("what happened")
    happened.add_argument("--outcome", help="the outcome; default: the step's main one")
    output = happened.add_mutually_exclusive_group()
    output.add_argument("--output", metavar="JSON", help="the output as JSON; @FILE reads it from a file")
    output.add_argument("--text", help="the output as text; @FILE reads it from a file")
    codes = ", ".join(code for code, rule in FAILURES.items() if rule.retryable)
    happened.add_argument("--error", metavar="CODE", help=f"it failed, with this error: {codes}")
    happened.add_argument("--message", default="", help="the message of the error")
    happened.add_argument("--exit-code", type=int, metavar="N", help="the exit code of the process")


def _told(options: dict[str, Any]) -> Told:
    says = {name: options[name] for name in ("outcome", "output", "text", "error", "message", "exit_code")}
    given = [name for name, value in says.items() if value not in (None, "")]
    if options["decision"] != "happened" and given:
        raise Refusal("input.invalid", reason=f'--{given[0].replace("_", "-")} belongs to "happened".')
    return Told(
        decision=options["decision"],
        reason=options["reason"],
        outcome=options["outcome"],
        output=_output(options["output"], options["text"]),
        error_code=options["error"],
        message=options["message"],
        exit_code=options["exit_code"],
    )


def _output(as_json: str | None, text: str | None) -> Any:
    if text is not None:
        return read_text(text[1:]) if text.startswith("@") else text
    if as_json is None:
        return None
    value, problems = read_json(read_text(as_json[1:]) if as_json.startswith("@") else as_json)
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message.replace("The file is", "The output is", 1))
    return value


def _visit(text: str) -> int:
    try:
        return visit_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _length(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)
