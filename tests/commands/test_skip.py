"""``runs skip``: a step that failed or waits counts as skipped, by an operator and with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.support import manage, workflow_file
from tests.support.rows import assert_sound
from workflows.models import Interrupt, Run

pytestmark = pytest.mark.django_db(transaction=True)

BROKEN = """
steps:
  - { id: broken, kind: shell, run: 'exit 3' }
  - { id: after, kind: shell, run: 'echo after' }
output: { broken: "${ steps.broken.outcome }", after: "${ steps.after.output }" }
"""
ASKING = """
steps:
  - id: each
    kind: map
    over: ${ [1, 2] }
    do: [{ id: ok, kind: approval, ask: Go?, timeout: 2h }]
output: ${ steps.each.output }
"""


def test_a_failed_run_goes_on_behind_the_step_that_failed(tmp_path: Path) -> None:
    assert manage("run_workflow", workflow_file(tmp_path, BROKEN), "--quiet").code == 1
    run = Run.objects.get().pk
    skipped = manage("runs", "skip", str(run), "--reason", "it is done by hand")
    assert skipped.lines == [f"run {run}: v1 counts as skipped; `python manage.py run_workflow {run}` goes on with it"]
    ended = manage("run_workflow", str(run), "--json")
    assert (ended.code, ended.json["output"]) == (0, {"broken": "skipped", "after": "after"})
    assert_sound()


def test_a_step_that_waits_is_named_by_its_visit(tmp_path: Path) -> None:
    assert manage("run_workflow", workflow_file(tmp_path, ASKING), "--quiet").code == 3
    run = Run.objects.get().pk
    refused = manage("runs", "skip", str(run), "--reason", "nobody is there")
    assert (refused.code, refused.err) == (
        1,
        f"error: Nothing in run {run} can be skipped.\n"
        f"hint: Only a step that failed or waits; `python manage.py runs show {run}` says which.\n",
    )
    assert manage("runs", "skip", str(run), "--visit", "v2", "--reason", "nobody is there").code == 0
    assert manage("run_workflow", str(run), "--quiet").code == 3
    assert list(Interrupt.objects.order_by("visit").values_list("status", flat=True)) == ["closed", "open"]
    manage("runs", "answer", str(run), "v3", "--approve")
    assert manage("run_workflow", str(run), "--quiet").code == 0


def test_skipping_needs_a_reason(tmp_path: Path) -> None:
    manage("run_workflow", workflow_file(tmp_path, BROKEN), "--quiet")
    run = Run.objects.get()
    refused = manage("runs", "skip", str(run.pk))
    assert (refused.code, refused.err) == (2, "error: Skipping a step needs a reason (`--reason`).\n")
    assert Run.objects.get().revision == run.revision
