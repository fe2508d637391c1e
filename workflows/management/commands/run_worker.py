"""``run_worker``: drives whatever runs are runnable, until it is told to stop."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from workflows.management.base import Command as WaypostCommand
from workflows.management.progress import PlainView, SilentView
from workflows.management.stopping import Stopping
from workflows.operations.crew import Crew
from workflows.operations.driving import Worker, worker_name
from workflows.queries.runs import live_runs


class Command(WaypostCommand):
    help = "Drives runs as they become runnable. Several workers may run at once, on one machine or many."

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument("--threads", type=int, default=4, metavar="N", help="runs driven at once (default 4)")
        parser.add_argument("--burst", action="store_true", help="end when no run can go on by itself")
        parser.add_argument("--quiet", action="store_true", help="do not print what happens")

    def perform(self, **options: Any) -> int:
        view = SilentView() if options["quiet"] else PlainView(self.write_now)
        name = worker_name()
        goodbye = "Handing runs back. Once more ends what runs, a third time ends this command."
        with Stopping(on_first=lambda: view.notice(goodbye), deadline_s=None) as stopping:
            worker = Worker(stopping=stopping.is_stopping, pause=stopping.pause, observer=view)
            stopping.end_effects = worker.stop_effects
            view.notice(f"worker {name} drives up to {options['threads']} runs at once")
            try:
                crew = Crew(worker, drivers=max(1, options["threads"]))
                crew.work(until=lambda: options["burst"] and not live_runs())
            finally:
                view.close()
                worker.close()
        return 0

    def write_now(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
