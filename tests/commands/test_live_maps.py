"""Maps and child runs in the views of a run: counts instead of a line per item, lines that name their run."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.commands.support import manage, workflow_file
from workflows.facts import EventRow, RunState
from workflows.management import progress as views
from workflows.management.live import LiveView
from workflows.management.places import Places
from workflows.management.progress import PlainView, WorkerView
from workflows.management.run_progress import RunProgress
from workflows.models import Run
from workflows.queries.progress import OpenMap, OpenVisit, Shape

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUNNING = RunState(status="running")
SHAPE = Shape(
    members={"each": frozenset({"work"})},
    outermost={"each": frozenset(), "work": frozenset({"each"})},
    nested=frozenset({"work"}),
)


def event(sequence: int, type: str, *, visit: int | None = 1, attempt: int | None = None, **data: Any) -> EventRow:
    return EventRow(
        sequence=sequence,
        revision=sequence,
        type=type,
        at=START + timedelta(seconds=sequence),
        visit=visit,
        attempt=attempt,
        payload=json.dumps(data),
    )


class Known(Places):
    """Runs whose plan is known: 1 is the one that was asked for, the others are its child runs."""

    def __init__(self, standing: Any = lambda: None) -> None:
        self.standing = standing
        self.seen = 0

    def progress_of(self, run_id: int) -> RunProgress:
        self.seen += run_id != 1
        return RunProgress(
            label="" if run_id == 1 else f"run {run_id} kid: ",
            order=self.seen,
            shape=SHAPE,
            paths_of=lambda visits: {visit: f"each[{visit - 2}]/work" for visit in visits},
            standing=self.standing,
        )


def item(number: int, outcome: str) -> tuple[EventRow, ...]:
    visit = number + 2
    ending = "step_succeeded" if outcome == "ok" else "step_failed"
    code = {} if outcome == "ok" else {"code": "exit_nonzero"}
    return (
        event(3, "step_started", visit=visit, attempt=1, step="work"),
        event(4, ending, visit=visit, attempt=1, step="work", outcome=outcome, **code),
        event(4, "scope_ended", visit=1, scope=f"each[{number}]", outcome=outcome),
    )


def squeezed(lines: list[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def test_the_items_of_a_small_map_are_told_with_their_paths() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, Known())
    view.committed(1, (event(2, "step_fanned_out", step="each", items=2), *item(0, "ok"), *item(1, "failed")), RUNNING)
    view.committed(1, (event(5, "step_failed", step="each", outcome="failed", code="items_failed"),), RUNNING)
    assert squeezed(lines) == [
        "v2 each[0]/work ok 1.00s",
        "v3 each[1]/work failed (exit_nonzero) 1.00s",
        "v1 each failed (items_failed; 1 of 2 done, 1 failed) 3.00s",
    ]


def test_a_large_map_is_told_by_its_first_failures_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    view = PlainView(lines.append, Known())
    view.committed(1, (event(2, "step_fanned_out", step="each", items=100),), RUNNING)
    for number in range(99):
        view.committed(1, item(number, "failed" if number % 10 == 0 else "ok"), RUNNING)
    assert squeezed(lines) == [
        f"v{visit} each[{visit - 2}]/work failed (exit_nonzero) 1.00s" for visit in (2, 12, 22, 32, 42)
    ]
    monkeypatch.setattr(views, "MAP_LINES_S", 0.0)
    view.committed(1, (event(5, "step_started", visit=101, attempt=1, step="work"),), RUNNING)
    assert squeezed(lines[5:]) == ["v1 each 89 of 100 done, 10 failed, 1 running"]
    last = (*item(99, "ok"), event(6, "step_succeeded", step="each", outcome="ok"))
    view.committed(1, last, RUNNING)
    assert squeezed(lines[6:]) == ["v1 each ok (90 of 100 done, 10 failed) 4.00s"]


def test_a_map_that_another_worker_began_is_counted_from_its_rows() -> None:
    opened = [OpenVisit(number=1, step="each", path="each", started_at=START)]
    opened += [OpenVisit(number=60, step="work", path="each[58]/work", started_at=START)]
    stands = [OpenMap(visit=1, total=100, ok=50, failed=3, cancelled=0)]
    run = Known(lambda: (opened, stands)).progress_of(1)
    run.take((event(9, "step_started", visit=60, attempt=1, step="work"),))
    assert run.maps[1].text() == "50 of 100 done, 3 failed, 1 running"
    assert run.shown() == []


def test_a_terminal_shows_a_bar_for_a_map_and_no_line_for_its_items() -> None:
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=True, width=100, color_system=None), Known())
    view.committed(1, (event(2, "step_fanned_out", step="each", items=100),), RUNNING)
    for number in range(40):
        view.committed(1, item(number, "ok"), RUNNING)
    view.committed(1, (event(3, "step_started", visit=80, attempt=1, step="work"),), RUNNING)
    view.committed(3, (event(2, "step_started", visit=1, attempt=1, step="scan"),), RUNNING)
    view.close()
    drawn = screen.getvalue()
    assert re.search(r"v1   each +━+[━╸╺ ]* 40 of 100 done, 1 running", drawn)
    assert "run 3 kid: scan" in drawn
    assert "each[" not in drawn


def test_lines_of_child_runs_name_their_run_and_many_children_are_not_told() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, Known())
    ended = RunState(status="succeeded", started_at=START, ended_at=START + timedelta(seconds=2))
    for run in range(2, 25):
        view.committed(run, (event(2, "step_started", step="scan"),), RUNNING)
        view.committed(
            run, (event(3, "step_succeeded", step="scan", outcome="ok"), event(3, "run_succeeded", visit=None)), ended
        )
    view.committed(30, (event(2, "step_failed", step="scan", outcome="failed"),), RUNNING)
    told = squeezed(lines)
    assert told[:2] == ["run 2 kid: v1 scan ok 1.00s", "run 2 kid: succeeded after 2.00s"]
    assert told[-3:] == [
        "run 21 kid: v1 scan ok 1.00s",
        "run 21 kid: succeeded after 2.00s",
        "run 30 kid: v1 scan failed",
    ]


def test_a_worker_tells_of_runs_and_of_what_fails() -> None:
    lines: list[str] = []
    view = WorkerView(lines.append, Known())
    view.committed(7, (event(2, "step_succeeded", step="scan", outcome="ok"),), RUNNING)
    view.committed(7, (event(3, "step_failed", visit=2, step="load", outcome="failed", code="network"),), RUNNING)
    view.committed(7, (event(4, "run_paused", visit=None),), RunState(status="paused"))
    assert squeezed(lines) == ["run 7 kid: v2 load failed (network)", "run 7 kid: waits for people"]


@pytest.mark.django_db(transaction=True)
def test_a_map_of_two_hundred_items_prints_a_handful_of_lines(tmp_path: Path) -> None:
    text = """
