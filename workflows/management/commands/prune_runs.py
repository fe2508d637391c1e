"""``prune_runs``: removes finished runs that are old enough, with everything that only they needed."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import CommandParser

from workflows.definitions.durations import DurationError, parse_duration
from workflows.errors import ExitCode, Refusal
from workflows.management.base import Command as WaypostCommand
from workflows.management.wording import counted
from workflows.operations.people import shell_actor
from workflows.operations.pruning import Pruned, Retention, drop_leftovers, prune, survey
from workflows.statuses import FINAL_STATUSES

#: Why runs stay, in words, in this order.
_KEPT = {
    "live": "not ended",
    "newest": "among the newest of their workflow",
    "recent": "ended too recently",
    "held": "on audit hold",
    "child_live": "a child run has not ended",
    "child_recent": "a child run ended too recently",
    "child_held": "a child run is on audit hold",
    "child_changed": "a child run changed meanwhile",
    "fork": "a fork waits for a child run of them",
    "child": "new child runs",
    "changed": "changed meanwhile",
}


class Command(WaypostCommand):
    help = (
        "Removes finished runs with their child runs, events, values and workspaces. Runs that have not ended or are "
        "on audit hold stay, and so do their parents and child runs."
    )

    def add_words(self, parser: CommandParser) -> None:
        rules = parser.add_argument_group("rules", "a run goes when all rules that are given let it go")
        rules.add_argument("--older-than", type=_age, metavar="AGE", help="ended longer ago than this, as 90d or 12h")
        rules.add_argument("--keep", type=_number, metavar="N", help="not among the newest N of its workflow")
        parser.add_argument("--workflow", metavar="NAME", help="only runs of this workflow")
        parser.add_argument(
            "--status",
            action="append",
            choices=sorted(str(status) for status in FINAL_STATUSES),
            help="only runs that ended so; may be repeated",
        )
        parser.add_argument(
            "--leftovers",
            action="store_true",
            help="also remove values that no run names, as an interrupted prune leaves them; reads all rows",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would go and what stays; change nothing")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--as", dest="person", metavar="USER", help="the user who decides")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        actor = shell_actor(options["person"])
        retention = Retention(
            older_than_ms=options["older_than"],
            keep=options["keep"],
            workflow=options["workflow"],
            statuses=tuple(options["status"] or ()),
        )
        only_leftovers = options["leftovers"] and retention == Retention()
        found = Pruned() if only_leftovers else survey(retention, actor=actor)
        if options["dry_run"]:
            return self._print(found, options, is_done=False)
        if found.runs and not options["yes"] and not self._is_agreed(found, options):
            self.stderr.write("Nothing was removed.")
            return ExitCode.FAILED
        pruned = Pruned() if only_leftovers else prune(retention, actor=actor)
        if options["leftovers"]:
            pruned.payloads += drop_leftovers(actor=actor)
        return self._print(pruned, options, is_done=True)

    def _is_agreed(self, found: Pruned, options: dict[str, Any]) -> bool:
        if options["as_json"] or not sys.stdin.isatty():
            raise Refusal(
                "input.invalid",
                reason=f"{counted(found.runs, 'run')} would be removed, and nobody can be asked.",
                advice="`--yes` removes them, `--dry-run` shows what would go.",
            )
        self._print(found, options, is_done=False)
        return input("Remove them for ever? [y/N] ").strip().lower() in ("y", "yes")

    def _print(self, pruned: Pruned, options: dict[str, Any], *, is_done: bool) -> int:
        kept = {name: pruned.kept[name] for name in _KEPT if pruned.kept[name]}
        if options["as_json"]:
            self.print_json(_document(pruned, kept, is_done))
            return ExitCode.SUCCEEDED
        verb = "removed" if is_done else "would be removed"
        children = f", with {counted(pruned.children, 'child run')}" if pruned.children else ""
        self.stdout.write(f"{counted(pruned.runs, 'run')} {verb}{children}.")
        for name, count in sorted(pruned.by_workflow.items()):
            self.stdout.write(f"    {name}: {count}")
        if is_done and (pruned.payloads or pruned.plans):
            values, plans = counted(pruned.payloads, "value"), counted(pruned.plans, "private version")
            self.stdout.write(f"{values} and {plans} that nothing needs any more {verb}.")
        if kept:
            self.stdout.write(f"{counted(sum(kept.values()), 'run')} kept:")
            for name, count in kept.items():
                self.stdout.write(f"    {_KEPT[name]}: {count}")
        return ExitCode.SUCCEEDED


def _document(pruned: Pruned, kept: dict[str, int], is_done: bool) -> dict[str, Any]:
    return {
        "dry_run": not is_done,
        "runs": pruned.runs,
        "children": pruned.children,
        "by_workflow": dict(sorted(pruned.by_workflow.items())),
        "payloads": pruned.payloads,
        "plans": pruned.plans,
        "kept": kept,
    }


def _age(text: str) -> int:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
