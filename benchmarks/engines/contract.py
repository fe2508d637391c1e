"""What an engine module offers: ``open_engine(store)``, a context in which subjects can be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from benchmarks.samples import Sample

#: Takes the count of a subject, runs it once and says what it took.
Runner = Callable[[int], Sample]


class Engine(Protocol):
    """An engine that is ready: everything that is done once per process has been done."""

    note: str

    def runner(self, subject: str) -> Runner:
        """How a subject is run once."""
        ...
