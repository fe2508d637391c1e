"""``runs ACTION``: each sub-action is a line of ``ACTIONS``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from workflows.management import answers, audits, bulk, controls, exports, forks, keeping, looking, reconciling, why
from workflows.management.actions import RunAction
from workflows.management.base import Command as WaypostCommand

ACTIONS: tuple[RunAction, ...] = (
    looking.LIST,
    looking.SHOW,
    looking.EVENTS,
    why.WHY,
    audits.AUDIT,
    controls.CANCEL,
    controls.ABANDON,
    controls.RESUME,
    controls.RETRY,
    controls.PAUSE,
    controls.SKIP,
    controls.STEER,
    forks.FORK,
    keeping.KEEP,
    exports.EXPORT,
    exports.IMPORT,
    bulk.BULK,
    answers.ANSWER,
    answers.SIGNAL,
    reconciling.RECONCILE,
)


class Command(WaypostCommand):
    help = "Lists and shows runs, and changes what becomes of them."

    def add_words(self, parser: CommandParser) -> None:
        actions = self.add_actions(parser)
        for action in ACTIONS:
            words = actions.add_parser(action.name, help=action.help)
            action.add_words(words)
            words.add_argument("--json", action="store_true", dest="as_json", help="print JSON")

    def perform(self, **options: Any) -> int:
        (action,) = (action for action in ACTIONS if action.name == options["action"])
        return action.perform(self, options)
