"""What a view looks up beside the events: which run a line is about, and where in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TypeVar

import django.db

from workflows.errors import Refusal
from workflows.management.run_progress import RunProgress
from workflows.management.wording import placed
from workflows.queries import progress as queries

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")
#: In front of the lines of a child run, once for each run between.
INDENT = "  "


class Places:
    """Nothing is looked up, and every line is about the run that was asked for."""

    def progress_of(self, run_id: int) -> RunProgress:
        return RunProgress()


class StoredPlaces(Places):
    """Looked up in the database, in the thread of the driver and after its commit. ``root_id`` is the run that was
    asked for; the lines of others name their run, and stand further to the right the deeper it is below that one. A
    store that does not answer costs names, never the run."""

    def __init__(self, root_id: int | None) -> None:
        self._root_id = root_id
        self._seen = 0

    def progress_of(self, run_id: int) -> RunProgress:
        label = ""
        if run_id != self._root_id:
            name = _quietly(lambda: queries.run_name(run_id), "?")
            label = f"{INDENT * self._depth(run_id)}run {run_id} {name}: "
            self._seen += 1
        return RunProgress(
            label=label,
            order=self._seen,
            shape=_quietly(lambda: queries.shape_of_run(run_id), queries.Shape()),
            paths_of=lambda visits: _quietly(lambda: _paths(run_id, visits), {}),
            standing=lambda: _quietly(lambda: (queries.open_visits(run_id), queries.open_maps(run_id)), None),
        )

    def _depth(self, run_id: int) -> int:
        """How far below the run that was asked for; runs that stand beside each other are not indented."""
        if self._root_id is None:
            return 0
        root_id = self._root_id
        return _quietly(lambda: max(0, queries.depth_of_run(run_id) - queries.depth_of_run(root_id)), 0)


def _paths(run_id: int, visits: Collection[int]) -> dict[int, str]:
    places = queries.visit_places(run_id, visits)
    return {visit: placed(place.path, place.item) for visit, place in places.items()}


def _quietly(ask: Callable[[], Answer], otherwise: Answer) -> Answer:
    try:
        return ask()
    except (Refusal, django.db.Error) as error:
        logger.debug("A view could not look something up: %s", error)
        return otherwise
