"""Many workers tick at once: in threads and in processes, every time fires once (SCH.2)."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from tests.processes import Processes
from tests.schedules.times import at
from tests.schedules.world import hourly, published
from workflows.ledger.transactions import database_thread
from workflows.models import Run, Schedule, ScheduleFire
from workflows.operations.firing import tick

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 4
HOURS = 6
TICKER = """
import sys, os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()
from datetime import datetime, timedelta, UTC
from workflows.operations.firing import tick
begin = datetime(2026, 1, 31, 10, tzinfo=UTC)
print("ready", flush=True)
sys.stdin.readline()
for minute in range(0, 6 * 60, 5):
    tick(now=begin + timedelta(minutes=minute))
"""


def in_threads(do: object) -> list[BaseException]:
    errors: list[BaseException] = []
    gate = threading.Barrier(WORKERS)

    def go() -> None:
        with database_thread():
            try:
                gate.wait()
                do()  # type: ignore[operator]
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=go) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def keys() -> list[str]:
    return sorted(Run.objects.values_list("idempotency_key", flat=True))


def test_threads_that_tick_at_once_start_one_run_for_each_time() -> None:
    """SCH.2"""
    published(*(f'cron: "0 * * * *", timezone: {zone}' for zone in ("UTC", "Europe/Berlin", "Asia/Tokyo")))

    def day() -> None:
        for minute in range(0, HOURS * 60, 10):
            tick(now=at("2026-01-31 10:00") + timedelta(minutes=minute))

    assert in_threads(day) == []
    tick(now=at("2026-01-31 15:59"))
    assert ScheduleFire.objects.count() == 3 * HOURS
    started = ScheduleFire.objects.filter(status="started").count()
    assert started == Run.objects.count() == 3, "the first of each goes on, the others are skipped"
    assert not ScheduleFire.objects.filter(settled_at=None).exists()


def test_threads_that_make_up_for_times_start_one_run_at_a_time() -> None:
    """SCH.2, SCH.5"""
    hourly(catch_up="all")
    assert in_threads(lambda: tick(now=at("2026-01-31 13:10"))) == []
    assert Run.objects.count() == 1
    assert ScheduleFire.objects.filter(status="waiting").count() == 3


def test_processes_that_tick_at_once_start_one_run_for_each_time(processes: Processes) -> None:
    """SCH.2"""
    published('cron: "*/5 * * * *"')
    row = Schedule.objects.get()
    tickers = [processes.start_python("-c", TICKER) for _ in range(3)]
    for ticker in tickers:
        assert ticker.stdout.readline().strip() == "ready"
    for ticker in tickers:
        ticker.stdin.write("go\n")
        ticker.stdin.flush()
    for ticker in tickers:
        _, stderr = ticker.communicate(timeout=120)
        assert ticker.returncode == 0, stderr
        assert "could not be looked after" not in stderr
    tick(now=at("2026-01-31 15:56"))
    times = list(ScheduleFire.objects.exclude(status="missed").order_by("at").values_list("at", flat=True))
    assert len(times) == len(set(times))
    assert len(keys()) == len(set(keys())) == ScheduleFire.objects.filter(status="started").count() == 1
    row.refresh_from_db()
    assert row.handled_until == at("2026-01-31 15:55")
    assert not ScheduleFire.objects.filter(settled_at=None).exists()
