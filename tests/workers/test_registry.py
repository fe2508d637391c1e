"""The registry of workers: rows for people to look at, by which nothing is decided."""

from __future__ import annotations

import pytest

from tests.support.plans import publish_run, workflow
from workflows.ledger import workers
from workflows.ledger.workers import SILENT_STAYS_MS, STOPPED_STAYS_MS
from workflows.models import Run, Worker

pytestmark = pytest.mark.django_db(transaction=True)

NOW_MS = 1_800_000_000_000
SMALL = workflow("  - { id: work, kind: shell, run: make }")


def registered(name: str = "host:1:aa", *, now_ms: int = NOW_MS) -> Worker:
    workers.register(
        name=name,
        kind="run_worker",
        pool="",
        drivers=4,
        engine_versions=frozenset({1}),
        code_version="1.0",
        now_ms=now_ms,
    )
    return Worker.objects.get(name=name)


def test_a_worker_that_registers_is_there_with_what_it_told() -> None:
    row = registered()
    assert (row.kind, row.drivers, row.engine_versions, row.code_version) == ("run_worker", 4, "[1]", "1.0")
    assert (row.started_ms, row.beat_ms, row.polled_ms) == (NOW_MS, NOW_MS, NOW_MS)
    assert not row.is_stopping
    assert row.stopped_ms is None


def test_registering_again_moves_only_the_signs_of_life() -> None:
    first = registered()
    again = registered(now_ms=NOW_MS + 5)
    assert (again.pk, again.started_ms, again.beat_ms) == (first.pk, NOW_MS, NOW_MS + 5)


def test_a_loop_that_hangs_beats_without_polling() -> None:
    registered()
    assert workers.beat(name="host:1:aa", polled_ago_ms=40_000, now_ms=NOW_MS + 60_000)
    row = Worker.objects.get()
    assert (row.beat_ms, row.polled_ms) == (NOW_MS + 60_000, NOW_MS + 20_000)


def test_who_was_removed_is_told_so_when_it_beats() -> None:
    assert not workers.beat(name="host:1:aa", now_ms=NOW_MS)


def test_who_stopped_gives_no_sign_of_life_any_more() -> None:
    registered()
    assert workers.stop(name="host:1:aa", now_ms=NOW_MS + 1)
    assert not workers.stop(name="host:1:aa", now_ms=NOW_MS + 2)
    assert not workers.beat(name="host:1:aa", now_ms=NOW_MS + 3)
    assert Worker.objects.get().stopped_ms == NOW_MS + 1
    assert not Worker.objects.at_work(since_ms=NOW_MS).exists()


def test_the_long_silent_and_the_stopped_are_removed_and_runs_are_untouched() -> None:
    """LEASE.10"""
    run = publish_run(SMALL)
    before = Run.objects.values().get(pk=run)
    registered("host:1:aa")
    registered("host:2:bb")
    workers.stop(name="host:2:bb", now_ms=NOW_MS)
    assert workers.forget(now_ms=NOW_MS + STOPPED_STAYS_MS) == 0
    assert workers.forget(now_ms=NOW_MS + STOPPED_STAYS_MS + 1) == 1
    assert list(Worker.objects.values_list("name", flat=True)) == ["host:1:aa"]
    assert workers.forget(now_ms=NOW_MS + SILENT_STAYS_MS) == 0
    assert workers.forget(now_ms=NOW_MS + SILENT_STAYS_MS + 1) == 1
    assert Run.objects.values().get(pk=run) == before
