"""Home: what waits, what is stuck, who works (promise WEB.5)."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.pages.visitors import visitor
from tests.support.hand import Hand, expire
from tests.support.plans import START, publish_run, workflow
from tests.support.players import play
from workflows.ledger.transactions import ledger_transaction
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

ASKS = workflow('  - { id: ask, kind: question, ask: "What now?" }', name="asks")
WORKS = workflow("  - { id: work, kind: shell, run: make }", name="works")
PAYS = workflow("  - { id: pay, kind: shell, run: make, access: write }", name="pays")
FAILS = workflow("  - { id: stop, kind: end, status: failed, reason: no }", name="fails")


def page_of(client: Client) -> str:
    response = client.get("/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_home_shows_the_questions_of_the_person() -> None:
    play(publish_run(ASKS))
    assert "What now?" in page_of(visitor(name="ann", groups=("approver",)))
    assert "No question waits for you" in page_of(visitor(name="viv", groups=("viewer",)))


def test_runs_that_could_go_on_without_a_worker_are_told_with_what_to_do() -> None:
    """WEB.5: no worker listens."""
    publish_run(WORKS)
    page = page_of(visitor(name="viv", groups=("viewer",)))
    assert "No worker is at work." in page
    assert "python manage.py run_worker" in page
    assert "could go on, and no worker drives it" in page


def test_who_drives_runs_is_listed_with_their_last_sign() -> None:
    Hand(publish_run(WORKS), owner="host-a:17:abc").step()
    page = page_of(visitor(name="viv", groups=("viewer",)))
    assert "host-a:17:abc" in page
    assert "1 run · last sign just now" in page
    assert "No worker is at work" not in page


@pytest.mark.unsound
def test_blocked_and_lately_failed_runs_need_an_operator() -> None:
    """WEB.5"""
    blocked = publish_run(PAYS)
    Hand(blocked).step()
    expire(blocked)
    Hand(blocked).step()
    failed, old = play(publish_run(FAILS)).pk, play(publish_run(FAILS)).pk
    _let_it_have_ended_long_ago(old)
    links = visitor(name="viv", groups=("viewer",)).get("/").content.decode()
    needs = links.partition("Needs an operator")[2].partition("Going on")[0]
    assert re.findall(r'href="/runs/(\d+)/"', needs) == [str(blocked), str(failed)]
    assert str(old) not in re.findall(r'href="/runs/(\d+)/"', needs)


@ledger_transaction
def _let_it_have_ended_long_ago(run: int) -> None:
    Run.objects.filter(pk=run).update(ended_at=START)


def test_home_takes_as_many_queries_for_many_runs(django_assert_max_num_queries: object) -> None:
    for _ in range(5):
        play(publish_run(ASKS))
        play(publish_run(FAILS))
        publish_run(WORKS)
    client = visitor(name="ann", groups=("admin",))
    with django_assert_max_num_queries(32):  # type: ignore[operator]
        page_of(client)
