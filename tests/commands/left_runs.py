"""Runs that their worker has left: during a write, or when they began to wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.commands.support import workflow_file
from workflows.models import Run
from workflows.operations.driving import Worker
from workflows.operations.people import Actor
from workflows.operations.runs import Start, start
from workflows.operations.workflows import definition_of_file

DEPLOY = """
steps:
  - { id: build, kind: assign, set: {} }
  - id: deploy
    kind: shell
    run: 'if test -e "$MARK"; then echo again; exit 0; fi; touch "$MARK"; sleep 60'
    env: { MARK: "${ params.mark }" }
    parse: PARSE
    exits: { partly: [3] }
    next: { partly: done }
  - { id: tell, kind: shell, run: 'echo "deployed $WHAT"', env: { WHAT: "${ to_json(steps.deploy.output) }" } }
params: { mark: { type: string } }
output: ${ steps.tell.output }
"""


def interrupted_run(folder: Path, *, parse: str = "text") -> int:
    """The number of a blocked run that waits to be reconciled at v2."""
    mark = folder / "started"
    file = workflow_file(folder, DEPLOY.replace("PARSE", parse), name="release")
    actor = Actor(name="alice", recorded="alice")
    definition = definition_of_file(Path(file).read_bytes())
    run_id = start(Start(definition=definition, actor=actor, given={"mark": str(mark)})).run_id
    drive_until(mark.exists, run_id)
    assert Run.objects.get(pk=run_id).status == "blocked"
    return run_id


def waiting_run(folder: Path, text: str, **given: str) -> int:
    """The number of a run that its worker left when it began to wait."""
    actor = Actor(name="alice", recorded="alice")
    definition = definition_of_file(Path(workflow_file(folder, text)).read_bytes())
    run_id = start(Start(definition=definition, actor=actor, given=given)).run_id
    drive_until(lambda: Run.objects.get(pk=run_id).status == "waiting", run_id)
    return run_id


def drive_until(is_there: Callable[[], bool], run_id: int) -> None:
    """Drive a run until something holds, then hand it back without letting effects finish."""
    worker = Worker(stopping=is_there, pause=lambda seconds: None)
    worker.settings = replace(worker.settings, poll_ms=20, grace_ms=1)
    try:
        worker.drive(run_id)
    finally:
        worker.close()
