"""What a command says while it waits: for whom, for which place, and what people are asked meanwhile."""

from __future__ import annotations

import time

import django.db

from workflows.errors import Refusal
from workflows.management.progress import PlainView
from workflows.management.questions import MOST_QUESTIONS, open_question_lines
from workflows.management.wording import reason_text
from workflows.queries.questions import open_questions
from workflows.queries.runs import find_run
from workflows.queries.waiting import told_reasons, tree_of
from workflows.statuses import WaitsFor

#: Time between two looks, in seconds.
LOOK_S = 1.0
#: Causes that are told: others do something about them, or somebody should.
_TOLD = frozenset({WaitsFor.SIGNAL.value, WaitsFor.SLOT.value, "concurrency", "later"})
#: Runs of a tree that are looked at.
MOST_RUNS = 20


class Teller:
    """Called again and again while a run waits; says a thing once, and again when it has changed."""

    def __init__(self, view: PlainView, root_id: int) -> None:
        self._view = view
        self._root_id = root_id
        self._looked = time.monotonic()
        self._said: dict[int, tuple[str, ...]] = {}
        self._asked: set[tuple[int, str]] = set()

    def look(self) -> None:
        """Look at the tree of runs, at most once in a while. A store that does not answer is asked again later."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            tree = tree_of(self._root_id)[:MOST_RUNS]
            for run_id in tree:
                self._tell_waiting(run_id)
            self._tell_questions(tree)
        except (Refusal, django.db.Error):
            return

    def _tell_waiting(self, run_id: int) -> None:
        reasons = [reason for reason in told_reasons(find_run(run_id)) if reason["cause"] in _TOLD]
        texts = {
            (reason["cause"], reason.get("group"), reason.get("signal")): reason_text(reason) for reason in reasons
        }
        said = tuple(texts.values())
        if said == self._said.get(run_id, ()):
            return
        self._said[run_id] = said
        label = "" if run_id == self._root_id else f"run {run_id}: "
        for text in said:
            self._view.waits(f"{label}{text}")

    def _tell_questions(self, tree: list[int]) -> None:
        questions, _ = open_questions(tree, limit=MOST_QUESTIONS)
        new = [question for question in questions if (question["run"], question["id"]) not in self._asked]
        self._asked |= {(question["run"], question["id"]) for question in new}
        self._view.asks(list(open_question_lines(new)))
