"""The run list: what the address says, pages that do not slip, and what it costs (promise WEB.3)."""

from __future__ import annotations

import re

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.pages.world import HARM
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from workflows.pages.run_choices import chosen

pytestmark = pytest.mark.django_db(transaction=True)

ENDS = workflow("  - { id: stop, kind: end, status: succeeded }", name="ends")
FAILS = workflow("  - { id: stop, kind: end, status: failed, reason: no }", name="fails")
ASKS = workflow('  - { id: ask, kind: question, ask: "What?" }', name="asks")


def viewer() -> Client:
    return visitor(name="viv", groups=("viewer",))


def page_of(client: Client, query: str = "") -> str:
    response = client.get(f"{reverse('pages:run_list')}?{query}")
    assert response.status_code == 200
    return response.content.decode()


def listed(client: Client, query: str = "") -> list[int]:
    rows = re.findall(r'class="table-title" href="/runs/(\d+)/"', page_of(client, query))
    return [int(number) for number in rows]


def test_the_address_says_which_runs_are_shown() -> None:
    ended, failed, asks = (play(publish_run(text)).pk for text in (ENDS, FAILS, ASKS))
    titled = publish_run(ENDS, title="Prices of May", started_by="bob")
    client = viewer()
    assert listed(client) == [titled, asks, failed, ended]
    assert listed(client, "sort=oldest") == [ended, failed, asks, titled]
    assert listed(client, "status=failed&status=succeeded") == [failed, ended]
    assert listed(client, "status=live") == [titled, asks]
    assert listed(client, "workflow=ends&by=bob") == [titled]
    assert listed(client, "text=of+may") == [titled]
    assert listed(client, f"text={failed}") == [failed]
    assert listed(client, "waits_for=people") == [asks]
    assert listed(client, "error=ended_failed") == [failed]
    assert listed(client, "created_to=2020-01-01") == []
    assert listed(client, "created_from=2026-01-31&created_to=2026-01-31") == [titled, asks, failed, ended]


@pytest.mark.parametrize(
    "query",
    [
        "status=purple",
        "created_from=yesterday",
        "ended_to=2026-02-31",
        "created_to=9999-12-31",
        "before=x",
        "parent=-1",
        "after=99999999999999999999999",
        "waits_for=godot",
        "text=" + "x" * 5000,
        "by=%F0%9F%98%80&key=%25&error=%22",
    ],
)
def test_no_address_is_an_error(query: str) -> None:
    """WEB.4"""
    play(publish_run(ENDS))
    page_of(viewer(), query)


def test_a_character_that_no_text_has_is_refused_calmly() -> None:
    """DB.4"""
    assert viewer().get(f"{reverse('pages:run_list')}?text=%00").status_code == 422


def test_what_is_not_understood_is_told_and_left_out() -> None:
    run = play(publish_run(ENDS)).pk
    client = viewer()
    assert "“purple” is no status. It is left out." in page_of(client, "status=purple")
    assert listed(client, "status=purple") == [run]


def test_a_last_day_is_included() -> None:
    wanted = chosen(QueryDict("created_to=2026-01-31&created_from=2026-01-31T10:00")).filter
    assert wanted.created_to is not None
    assert wanted.created_to.isoformat() == "2026-02-01T00:00:00+00:00"
    assert wanted.created_from is not None
    assert wanted.created_from.isoformat() == "2026-01-31T10:00:00+00:00"


def test_pages_follow_each_other_without_gap_and_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEB.3: also while new runs arrive."""
    monkeypatch.setattr("workflows.pages.runs.PAGE", 3)
    runs = [publish_run(ENDS) for _ in range(8)]
    client = viewer()
    page = page_of(client)
    seen, query = listed(client), ""
    for _ in range(2):
        publish_run(ENDS)
        query = re.findall(r'href="\?([^"]*before=\d+)">Older', page)[0].replace("&amp;", "&")
        page = page_of(client, query)
        seen += listed(client, query)
    assert seen == runs[::-1]
    assert "Older" not in page
    back = re.findall(r'href="\?([^"]*after=\d+)">', page_of(client, query))[0].replace("&amp;", "&")
    assert listed(client, back) == runs[4:1:-1]


def test_counts_by_status_are_of_what_is_filtered() -> None:
    for text in (ENDS, ENDS, FAILS):
        play(publish_run(text))
    page = page_of(viewer(), "workflow=ends&status=failed")
    assert re.search(r"succeeded</span></span> <span class=\"muted\">2</span>", page)
    assert "No run is like that" in page


def test_a_count_that_is_large_is_not_counted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEB.3"""
    for module in ("queries.run_list", "pages.runs"):
        monkeypatch.setattr(f"workflows.{module}.MOST_COUNTED", 2)
    for _ in range(3):
        publish_run(ENDS)
    assert "1\u202f000+" in page_of(viewer())


def test_the_list_takes_as_many_queries_for_many_runs_as_for_one(django_assert_max_num_queries: object) -> None:
    """WEB.3"""
    for _ in range(30):
        publish_run(ENDS)
    client = viewer()
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        assert len(listed(client)) == 30


def test_a_row_says_what_the_run_waits_for_or_why_it_failed() -> None:
    play(publish_run(ASKS))
    play(publish_run(FAILS))
    page = page_of(viewer())
    assert "waits for people" in page
    assert "<code><bdi>ended_failed</bdi></code>" in page


def test_harmful_titles_are_text() -> None:
    """WEB.1"""
    publish_run(ENDS, title=HARM, started_by=HARM[:100])
    page = page_of(viewer())
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
