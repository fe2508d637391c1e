"""Which runs a filter means."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.support.plans import START, publish_run, workflow
from tests.support.players import play
from workflows.models import Run, RunFilter
from workflows.models.guard import writing

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = workflow("  - { id: ask, kind: question, ask: What? }", name="asks")
FAILS = workflow("  - { id: stop, kind: end, status: failed, reason: no }", name="fails")


def found(**chosen: object) -> list[int]:
    return sorted(RunFilter(**chosen).rows().values_list("pk", flat=True))  # type: ignore[arg-type]


def change(run: int, **columns: object) -> None:
    token = writing.set(True)
    try:
        Run.objects.filter(pk=run).update(**columns)
    finally:
        writing.reset(token)


def test_each_choice_narrows_the_runs() -> None:
    asks = play(publish_run(ASKS)).pk
    fails = play(publish_run(FAILS)).pk
    idle = publish_run(ASKS, title="Prices of May", started_by="bob")
    code = Run.objects.get(pk=fails).error.split('"code":"')[1].split('"')[0]

    assert found() == [asks, fails, idle]
    assert found(workflow="asks") == [asks, idle]
    assert found(statuses=("failed", "queued")) == [fails, idle]
    assert found(started_by="bob") == [idle]
    assert found(live=True) == [asks, idle]
    assert found(live=False) == [fails]
    assert found(text="prices") == [idle]
    assert found(text=f"#{asks}") == [asks]
    assert found(waits_for="people") == [asks]
    assert found(error_code=code) == [fails]
    assert found(numbers=(asks, fails)) == [asks, fails]
    assert found(after=asks, before=idle) == [fails]
    assert found(parent=asks) == []
    assert found(created_from=START + timedelta(seconds=1)) == []
    assert found(created_from=START, created_to=START + timedelta(seconds=1)) == [asks, fails, idle]


def test_a_number_larger_than_any_row_finds_nothing() -> None:
    run = play(publish_run(ASKS)).pk
    assert found(before=10**30) == [run]
    assert found(after=10**30) == []
    assert found(text="9" * 40) == []


@pytest.mark.unsound
def test_stalled_is_what_could_go_on_and_is_not_driven() -> None:
    """WEB.5"""
    waits = play(publish_run(ASKS)).pk
    old = publish_run(ASKS)
    fresh = publish_run(ASKS)
    held = publish_run(ASKS)
    change(fresh, created_at=timezone.now())
    change(held, held='{"by":"ann"}')
    assert found(is_stalled=True) == [old]
    assert waits in found(waits_for="people")


def test_a_filter_survives_being_stored() -> None:
    """ABR.4: the set of a bulk action is made from it."""
    chosen = RunFilter(
        workflow="x", statuses=("failed",), live=False, numbers=(1, 2), created_from=START, is_stalled=True
    )
    assert RunFilter.from_json(chosen.as_json()) == chosen
    assert RunFilter().as_json() == {}
    with pytest.raises(KeyError, match="colour"):
        RunFilter.from_json({"colour": "red"})


def test_the_place_in_a_list_is_no_choice() -> None:
    """ABR.4"""
    assert RunFilter(before=5, after=2).is_empty
    assert not RunFilter(live=False).is_empty
