"""``run_worker``: drives whatever runs are runnable, until it is told to stop."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.places import StoredPlaces
from workflows.management.progress import PlainView, SilentView, WorkerView
from workflows.management.stopping import Stopping, goodbye_rules
from workflows.management.wording import counted
from workflows.operations.crew import Crew
from workflows.operations.driving import Worker, worker_name
from workflows.operations.workers import Registration
from workflows.queries.runs import live_runs, waiting_runs
from workflows.statuses import RunStatus, WorkerKind

MOST_THREADS = 64


class Command(WaypostCommand):
    help = "Drives runs as they become runnable. Several workers may run at once, on one machine or many."

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument("--threads", type=_threads, default=4, metavar="N", help="runs driven at once (default 4)")
        parser.add_argument("--burst", action="store_true", help="end when no run can go on by itself")
        parser.add_argument(
            "--quiet", action="store_true", help="print nothing; otherwise runs that end or park, with -v 2 every step"
        )

    def perform(self, **options: Any) -> int:
        view = self.view(options)
        name = worker_name()
        goodbye = f"Handing runs back. {goodbye_rules()}"
        with Stopping(on_first=lambda: view.notice(goodbye)) as stopping:
            worker = Worker(stopping=stopping.is_stopping, pause=stopping.pause, observer=view)
            stopping.end_effects = worker.stop_effects
            if not options["quiet"]:
                self.write_now(f"worker {name} drives up to {counted(options['threads'], 'run')} at once")
            try:
                drivers = options["threads"]
                with Registration(
                    kind=WorkerKind.RUN_WORKER, drivers=drivers, is_stopping=stopping.is_stopping
                ) as registration:
                    crew = Crew(worker, drivers=drivers, on_look=registration.looked)
                    crew.work(until=lambda: options["burst"] and not live_runs())
            finally:
                view.close()
                worker.close()
        if options["burst"] and not options["quiet"] and not stopping.is_stopping():
            self.write_now(f"nothing can go on{_others(waiting_runs())}")
        return ExitCode.SUCCEEDED

    def view(self, options: dict[str, Any]) -> PlainView:
        if options["quiet"]:
            return SilentView()
        kind = PlainView if options["verbosity"] > 1 else WorkerView
        return kind(self.write_now, StoredPlaces(None))


def _others(waiting: Mapping[str, int]) -> str:
    """Whom the live runs wait for."""
    words = {RunStatus.PAUSED: "for people", RunStatus.BLOCKED: "for an operator"}
    told = [f"{waiting[status]} {text}" for status, text in words.items() if waiting.get(status)]
    return f"; waiting runs: {', '.join(told)}" if told else ""


def _threads(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_THREADS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_THREADS}")
    return int(text)
