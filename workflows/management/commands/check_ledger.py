"""``check_ledger``: whether the rows of every run tell one story."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.targets import run_ids
from workflows.management.wording import counted
from workflows.operations.checking import Checked, check_ledger, count_runs

#: Problems of one run that are printed; JSON has all of them.
MOST_PRINTED = 50
#: How often the line of progress is renewed, in seconds.
PROGRESS_S = 0.5


class Command(WaypostCommand):
    help = (
        "Checks that the rows of runs agree with each other, with their history and with their digests. Changes "
        "nothing, and may run while workers do. Exit code 1 when something is wrong."
    )

    def add_words(self, parser: CommandParser) -> None:
        parser.add_argument(
            "runs",
            nargs="*",
            metavar="RUN",
            help="number of a run; - reads numbers from standard input; default: all runs, and what belongs to none",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        as_json: bool = options["as_json"]
        numbers = run_ids(options["runs"]) if options["runs"] else None
        progress = _Progress(self, len(numbers) if numbers is not None else count_runs())
        found: list[Checked] = []
        for checked in check_ledger(numbers):
            progress.step(checked)
            if checked.problems:
                found.append(checked)
                progress.clear()
                if not as_json:
                    self._print_problems(checked)
        progress.clear()
        if as_json:
            self.print_json(_document(found, progress.runs))
        else:
            self._print_sum(found, progress.runs)
        return ExitCode.FAILED if found else ExitCode.SUCCEEDED

    def _print_problems(self, checked: Checked) -> None:
        name = "beside the runs" if checked.run is None else f"run {checked.run}"
        self.write_now(f"{name}: {counted(len(checked.problems), 'problem')}")
        for problem in checked.problems[:MOST_PRINTED]:
            self.write_now(f"    {problem}")
        if len(checked.problems) > MOST_PRINTED:
            self.write_now(f"    and {len(checked.problems) - MOST_PRINTED} more")

    def _print_sum(self, found: list[Checked], runs: int) -> None:
        bad = sum(1 for checked in found if checked.run is not None)
        if found:
            beside = " and what is beside them" if any(checked.run is None for checked in found) else ""
            self.stdout.write(f"{counted(runs, 'run')} checked; problems in {bad}{beside}.")
        else:
            self.stdout.write(f"{counted(runs, 'run')} checked; everything agrees.")


def _document(found: list[Checked], runs: int) -> dict[str, Any]:
    return {
        "checked": runs,
        "sound": not found,
        "runs": [{"run": one.run, "problems": list(one.problems)} for one in found if one.run is not None],
        "beside": [problem for one in found if one.run is None for problem in one.problems],
    }


class _Progress:
    """A line on the terminal that says how far the check is; nothing when nobody looks."""

    def __init__(self, command: WaypostCommand, total: int) -> None:
        self.runs = 0
        self._command = command
        self._total = total
        self._shows = command.stderr.isatty()
        self._shown_at = time.monotonic()
        self._is_shown = False

    def step(self, checked: Checked) -> None:
        if checked.run is None:
            return
        self.runs += 1
        if self._shows and time.monotonic() - self._shown_at >= PROGRESS_S:
            self._shown_at, self._is_shown = time.monotonic(), True
            self._write(f"\r{self.runs} of {max(self._total, self.runs)} runs checked")

    def clear(self) -> None:
        if self._is_shown:
            self._write("\r\x1b[K")
            self._is_shown = False

    def _write(self, text: str) -> None:
        self._command.stderr.write(text, ending="")
        self._command.stderr.flush()
