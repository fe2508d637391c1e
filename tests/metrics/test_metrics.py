"""What an installation measures of itself: right, in a constant number of statements, for whom it is meant (OBS.4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from tests.pages.visitors import LOOK, visitor
from tests.processes import PROJECT
from tests.support.driving import drive
from tests.support.hand import Hand, expire
from tests.support.kinds import bad, kinds_with
from tests.support.plans import START, publish_run, workflow
from tests.support.worlds import publish_in_line
from workflows.clock import unix_ms
from workflows.engine import tally
from workflows.models import Tally
from workflows.operations.tallying import write_tallies
from workflows.operations.workers import Registration
from workflows.queries import metrics
from workflows.queries.metrics import METRICS, OTHERS, measure
from workflows.queries.workers import WorkerState
from workflows.statuses import WorkerKind

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "a token of twenty and more"
WORK = workflow('  - { id: work, kind: shell, run: "true", access: write }')
ASK = workflow('  - { id: ask, kind: question, ask: "Well?" }', name="asks")


@pytest.fixture(autouse=True)
def _nothing_is_counted_yet() -> None:
    tally.take()


def measured(name: str, *, now_ms: int | None = None) -> dict[tuple[str, ...], float]:
    (found,) = (one for one in measure(now_ms=now_ms) if one.metric.name == name)
    return dict(found.samples)


def test_runs_are_counted_by_workflow_and_status_and_the_queue_has_an_age() -> None:
    for text in (WORK, WORK, ASK):
        publish_run(text)
    now_ms = unix_ms(START + timedelta(minutes=3))
    assert measured("waypost_runs") == {("demo", "queued"): 2, ("asks", "queued"): 1}
    assert measured("waypost_runs_runnable", now_ms=now_ms) == {("asks",): 1, ("demo",): 2}
    assert measured("waypost_runs_runnable_oldest_seconds", now_ms=now_ms) == {(): 180.0}


def test_an_empty_installation_has_every_metric() -> None:
    found = {one.metric.name: dict(one.samples) for one in measure()}
    assert list(found) == [metric.name for metric in METRICS]
    assert found["waypost_runs_runnable_oldest_seconds"] == {(): 0.0}
    assert found["waypost_slots"] == {
        ("concurrency", "taken"): 0,
        ("concurrency", "waiting"): 0,
        ("limit", "taken"): 0,
        ("limit", "waiting"): 0,
    }


def test_what_waits_for_people_is_counted_with_its_age(tmp_path: Path) -> None:
    drive(publish_run(ASK), tmp_path)
    assert measured("waypost_questions_open") == {("approval",): 0, ("question",): 1}
    assert measured("waypost_runs") == {("asks", "paused"): 1}
    assert measured("waypost_question_oldest_seconds", now_ms=2**45)[("question",)] > 1_000_000


def test_a_run_whose_worker_died_is_stalled_and_runnable() -> None:
    run = publish_run(WORK)
    Hand(run).step()
    assert measured("waypost_leases_live") == {(): 1}
    assert measured("waypost_runs_stalled") == {("lease_ended",): 0, ("silent_worker",): 0}
    expire(run)
    assert measured("waypost_leases_live") == {(): 0}
    assert measured("waypost_runs_stalled") == {("lease_ended",): 1, ("silent_worker",): 0}
    assert measured("waypost_runs_runnable") == {("demo",): 1}


def test_workers_are_counted_by_kind_and_state() -> None:
    with Registration(kind=WorkerKind.RUN_WORKER, drivers=4, is_stopping=lambda: False):
        found, later = measured("waypost_workers"), measured("waypost_workers", now_ms=2**45)
    assert {key for key, count in found.items() if count} == {("run_worker", "at work")}
    assert {key for key, count in later.items() if count} == {("run_worker", "silent")}
    assert set(found) == {(kind.value, state.value) for kind in WorkerKind for state in WorkerState}


def test_places_are_counted_and_the_first_in_line_has_an_age() -> None:
    for _ in range(3):
        publish_in_line(WORK, "deploy")
    assert measured("waypost_slots")[("concurrency", "taken")] == 1
    assert measured("waypost_slots")[("concurrency", "waiting")] == 2
    assert measured("waypost_slot_waiting_oldest_seconds", now_ms=2**45)[("concurrency",)] > 0
    assert measured("waypost_runs_runnable") == {("demo",): 1}


def test_attempts_and_events_are_added_up_over_all_workers(tmp_path: Path) -> None:
    """OBS.4: what two workers did is one number, which only grows."""
    for scripts in ({}, {"work": bad()}):
        drive(publish_run(WORK), tmp_path, kinds_with(**scripts))
        assert write_tallies() > 0
    assert write_tallies() == 0
    assert measured("waypost_attempts") == {("shell", "failed"): 1, ("shell", "succeeded"): 1}
    events = measured("waypost_events")
    assert (events[("step_started",)], events[("step_failed",)], events[("step_succeeded",)]) == (2, 1, 1)


def test_counts_that_could_not_be_written_are_written_later(monkeypatch: pytest.MonkeyPatch) -> None:
    from workflows.errors import Refusal
    from workflows.operations import tallying

    tally.count_events(["run_started"])

    def contended(**_: object) -> None:
        raise Refusal("store.contended", detail="another process is writing")

    with monkeypatch.context() as patched:
        patched.setattr(tallying, "add_up", contended)
        assert write_tallies() == 0
    assert write_tallies() == 1
    assert Tally.objects.get().count == 1


def test_workflows_beyond_the_largest_share_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """OBS.4: labels are bounded."""
    monkeypatch.setattr(metrics, "MOST_WORKFLOWS", 2)
    for name, runs in (("a", 3), ("b", 2), ("c", 1), ("d", 1)):
        for _ in range(runs):
            publish_run(workflow("  - { id: one, kind: assign, set: { x: 1 } }", before="vars: { x: 0 }", name=name))
    assert measured("waypost_runs") == {("a", "queued"): 3, ("b", "queued"): 2, (OTHERS, "queued"): 2}
    assert measured("waypost_runs_runnable") == {("a",): 3, ("b",): 2, (OTHERS,): 2}


def test_the_number_of_statements_does_not_depend_on_how_much_there_is(tmp_path: Path) -> None:
    """OBS.4."""
    asked = []
    for size in (1, 8):
        for number in range(size):
            publish_in_line(workflow('  - { id: work, kind: shell, run: "true" }', name=f"w{number}"), "key")
            drive(publish_run(ASK), tmp_path)
        with CaptureQueriesContext(connection) as queries:
            measure()
        asked.append([query["sql"].split()[0] for query in queries])
    assert asked == [["SELECT"] * 12] * 2


# ---- the page --------------------------------------------------------------------------------------------------------


def test_whoever_sends_the_token_reads_the_format_of_prometheus(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    publish_run(WORK)
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "no-store" in answer.headers["Cache-Control"]
    families = {family.name: family for family in text_string_to_metric_families(answer.content.decode())}
    assert set(families) == {metric.name for metric in METRICS}
    (sample,) = families["waypost_runs"].samples
    assert (sample.labels, sample.value) == ({"workflow": "demo", "status": "queued"}, 1.0)


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [("", ""), ("", "Bearer "), (TOKEN, ""), (TOKEN, "Bearer "), (TOKEN, f"Basic {TOKEN}"), (TOKEN, "Bearer tökén")],
)
def test_nobody_else_finds_anything(settings: Any, wanted: str, sent: str) -> None:
    """OBS.4: without a token there is no door, and a wrong one is told nothing."""
    settings.METRICS_TOKEN = wanted
    with CaptureQueriesContext(connection) as queries:
        answer = Client().get("/metrics", headers={"Authorization": sent} if sent else {})
    assert (answer.status_code, answer.content) == (404, b"Not found.\n")
    assert len(queries) == 0


def test_superusers_read_it_in_a_browser_and_others_do_not() -> None:
    """OBS.4: names of workflows that are hidden from a person are in it."""
    assert visitor(name="root", is_superuser=True).get("/metrics").status_code == 200
    assert visitor(*LOOK, name="ann", is_staff=True).get("/metrics").status_code == 404


def test_it_changes_nothing_and_takes_no_other_method(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert Client().post("/metrics", headers=headers).status_code == 405
    assert Client().head("/metrics", headers=headers).status_code == 200


def test_every_metric_is_documented() -> None:
    page = (PROJECT / "docs" / "observability.md").read_text(encoding="utf-8")
    names = [f"{metric.name}_total" if metric.is_counter else metric.name for metric in METRICS]
    assert [name for name in names if f"| `{name}` |" not in page] == []
