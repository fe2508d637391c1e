"""``run_workflow NAME|FILE|RUN``: start a run and drive it, or go on with one."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from django.core.management.base import CommandParser

from workflows.definitions.durations import parse_duration
from workflows.errors import Refusal
from workflows.management.base import Command as WaypostCommand
from workflows.management.base import json_text
from workflows.management.definitions import target_definition
from workflows.management.exits import exit_code_of
from workflows.management.moments import later_moment
from workflows.management.parameters import given_parameters
from workflows.management.places import StoredPlaces
from workflows.management.progress import PlainView, SilentView
from workflows.management.questions import MOST_QUESTIONS
from workflows.management.results import result_lines
from workflows.management.stopping import Stopping, goodbye_rules
from workflows.management.targets import run_id
from workflows.management.telling import Teller
from workflows.operations.crew import drive_tree
from workflows.operations.driving import Worker
from workflows.operations.people import shell_actor
from workflows.operations.runs import Start, start
from workflows.operations.workers import told_when_it_takes_long
from workflows.queries.questions import open_questions
from workflows.queries.runs import find_run, run_document, run_result
from workflows.queries.waiting import driven_by, status_of_tree, tree_of


class Command(WaypostCommand):
    help = "Starts a run of a workflow and drives it to its end; with the number of a run, goes on with it."

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument(
            "target", metavar="NAME|FILE|RUN", help="a workflow, a workflow file, or a run to go on with"
        )
        parser.add_argument(
            "-P",
            "--param",
            action="append",
            default=[],
            dest="params",
            metavar="NAME=VALUE",
            help="a parameter: name=text, name:=json, or name=@file",
        )
        parser.add_argument("--input", metavar="FILE", help="a JSON file with parameters, - for standard input")
        parser.add_argument("--key", help="idempotency key: a second start with the same key is the same run")
        parser.add_argument("--as", dest="person", metavar="USER", help="the user who starts the run")
        parser.add_argument(
            "--over-limit",
            metavar="REASON",
            help="start beside a full concurrency key without taking a slot; the reason is recorded",
        )
        parser.add_argument("--title", default="", help="a title for the run")
        parser.add_argument(
            "--at",
            type=later_moment,
            metavar="MOMENT",
            help="start then, not now: 2026-01-31T09:30, or 2h from now; a worker drives it",
        )
        parser.add_argument(
            "--max-steps", type=_positive, metavar="N", help="hand the run back after N visits of steps"
        )
        parser.add_argument("--timeout", type=_seconds, metavar="DURATION", help="hand the run back after this time")
        parser.add_argument("--quiet", action="store_true", help="print the result and nothing else")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object at the end")

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **options)
        # takes words that nothing else takes, to say what they were meant to be; no part of the usage
        parser.add_argument("more", nargs="*", default=[], help=argparse.SUPPRESS)
        return parser

    def perform(self, **options: Any) -> int:
        if options["more"]:
            word = options["more"][0]
            advice = f"A parameter is given with -P: `-P {shlex.quote(word)}`." if "=" in word else ""
            raise Refusal("input.invalid", reason=f'"{word}" is one word too many.', advice=advice)
        target: str = options["target"]
        if target.isascii() and target.isdigit():
            return self.go_on(run_id(target), options)
        return self.begin(target, options)

    def begin(self, target: str, options: dict[str, Any]) -> int:
        given = given_parameters(options["params"], options["input"])
        definition = target_definition(target)
        started = start(
            Start(
                definition=definition,
                actor=shell_actor(options["person"]),
                given=given.values,
                from_text=given.from_text,
                title=options["title"],
                key=options["key"],
                over_limit=options["over_limit"],
                start_at=options["at"],
            )
        )
        for warning in started.warnings:
            if warning.code == "W601" or not options["quiet"]:
                self.print_problem(warning, target if warning.line else None)
        if options["at"] is not None:
            self.print_result(started.run_id, options)
            return exit_code_of(status_of_tree(started.run_id))
        return self.drive(started.run_id, options)

    def go_on(self, number: int, options: dict[str, Any]) -> int:
        named = {
            "-P": options["params"],
            "--input": options["input"],
            "--key": options["key"],
            "--title": options["title"],
            "--at": options["at"],
        }
        extra = [name for name, value in named.items() if value]
        if extra:
            raise Refusal(
                "input.invalid", reason=f"Run {number} exists already; {extra[0]} belongs to the start of a run."
            )
        return self.drive(number, options)

    def drive(self, number: int, options: dict[str, Any]) -> int:
        """Drive a run and print what became of it."""
        run = find_run(number)
        is_silent = options["quiet"] or options["as_json"]
        if not is_silent:
            self.write_now(f"run {number}: {run.workflow.name}" + (f" ({run.title})" if run.title else ""))
        view = self.view(is_silent, number)
        teller = Teller(view, number)
        goodbye = (
            f"Handing run {number} back; `python manage.py run_workflow {number}` goes on with it. {goodbye_rules()}"
        )
        with Stopping(on_first=lambda: view.notice(goodbye), deadline_s=options["timeout"]) as stopping:

            def pause(seconds: float) -> None:
                teller.look()
                stopping.pause(seconds)

            worker = Worker(stopping=stopping.is_stopping, pause=pause, observer=view)
            stopping.end_effects = worker.stop_effects
            try:
                with told_when_it_takes_long(stopping.is_stopping):
                    drive_tree(worker, number, max_visits=options["max_steps"], on_idle=teller.look)
            finally:
                view.close()
                worker.close()
        self.print_result(number, options)
        return exit_code_of(status_of_tree(number))

    def view(self, is_silent: bool, number: int) -> PlainView:
        """How progress is shown: not at all, as plain lines, or on a terminal live."""
        if is_silent:
            return SilentView()
        if not (self.stdout.isatty() and sys.stdout.isatty()):
            return PlainView(self.write_now, StoredPlaces(number))
        from rich.console import Console  # slow to import, and only terminals need it

        from workflows.management.live import LiveView  # slow to import

        console = Console()
        places = StoredPlaces(number)
        return PlainView(self.write_now, places) if console.is_dumb_terminal else LiveView(console, places)

    def print_result(self, number: int, options: dict[str, Any]) -> None:
        if options["as_json"]:
            self.write_now(json_text(run_document(number)))
            return
        questions = open_questions(tree_of(number), limit=MOST_QUESTIONS)
        driven, result = driven_by(number), run_result(number)
        for line in result_lines(result, quiet=options["quiet"], questions=questions, driven=driven):
            self.write_now(line)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    """A duration such as 30s, in seconds."""
    try:
        milliseconds = parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; examples: 30s, 5m, 2h") from None
    return milliseconds / 1000
