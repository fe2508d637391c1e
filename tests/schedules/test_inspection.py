"""What ``check_ledger`` says about schedules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.schedules.times import at
from tests.schedules.world import hourly, published, the_schedule, tick_at
from tests.support.plans import publish_run
from tests.support.players import play
from workflows.ledger.inspection_strays import inspect_strays
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Run, Schedule, ScheduleFire

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.unsound]


def change(do: Callable[[], object]) -> None:
    ledger_transaction(do)()


def test_schedules_at_work_are_sound() -> None:
    """REV.3"""
    published('cron: "0 * * * *", if_running: queue', 'cron: "5 * * * *"')
    for time in ("10:00", "11:00", "12:00", "12:10"):
        tick_at(f"2026-01-31 {time}")
    play(Run.objects.earliest("pk").pk)
    tick_at("2026-01-31 12:20")
    assert list(inspect_strays()) == []


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"status": "due"}, "is due, which does not fit the rest of its row"),
        ({"run": None}, "is started, which does not fit the rest of its row"),
        ({"settled_at": None}, "is started, which does not fit the rest of its row"),
    ],
)
def test_a_time_that_contradicts_itself_is_found(columns: dict[str, object], told: str) -> None:
    """REV.3"""
    hourly()
    tick_at("2026-01-31 10:00")
    change(lambda: ScheduleFire.objects.update(**columns))
    [problem] = inspect_strays()
    assert told in problem


def test_a_run_that_is_no_run_of_the_schedule_is_found() -> None:
    """REV.3"""
    hourly()
    tick_at("2026-01-31 10:00")
    other = publish_run("format: 1\nname: other\nsteps:\n  - { id: work, kind: shell, run: x }\n")
    change(lambda: ScheduleFire.objects.update(run=other))
    [problem] = inspect_strays()
    assert f"is said to have started run {other}" in problem
    change(lambda: ScheduleFire.objects.update(run=4711))
    assert list(inspect_strays()) == [], "a run that was pruned is no fault"


def test_schedules_that_differ_from_the_file_are_found() -> None:
    """REV.3"""
    hourly()
    change(lambda: Schedule.objects.update(cron="1 * * * *", next_at=at("2020-01-01"), handled_until=at("2020-01-02")))
    early, differs = inspect_strays()
    assert "which is dealt with already" in early
    assert differs == "the schedules of workflow demo are not those of its current version"
    assert the_schedule().of_file
