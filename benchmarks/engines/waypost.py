"""This project, through the doors that its own commands use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django

from benchmarks.engines.contract import Runner
from benchmarks.samples import Sample, Timing, timed
from benchmarks.stores import PROJECT, Store

#: How many visits at each end of a long loop are compared.
WINDOW = 500


@contextmanager
def open_engine(store: Store) -> Iterator[Waypost]:
    os.environ.update(
        DJANGO_SETTINGS_MODULE="config.settings",
        DATABASE_URL=store.database_url.replace("postgresql://", "postgres://", 1),
        WAYPOST_VAR=store.directory,
        SECRET_KEY="benchmarks",  # noqa: S106  # guards nothing
    )
    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0, interactive=False)
    from workflows.operations.driving import Worker

    marks = Marks()
    worker = Worker(stopping=lambda: False, pause=time.sleep, observer=marks)
    try:
        yield Waypost(worker, marks)
    finally:
        worker.close()
        connections.close_all()


class Marks:
    """An observer that notes the moments at which a run passed its visits."""

    def __init__(self) -> None:
        self.first_step: float | None = None
        self.cpu_at: dict[int, float] = {}

    def clear(self) -> None:
        self.first_step = None
        self.cpu_at.clear()

    def committed(self, run_id: int, events: tuple[Any, ...], state: Any) -> None:
        for event in events:
            if event.visit is not None and event.type == "step_started":
                self.cpu_at[event.visit] = time.process_time()

    def progress(self, run_id: int, visit: int, text: str) -> None:
        """The functions measured here report nothing."""


class Waypost:
    note = ""

    def __init__(self, worker: Any, marks: Marks) -> None:
        from workflows.functions import workflow_task

        self.worker = worker
        self.marks = marks
        self.known: dict[str, Any] = {}

        @workflow_task("benchmarks.constant")
        def constant() -> int:
            if marks.first_step is None:
                marks.first_step = time.perf_counter()
            return 42

    def runner(self, subject: str) -> Runner:
        runners: dict[str, Runner] = {
            "steps-200": lambda count: self.timed(loop_of_tasks(count)).per(count),
            "steps-1000": lambda count: self.timed(loop_of_tasks(count)).per(count),
            "pure": lambda count: self.timed(loop_of_assignments(count)).per(count),
            "fan-out": lambda count: self.timed(fan_out(count)).rate(count),
            "late-visits": self.late_visits,
            "start": self.start_to_first_step,
            "command": lambda count: _help_of_command(),
        }
        return runners[subject]

    def timed(self, workflow: dict[str, Any]) -> Timing:
        """From the wish to start a run to its end. The file is read and checked before."""
        definition = self.definition(workflow)
        return timed(lambda: self.run(definition))

    def definition(self, workflow: dict[str, Any]) -> Any:
        from workflows.operations.workflows import definition_of_file

        text = json.dumps(workflow)
        if text not in self.known:
            self.known[text] = definition_of_file(text.encode())
        return self.known[text]

    def run(self, definition: Any) -> None:
        from workflows.operations.people import Actor
        from workflows.operations.runs import Start, start

        self.marks.clear()
        actor = Actor(name="benchmarks", recorded="benchmarks")
        run_id = start(Start(definition=definition, actor=actor)).run_id
        standing = self.worker.drive(run_id)
        if standing.status != "succeeded":
            raise RuntimeError(f"Run {run_id} ended as {standing.status}.")

    def late_visits(self, count: int) -> Sample:
        """Processor time of the last visits of a long loop divided by that of visits 100 and following."""
        self.run(self.definition(long_loop(count)))
        early, late = (self.cpu_of(first) for first in (100, count - WINDOW))
        return Sample(value=late / early, cpu_ms=late * 1000)

    def cpu_of(self, first: int) -> float:
        """Seconds of processor time per visit in the window that begins at visit ``first``."""
        return (self.marks.cpu_at[first + WINDOW] - self.marks.cpu_at[first]) / WINDOW

    def start_to_first_step(self, count: int) -> Sample:
        """From the wish to start a run to the first line of its first function, on average over ``count`` runs."""
        definition = self.definition(loop_of_tasks(1))
        total = 0.0
        for _ in range(count):
            begun = time.perf_counter()
            self.run(definition)
            assert self.marks.first_step is not None
            total += self.marks.first_step - begun
        return Sample(value=total * 1000 / count)


def _help_of_command() -> Sample:
    """A cold start of the command: what it imports before it does anything."""
    words = [sys.executable, str(PROJECT / "manage.py"), "run_workflow", "--help"]
    begun = time.perf_counter()
    subprocess.run(words, cwd=PROJECT, check=True, capture_output=True)
    return Sample(value=(time.perf_counter() - begun) * 1000)


def loop_of_tasks(count: int) -> dict[str, Any]:
    """One function, called ``count`` times in sequence."""
    step = {"id": "call", "kind": "task", "call": "benchmarks.constant", "max_visits": count}
    return _workflow([{**step, "next": {"ok": "call", "exhausted": "done"}}])


def long_loop(count: int) -> dict[str, Any]:
    """Ten calls in a loop, ``count`` visits in all."""
    names = [f"call_{number}" for number in range(10)]
    steps: list[dict[str, Any]] = [{"id": name, "kind": "task", "call": "benchmarks.constant"} for name in names]
    steps[0] |= {"max_visits": count // 10, "next": {"exhausted": "done"}}
    steps[-1]["next"] = {"ok": names[0]}
    return {**_workflow(steps), "budget": {"visits": count + 100}}


def loop_of_assignments(count: int) -> dict[str, Any]:
    """A variable that is counted up ``count`` times."""
    step = {"id": "add", "kind": "assign", "set": {"total": "${ vars.total + 1 }"}, "max_visits": count}
    return {**_workflow([{**step, "next": {"ok": "add", "exhausted": "done"}}]), "vars": {"total": 0}}


def fan_out(count: int) -> dict[str, Any]:
    """A map over ``count`` items, eight at a time."""
    body = [{"id": "call", "kind": "task", "call": "benchmarks.constant"}]
    return _workflow([{"id": "each", "kind": "map", "over": list(range(count)), "concurrency": 8, "do": body}])


def _workflow(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"format": 1, "name": "benchmark", "steps": steps}
