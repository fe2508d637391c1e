"""The run list: what the address says, pages that do not slip, and what it costs (promise WEB.3)."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.pages.world import HARM
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from workflows.models import RunFilter
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


# ---- other orders ----------------------------------------------------------------------------------------------------


def pages_of(client: Client, query: str) -> list[list[int]]:
    """The numbers on each page, following the last link of the pager."""
    pages = []
    for _ in range(10):
        page = page_of(client, query)
        pages.append([int(number) for number in re.findall(r'class="table-title" href="/runs/(\d+)/"', page)])
        onward = re.search(r'href="\?([^"]*)">(Next|Older)<', page)
        if onward is None:
            return pages
        query = onward[1].replace("&amp;", "&")
    raise AssertionError("the pages have no end")


def test_other_orders_page_without_gap_and_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEB.3: equal values follow each other by number"""
    monkeypatch.setattr("workflows.pages.runs.PAGE", 2)
    ended = [play(publish_run(text)).pk for text in (FAILS, ENDS, ENDS, FAILS, ENDS)]
    queued = publish_run(ASKS)
    client = viewer()
    by_workflow = [ended[1], ended[2], ended[4], ended[0], ended[3]]

    assert pages_of(client, "sort=workflow") == [[queued, by_workflow[0]], by_workflow[1:3], by_workflow[3:]]
    assert pages_of(client, "sort=-workflow") == [[ended[3], ended[0]], [ended[4], ended[2]], [ended[1], queued]]
    assert pages_of(client, "sort=status") == [[ended[0], ended[3]], [queued, ended[1]], [ended[2], ended[4]]]
    assert pages_of(client, "sort=-ended") == [[ended[4], ended[3]], [ended[2], ended[1]], [ended[0]]]
    assert pages_of(client, "sort=started&workflow=fails") == [[ended[0], ended[3]]]


def test_a_page_of_another_order_leads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.pages.runs.PAGE", 2)
    runs = [play(publish_run(ENDS)).pk for _ in range(5)]
    client = viewer()
    second = re.findall(r'href="\?([^"]*before=\d+)">Next', page_of(client, "sort=-ended"))[0].replace("&amp;", "&")
    back = re.findall(r'href="\?([^"]*after=\d+)">', page_of(client, second))[0].replace("&amp;", "&")
    assert listed(client, second) == runs[2:0:-1]
    assert listed(client, back) == runs[:2:-1]


def test_a_place_that_is_gone_begins_the_order_anew() -> None:
    run = play(publish_run(ENDS)).pk
    assert listed(viewer(), "sort=ended&after=999") == [run]


def test_an_order_that_is_none_is_told() -> None:
    page = page_of(viewer(), "sort=colour")
    assert "“colour” is nothing that runs are sorted by. It is left out." in page


# ---- what is looked at ------------------------------------------------------------------------------------------------


def test_a_text_is_looked_for_in_so_many_runs_and_the_next_page_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEB.3"""
    monkeypatch.setattr("workflows.queries.run_list.MOST_SEARCHED", 3)
    first, *_, fifth = [publish_run(ENDS, title="May" if number in (0, 4) else "June") for number in range(5)]
    client = viewer()
    page = page_of(client, "text=may")
    assert f"Titles were searched down to run {fifth - 2}" in page
    assert pages_of(client, "text=may") == [[fifth], [first]]


def test_the_filter_by_an_error_reads_an_index() -> None:
    """WEB.3"""
    play(publish_run(FAILS))
    rows = RunFilter(error_code="ended_failed").rows().order_by("-pk").values("pk")
    assert RunFilter(error_code="ended").rows().count() == 0
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")
        plan = rows[:50].explain()
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = on")
    assert "run_by_error" in plan
