"""``runs ACTION``: each sub-action is a line of ``ACTIONS``."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from workflows.management.actions import RunAction
from workflows.management.base import Command as WaypostCommand

#: Which module of ``workflows.management`` has the ``RunAction`` of which name, in the order of the help.
ACTIONS = {
    "list": "listing",
    "show": "looking",
    "events": "listing",
    "why": "why",
    "audit": "audits",
    "cancel": "controls",
    "abandon": "controls",
    "resume": "controls",
    "retry": "controls",
    "pause": "controls",
    "skip": "controls",
    "steer": "controls",
    "fork": "forks",
    "keep": "keeping",
    "export": "exports",
    "import": "exports",
    "bulk": "bulk",
    "answer": "answers",
    "signal": "answers",
    "reconcile": "reconciling",
}


def action_named(name: str) -> RunAction:
    """The action of a name, imported here: all of them would double the time that a command takes to start."""
    module = importlib.import_module(f"workflows.management.{ACTIONS[name]}")
    action = getattr(module, name.upper())
    assert isinstance(action, RunAction)
    return action


class Command(WaypostCommand):
    help = "Lists and shows runs, and changes what becomes of them."
    #: The actions whose words are read; on the command line only the one that was asked for.
    wanted: Iterable[str] = ACTIONS

    def run_from_argv(self, argv: list[str]) -> None:
        if (asked := argv[2] if len(argv) > 2 else "") in ACTIONS:
            self.wanted = [asked]
        super().run_from_argv(argv)

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        for name in ACTIONS:
            if name not in self.wanted:
                actions.add_parser(name)
                continue
            action = action_named(name)
            words = actions.add_parser(action.name, help=action.help)
            action.add_words(words)
            words.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        return action_named(options["action"]).perform(self, options)
