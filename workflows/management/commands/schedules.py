"""``schedules list|show|next|pause|resume|run-now``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from workflows.errors import ExitCode
from workflows.management.base import Command as WaypostCommand
from workflows.management.tables import table
from workflows.management.wording import counted
from workflows.operations import schedules as operation
from workflows.operations.people import shell_actor
from workflows.queries.schedules import FireRow, ScheduleRow, fires_of, next_of, schedule_list, schedule_of
from workflows.statuses import FireStatus

MOST_NEXT = 1_000
_WHAT = {
    "list": "all schedules, or those of one workflow",
    "show": "one schedule: its next times, and what became of the others",
    "next": "the next times of a schedule, or of a cron expression",
    "pause": "let no time of a schedule start a run",
    "resume": "let a paused schedule go on with its first time from now on",
    "run-now": "start a run of a schedule at once, whatever else runs",
}


class Command(WaypostCommand):
    help = "Lists, shows, pauses and resumes schedules, and starts their runs at once."

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        for name, text in _WHAT.items():
            action = actions.add_parser(name, help=text)
            if name == "list":
                action.add_argument("--workflow", default="", metavar="NAME", help="schedules of this workflow")
            elif name == "next":
                action.add_argument("what", metavar="SCHEDULE|CRON", help="a number, or five fields in quotes")
                action.add_argument("--timezone", default="UTC", metavar="ZONE", help="of the expression; default: UTC")
                action.add_argument("--count", type=_count, default=5, metavar="N", help="how many; default: 5")
            else:
                action.add_argument("number", type=int, metavar="SCHEDULE")
            if name in ("pause", "resume", "run-now"):
                action.add_argument("--reason", default="", help="why; kept in the audit")
                action.add_argument("--as", dest="person", metavar="USER", help="the user who decides")
            if name == "run-now":
                action.add_argument("--request-id", default="", metavar="ID", help="the same id again finds the run")
            if name == "show":
                action.add_argument("--count", type=_count, default=20, metavar="N", help="past times; default: 20")
            action.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        action = getattr(self, f"do_{options['action'].replace('-', '_')}")
        code: int = action(**options)
        return code

    # ---- looking ----------------------------------------------------------------------------------------------------

    def do_list(self, *, workflow: str, as_json: bool, **options: Any) -> int:
        rows = schedule_list(workflow=workflow)
        if as_json:
            self.print_json([row.as_json() for row in rows])
        elif not rows:
            self.stdout.write("There are no schedules; they stand in workflow files, or are made in the browser.")
        else:
            heads = ["SCHEDULE", "WORKFLOW", "CRON", "ZONE", "NEXT", "LAST", "FROM"]
            self.print_lines(table(heads, [_line(row) for row in rows]))
        return ExitCode.SUCCEEDED

    def do_show(self, *, number: int, count: int, as_json: bool, **options: Any) -> int:
        row = schedule_of(number)
        times, fires = next_of(row), fires_of(row, limit=count)
        if as_json:
            document = row.as_json() | {"next_times": [at.isoformat() for at in times]}
            self.print_json(document | {"fires": [fire.as_json() for fire in fires]})
        else:
            self.print_lines(_described(row, times, fires))
        return ExitCode.SUCCEEDED

    def do_next(self, *, what: str, timezone: str, count: int, as_json: bool, **options: Any) -> int:
        if what.isascii() and what.isdigit() and len(what) < 19:
            row = schedule_of(int(what))
            times, zone = next_of(row, count=count), row.timezone
        else:
            times, zone = operation.next_times(what, timezone, count=count), timezone
        if as_json:
            self.print_json({"timezone": zone, "next_times": [at.isoformat() for at in times]})
        else:
            self.print_lines(_wall(at) for at in times)
        return ExitCode.SUCCEEDED

    # ---- doing ------------------------------------------------------------------------------------------------------

    def do_pause(self, *, number: int, **options: Any) -> int:
        is_new = operation.pause(number, actor=shell_actor(options["person"]), reason=options["reason"])
        return self._done(number, options["as_json"], is_new, "paused", "was paused already")

    def do_resume(self, *, number: int, **options: Any) -> int:
        is_new = operation.resume(number, actor=shell_actor(options["person"]), reason=options["reason"])
        return self._done(number, options["as_json"], is_new, "goes on", "was not paused")

    def _done(self, number: int, as_json: bool, is_new: bool, said: str, was_so: str) -> int:
        if as_json:
            self.print_json({"schedule": number, "changed": is_new})
        else:
            self.stdout.write(f"schedule {number}: {said if is_new else was_so}.")
        return ExitCode.SUCCEEDED

    def do_run_now(self, *, number: int, as_json: bool, **options: Any) -> int:
        started = operation.run_now(
            number,
            actor=shell_actor(options["person"]),
            reason=options["reason"],
            request_id=options["request_id"],
        )
        if as_json:
            self.print_json({"schedule": number, "run": started.run_id, "new": started.created})
        else:
            word = "started" if started.created else "was started already"
            self.stdout.write(f"run {started.run_id} {word}; `python manage.py runs show {started.run_id}` shows it.")
        return ExitCode.SUCCEEDED


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST_NEXT:
        raise ValueError
    return number


def _wall(at: datetime) -> str:
    return f"{at:%a %Y-%m-%d %H:%M} {at.tzname()}"


def _next(row: ScheduleRow) -> str:
    if row.is_removed:
        return "removed"
    if row.is_paused:
        return "paused"
    return "never" if row.next_at is None else _wall(row.next_at)


def _line(row: ScheduleRow) -> list[object]:
    last = _result(row.last) if row.last is not None else "–"
    return [row.number, row.workflow, row.cron, row.timezone, _next(row), last, "file" if row.of_file else row.owner]


def _result(fire: FireRow) -> str:
    if fire.status == FireStatus.STARTED:
        return f"run {fire.run} {fire.run_status or '(pruned)'}"
    if fire.status == FireStatus.MISSED:
        return f"missed {fire.times}{' or more' if fire.is_cut else ''}"
    return fire.status


def _described(row: ScheduleRow, times: list[datetime], fires: list[FireRow]) -> Iterator[str]:
    yield f"schedule {row.number} of {row.workflow}: {row.cron} {row.timezone}{f', {row.title}' if row.title else ''}"
    yield f"  next: {_next(row)}"
    if row.is_paused:
        yield f"  paused by {row.paused_by}{f': {row.paused_reason}' if row.paused_reason else ''}"
    yield f"  while a run goes on: {row.if_running}; missed times: {row.catch_up}"
    yield f"  from: {'the file' if row.of_file else 'people'}, {row.owner}"
    if row.params:
        yield f"  {counted(len(row.params), 'parameter')}: {', '.join(row.params)}"
    if times:
        yield "next times"
        yield from (f"  {_wall(at)}" for at in times)
    if fires:
        yield "times that have come"
        lines = [[_wall(fire.at), _result(fire), " ".join(filter(None, (fire.by, fire.message)))] for fire in fires]
        yield from (f"  {line}" for line in table(["TIME", "RESULT", "WHY"], lines))
