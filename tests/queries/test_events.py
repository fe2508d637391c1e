"""Events after a cursor (EVT 1, 4, 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.left_runs import waiting_run
from tests.commands.support import manage, workflow_file
from workflows.models import Run
from workflows.queries.events import events_after

pytestmark = pytest.mark.django_db(transaction=True)

SECRETIVE = "steps: [{ id: a, kind: shell, run: echo confidential }]\noutput: ${ steps.a.output }\n"


def test_pages_follow_each_other_without_holes(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, SECRETIVE), "--quiet")
    run = Run.objects.get()
    whole = events_after(run.pk)
    cursor, numbers = 0, []
    while True:
        page = events_after(run.pk, cursor, limit=2)
        numbers += [event["number"] for event in page.events]
        cursor = page.cursor
        if page.is_over:
            break
    assert numbers == [event["number"] for event in whole.events] == list(range(1, run.next_event))


def test_the_last_page_of_a_finished_run_says_that_it_is_over(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, SECRETIVE), "--quiet")
    run = Run.objects.get().pk
    assert events_after(run).is_over
    assert not events_after(run, limit=1).is_over
    assert not events_after(waiting_run(tmp_path, "steps:\n  - { id: nap, kind: wait, for: 1h }\n")).is_over


def test_events_carry_no_outputs(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, SECRETIVE), "--quiet", "--title", "confidential")
    assert "confidential" not in repr(events_after(Run.objects.get().pk).events)
