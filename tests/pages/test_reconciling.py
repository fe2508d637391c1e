"""Interrupted writes in the browser (promise ADM.6)."""

from __future__ import annotations

import json

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.support.hand import Hand, expire
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows
from workflows.jsonvalue import store
from workflows.ledger.late_results import keep_late_result
from workflows.models import Attempt, Run

pytestmark = pytest.mark.django_db(transaction=True)

PAYS = workflow(
    """
  - { id: pay, kind: shell, run: make, access: write, parse: json, next: { ok: done } }
""",
    after="output: ${ steps.pay.output }",
)


def interrupted() -> int:
    run = publish_run(PAYS)
    Hand(run).step()
    expire(run)
    Hand(run).step()
    return run


def operator() -> Client:
    return visitor(name="olga", groups=("operator",))


def path(run: int) -> str:
    return reverse("pages:reconcile", args=[run, 1])


def decide(client: Client, run: int, **said: str) -> HttpResponse:
    return client.post(path(run), said)  # type: ignore[return-value]


def test_the_page_tells_what_is_known_and_asks_for_a_decision() -> None:
    run = interrupted()
    attempt = Attempt.objects.get(run=run)
    page = operator().get(path(run)).content.decode()
    for words in (
        attempt.dispatch_id,
        "v1.1",
        "hand",
        "The worker was not heard of again",
        "It did not happen",
        "Stop",
    ):
        assert words in page
    assert " checked" not in page.split('value="happened"')[1].split(">")[0]


def test_that_it_happened_is_recorded_with_its_result() -> None:
    run = interrupted()
    response = decide(
        operator(), run, decision="happened", result="ok", outcome="ok", output='{"paid": 3}', reason="The bank says so"
    )
    assert response.headers["Location"] == reverse("pages:run", args=[run])
    told = json.loads(Attempt.objects.get(run=run).authorization)
    assert (told["decision"], told["actor"], told["reason"]) == ("happened", "olga", "The bank says so")
    Hand(run).step()
    assert Run.objects.get(pk=run).status == "succeeded"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"decision": "did_not"}, "eason"),
        ({"reason": "x"}, "Say what became of it"),
        ({"decision": "happened", "result": "ok", "output": "{", "reason": "x"}, "not JSON"),
        ({"decision": "happened", "result": "ok", "exit_code": "300", "reason": "x"}, "no exit code"),
        ({"decision": "happened", "result": "ok", "outcome": "purple", "reason": "x"}, "not an outcome"),
        ({"decision": "happened", "result": "failed", "error_code": "bored", "reason": "x"}, "not an error"),
    ],
)
def test_a_decision_that_cannot_be_taken_comes_back_with_what_was_typed(said: dict[str, str], words: str) -> None:
    run = interrupted()
    before = all_rows()
    response = decide(operator(), run, message="kept <i>", **said)
    assert response.status_code == 422
    page = response.content.decode()
    assert words in page
    assert 'value="kept &lt;i&gt;"' in page
    assert all_rows() == before


@pytest.mark.parametrize("name", ["reason", "output", "message", "outcome", "error_code", "exit_code"])
def test_characters_that_no_text_has_are_refused(name: str) -> None:
    """DB.4"""
    run = interrupted()
    result = "failed" if name in ("message", "error_code") else "ok"
    said = {"decision": "happened", "result": result, "error_code": "timeout", "reason": "x", name: '"a\0b"'}
    assert decide(operator(), run, **said).status_code == 422


def test_a_second_decision_is_told_that_there_is_nothing_to_decide() -> None:
    """ADM.6: one decision for one attempt."""
    run = interrupted()
    client = operator()
    assert decide(client, run, decision="stop", reason="nobody can tell").status_code == 302
    Hand(run).step()
    before = all_rows()
    response = decide(client, run, decision="did_not", reason="it did not")
    assert response.status_code == 409
    assert "There is nothing to decide here" in response.content.decode()
    assert all_rows() == before


def test_what_the_lost_worker_reported_is_proposed() -> None:
    """ADM.6: a late result moves nothing by itself."""
    run = interrupted()
    assert keep_late_result(run_id=run, visit=1, number=1, outcome="ok", output=store({"paid": 7}))
    page = operator().get(path(run)).content.decode()
    assert "after all. It moved nothing" in page
    assert "&quot;paid&quot;: 7" in page


def test_an_approver_may_look_and_not_decide() -> None:
    """WEB.2"""
    run = interrupted()
    before = all_rows()["Attempt"]
    client = visitor(name="ann", groups=("approver",))
    assert "You may look at this, but not decide it" in client.get(path(run)).content.decode()
    assert decide(client, run, decision="stop", reason="x").status_code == 403
    assert all_rows()["Attempt"] == before