steps:
  - { id: list, kind: shell, run: 'python3 -c "print(list(range(200)))"', parse: json }
  - id: each
    kind: map
    over: ${ steps.list.output }
    concurrency: 16
    join: settled
    do:
      - { id: look, kind: condition, if: "${ item != 77 }", next: { then: note, else: fail } }
      - { id: note, kind: assign, set: {} }
"""
    answer = manage("run_workflow", workflow_file(tmp_path, text))
    run = Run.objects.get().pk
    assert [re.sub(r"\d+\.\d\ds", "TIME", line) for line in answer.lines] == [
        f"run {run}: demo",
        "  v1   list                     ok TIME",
        "  v2   each                     ok (199 of 200 done, 1 failed) TIME",
        f"run {run} succeeded after TIME",
    ]


@pytest.mark.django_db(transaction=True)
def test_lines_of_child_runs_stand_further_to_the_right_the_deeper_they_are(tmp_path: Path) -> None:
    call = "steps: [{{ id: {id}, kind: workflow, ref: {ref} }}]"
    leaf = "steps: [{ id: work, kind: shell, run: 'true' }]"
    for name, text in (("leaf", leaf), ("middle", call.format(id="inner", ref="leaf"))):
        assert manage("workflows", "publish", workflow_file(tmp_path, text, name=name)).code == 0
    answer = manage("run_workflow", workflow_file(tmp_path, call.format(id="outer", ref="middle"), name="top"))
    assert answer.code == 0
    told = re.findall(r"^( +)(?:run \d+ (\w+): )?v1 +(\w+) +ok", answer.out, re.MULTILINE)
    assert told == [(" " * 6, "leaf", "work"), (" " * 4, "middle", "inner"), (" " * 2, "", "outer")]
