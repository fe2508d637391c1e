"""Bulk actions in the browser (promise ABR.4)."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from tests.support.rows import all_rows
from workflows.models import BulkAction, BulkItem, Run

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = workflow('  - { id: ask, kind: question, ask: "What?" }', name="asks")
ENDS = workflow("  - { id: stop, kind: end, status: succeeded }", name="ends")


def admin() -> Client:
    return visitor(name="ada", groups=("admin",))


def new() -> str:
    return reverse("pages:bulk_new")


def made(client: Client, **data: object) -> int:
    response = client.post(new(), {"request_id": "r1", "reason": "not needed", **data})
    assert response.status_code == 302, response.content.decode()[-2000:]
    return int(response.headers["Location"].rstrip("/").rpartition("/")[2])


def test_a_preview_counts_what_is_meant_and_changes_nothing() -> None:
    """ABR.4"""
    for text in (ASKS, ASKS, ENDS):
        play(publish_run(text))
    before = all_rows()
    page = admin().get(new(), {"action": "abandon", "scope": "all", "created_from": "2020-01-01"}).content.decode()
    assert "Abandon 3 runs?" in page
    assert "<strong>2</strong> of them can be changed this way" in page
    assert all_rows() == before


def test_by_filter_each_run_gets_a_result_and_the_set_is_fixed() -> None:
    """ABR.4"""
    waiting = [play(publish_run(ASKS)).pk for _ in range(3)]
    client = admin()
    bulk = made(client, action="abandon", scope="all", workflow="asks")
    later = play(publish_run(ASKS)).pk
    assert client.post(reverse("pages:bulk_carry_on", args=[bulk])).status_code == 302
    assert set(Run.objects.filter(status="abandoned").values_list("pk", flat=True)) == set(waiting)
    assert Run.objects.get(pk=later).status == "paused"
    page = client.get(reverse("pages:bulk", args=[bulk])).content.decode()
    assert "3 done · 0 refused · 0 left" in page
    assert "hx-post" not in page


def test_by_tick_only_the_chosen_runs_are_meant_and_refusals_say_why() -> None:
    """ABR.4"""
    waits, ended = play(publish_run(ASKS)).pk, play(publish_run(ENDS)).pk
    other = play(publish_run(ASKS)).pk
    client = admin()
    bulk = made(client, action="abandon", scope="chosen", run=[waits, ended])
    client.post(reverse("pages:bulk_carry_on", args=[bulk]))
    assert dict(BulkItem.objects.values_list("run", "result")) == {waits: "done", ended: "run.terminal"}
    assert Run.objects.get(pk=other).status == "paused"
    assert f"Run {ended} is already succeeded." in client.get(reverse("pages:bulk", args=[bulk])).content.decode()


def test_a_second_press_of_the_button_finds_the_first() -> None:
    """ABR.4"""
    run = play(publish_run(ASKS)).pk
    client = admin()
    assert made(client, action="pause", run=[run]) == made(client, action="pause", run=[run])
    assert BulkAction.objects.count() == 1


def test_it_can_be_stopped() -> None:
    """ABR.4"""
    run = play(publish_run(ASKS)).pk
    client = admin()
    bulk = made(client, action="abandon", run=[run])
    client.post(reverse("pages:bulk_abort", args=[bulk]))
    client.post(reverse("pages:bulk_carry_on", args=[bulk]))
    assert Run.objects.get(pk=run).status == "paused"
    assert "left as it was" in client.get(reverse("pages:bulk", args=[bulk])).content.decode()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"action": "cancel", "scope": "all"}, 422),  # an empty filter would mean every run
        ({"action": "cancel", "scope": "all", "status": "purple"}, 422),  # and so would a wrong one
        ({"action": "cancel", "scope": "all", "created_from": "soon", "status": "paused"}, 422),
        ({"action": "cancel", "scope": "chosen"}, 422),
        ({"action": "delete", "scope": "all", "status": "paused"}, 422),
        ({"action": "abandon", "scope": "all", "status": "paused", "reason": " "}, 422),  # needs a reason
    ],
)
def test_what_is_not_clear_is_refused(data: dict[str, str], status: int) -> None:
    """ABR.4"""
    play(publish_run(ASKS))
    before = all_rows()
    response = admin().post(new(), {"request_id": "r1", "reason": "x", **data})
    assert response.status_code == status
    assert all_rows() == before


@pytest.mark.parametrize("name", ["reason", "request_id", "workflow", "text", "by", "key", "error", "status", "parent"])
def test_characters_that_no_text_has_are_no_error(name: str) -> None:
    """DB.4"""
    play(publish_run(ASKS))
    data = {"action": "pause", "scope": "all", "status": "paused", "reason": "x", "request_id": "r1", name: "a\0b"}
    assert admin().post(new(), data).status_code in (302, 422)


def test_the_page_of_a_bulk_action_goes_on_by_itself() -> None:
    run = play(publish_run(ASKS)).pk
    client = admin()
    bulk = made(client, action="pause", run=[run])
    assert "hx-post" in client.get(reverse("pages:bulk", args=[bulk])).content.decode()
    fragment = client.post(reverse("pages:bulk_carry_on", args=[bulk]), headers={"HX-Request": "true"})
    assert "<html" not in fragment.content.decode()
    assert "1 done" in fragment.content.decode()
