"""The page about workers: who is at work, deaf or silent, what waits for them, and who stands in line."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from tests.commands.support import manage
from tests.pages.visitors import visitor
from tests.support.plans import publish_run, workflow
from workflows.clock import database_now_ms
from workflows.ledger import workers as verbs
from workflows.ledger.leases import acquire
from workflows.ledger.slots import take_now
from workflows.ledger.transactions import run_ledger_transaction
from workflows.models import Run, Workflow, WorkflowAccess
from workflows.queries.start_form import workers_now
from workflows.queries.workers import WorkerState, lines, queues, workers, workers_page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]

STEP = "  - { id: work, kind: shell, run: make }"
LOOK = ("view_run", "view_worker")


def person() -> Any:
    visitor(*LOOK)
    return get_user_model()._default_manager.get(username="ann")


def registered(name: str, *, kind: str = "run_worker", ago_ms: int = 0, looked_ago_ms: int = 0) -> None:
    at = database_now_ms() - ago_ms
    verbs.register(
        name=name, kind=kind, pool="", drivers=4, engine_versions=frozenset({1}), code_version="1.0", now_ms=at
    )
    verbs.beat(name=name, polled_ago_ms=looked_ago_ms, now_ms=at)


def driven(owner: str, name: str = "demo") -> int:
    run = publish_run(workflow(STEP, name=name))
    acquire(run_id=run, owner=owner, ttl_ms=60_000, engine_versions=frozenset({1}))
    return run


def in_line(key: str, *, name: str = "demo", max: int = 1) -> int:
    """A run with a concurrency key: it has a place, or stands in line."""
    run = publish_run(workflow(STEP, name=name))

    def body() -> None:
        Run.objects.filter(pk=run).update(concurrency_key=key, concurrency_max=max)
        take_now(Run.objects.lock(run), database_now_ms())

    run_ledger_transaction(body, verb="plant")
    return run


def hide(name: str) -> None:
    group = Group.objects.create(name="others")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name=name), group=group)


def test_each_state_is_told_and_what_asks_for_attention_comes_first() -> None:
    """LEASE.13"""
    registered("h:1:at")
    registered("h:2:deaf", looked_ago_ms=40_000)
    registered("h:3:silent", ago_ms=120_000)
    registered("h:4:stopped")
    verbs.stop(name="h:4:stopped")
    registered("h:5:leaving")
    verbs.beat(name="h:5:leaving", is_stopping=True)
    run = driven("h:1:at")
    unknown = driven("h:9:other")
    user = person()
    found = workers(user)
    assert [(row.name, row.state) for row in found] == [
        ("h:2:deaf", WorkerState.DEAF),
        ("h:3:silent", WorkerState.SILENT),
        ("h:1:at", WorkerState.AT_WORK),
        ("h:9:other", WorkerState.AT_WORK),
        ("h:5:leaving", WorkerState.STOPPING),
        ("h:4:stopped", WorkerState.STOPPED),
    ]
    assert {row.name: row.runs for row in found if row.runs} == {"h:1:at": (run,), "h:9:other": (unknown,)}


def test_the_page_shows_workers_queues_and_lines() -> None:
    """WEB.5"""
    registered("h:1:at")
    registered("h:2:deaf", looked_ago_ms=40_000)
    run = driven("h:1:at")
    holder, waits = in_line("door"), in_line("door")
    client = visitor(*LOOK, name="ann")
    text = html.unescape(client.get("/workers/").content.decode())
    for words in ("h:1:at", "deaf", f"run {run}", "door", f"run {holder}", f"run {waits}", "place 1", "Could go on"):
        assert words in text
    assert "No worker listens" not in text
    assert client.get("/parts/workers/").status_code == 200


def test_nobody_listens_when_all_are_deaf_silent_or_drive_one_run_only() -> None:
    """WEB.5"""
    registered("h:2:deaf", looked_ago_ms=40_000)
    registered("h:3:silent", ago_ms=120_000)
    registered("h:6:one", kind="run_workflow")
    publish_run(workflow(STEP))
    text = html.unescape(visitor(*LOOK, name="ann").get("/workers/").content.decode())
    assert "No worker listens." in text
    assert workers_now().listening == 0
    registered("h:7:all", kind="celery")
    assert workers_now().listening == 1


def test_what_somebody_does_not_see_is_counted_and_not_named() -> None:
    """WEB.2"""
    registered("h:1:at")
    run = driven("h:1:at", "secret")
    in_line("secret door", name="secret")
    shared_holder, mine = in_line("door", name="secret"), in_line("door")
    hide("secret")
    user = person()
    found = workers_page(user)
    assert [(row.runs, row.hidden) for row in found.workers] == [((), 1)]
    assert [row.workflow for row in found.queues] == []
    (line,) = found.lines
    assert (line.name, line.holders, line.hidden_holders, line.waiting) == ("door", (), 1, ((1, mine),))
    text = visitor(*LOOK, name="bea").get("/workers/").content.decode()
    assert "secret" not in text
    assert f"run {run}<" not in text
    assert f"run {shared_holder}<" not in text


def test_queues_are_counted_by_workflow_with_the_longest_first() -> None:
    for name in ("a", "b", "b"):
        publish_run(workflow(STEP, name=name))
    user = person()
    assert [(row.workflow, row.waiting) for row in queues(user)] == [("b", 2), ("a", 1)]
    assert lines(user) == []


def test_the_page_needs_the_permission_to_look_at_workers() -> None:
    """WEB.2"""
    assert visitor("view_run").get("/workers/").status_code == 403


def test_programs_and_the_shell_are_told_the_same() -> None:
    registered("h:2:deaf", looked_ago_ms=40_000)
    holder, waits = in_line("door"), in_line("door")
    run = driven("h:2:deaf")
    told = manage("workers").out
    assert "h:2:deaf (run_worker): deaf, drives run" in told
    assert f"concurrency door: held by run {holder}; in line: run {waits} (1)" in told
    assert "no worker listens" in told
    document = json.loads(manage("workers", "--json").out)
    assert document["workers"][0]["runs"] == [run]
    answer = visitor(*LOOK).get("/api/v1/workers")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["listening"], found["lines"]) == (0, document["lines"])
    assert found["workers"][0]["state"] == "deaf"
    assert visitor("view_run", name="bea").get("/api/v1/workers").status_code == 403
