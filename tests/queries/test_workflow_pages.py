"""The list of workflows and the strips of their latest runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.plans import START, publish_run, store_plan, workflow
from tests.support.players import play
from workflows.models import Workflow
from workflows.queries.workflow_pages import STRIP, run_strips, summary_of, versions_of, workflow_page

pytestmark = pytest.mark.django_db(transaction=True)


def text_of(name: str, *, run: str = "x", before: str = "") -> str:
    return workflow(
        f"  - {{ id: a, kind: assign, set: {{ v: {run} }} }}", name=name, before=f"vars: {{ v: 0 }}\n{before}"
    )


def root():
    return get_user_model()._default_manager.create_superuser("root", "", "x")


def test_a_strip_has_the_newest_runs_of_each_workflow_the_newest_last() -> None:
    many = [publish_run(text_of("many", run="1")) for _ in range(STRIP + 4)]
    one = publish_run(text_of("one", run="1"))
    store_plan(text_of("none", run="1"), private=False)
    ids = {row.name: row.pk for row in Workflow.objects.all()}

    with CaptureQueriesContext(connection) as queries:
        strips = run_strips(ids.values())

    assert len(queries) == 2
    assert [bar.run for bar in strips[ids["many"]]] == many[-STRIP:]
    assert [bar.run for bar in strips[ids["one"]]] == [one]
    assert ids["none"] not in strips


def test_a_bar_is_as_high_as_its_run_was_long() -> None:
    run = publish_run(text_of("demo", run="1"))
    live = publish_run(text_of("demo", run="1"))
    play(run)

    ended, queued = run_strips([Workflow.objects.get().pk]).popitem()[1]

    assert (ended.run, ended.status, ended.is_live) == (run, "succeeded", False)
    assert ended.seconds is not None
    assert 6 <= ended.height <= 22
    assert (queued.run, queued.seconds, queued.height, queued.is_live) == (live, None, 22, True)


def test_pages_go_on_behind_a_name() -> None:
    for number in range(5):
        store_plan(text_of(f"flow_{number}", run="1", before="tags: [x]"), private=False)
    viewer = root()

    first = workflow_page(viewer, limit=2)
    second = workflow_page(viewer, limit=2, after=first.after)
    last = workflow_page(viewer, limit=2, after=second.after)

    assert [row.name for page in (first, second, last) for row in page.rows] == [f"flow_{n}" for n in range(5)]
    assert (first.total, last.after, first.tags) == (5, "", ("x",))


def test_what_a_workflow_says_of_itself_follows_its_versions() -> None:
    viewer = root()
    store_plan(text_of("demo", run="1", before="owner: one"), private=False)
    assert workflow_page(viewer).rows[0].about.owner == "one"

    store_plan(text_of("demo", run="2", before="owner: two"), private=False, now=START + timedelta(days=1))

    row = workflow_page(viewer).rows[0]
    assert (row.about.owner, row.version, row.published_by) == ("two", 2, "ann")
    told = versions_of(Workflow.objects.get())
    assert [(one.version, one.is_current) for one in told] == [(2, True), (1, False)]


def test_a_summary_is_the_first_paragraph_without_marks() -> None:
    assert summary_of("  One **bold**\n  `line`.\n\nAnother.") == "One bold line."
    assert summary_of("") == ""
    assert len(summary_of("word " * 200)) == 200
