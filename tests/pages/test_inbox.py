"""Questions in the browser: who sees them, what is shown, and that an answer is given once (promises INT)."""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.pages.visitors import visitor
from tests.support.hand import Hand
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from tests.support.rows import all_rows
from workflows.models import Interrupt, Vote

pytestmark = pytest.mark.django_db(transaction=True)

APPROVAL = workflow(
    """
  - id: ask
    kind: approval
    ask: "Release 1.4?"
    show: { archive: "app-1.4.tar", digest: "1f2e" }
    quorum: 2
    not_by: [requester]
    form:
      count: { type: integer, min: 1, max: 5 }
      note: { type: string, multiline: true, optional: true }
    timeout: 1h
    next: { rejected: done, expired: stop }
  - { id: stop, kind: end, status: failed, reason: late }
"""
)
CHOICE = workflow(
    """
  - id: ask
    kind: question
    ask: "Which way?"
    choices: { left: To the left, right: To the right }
    timeout: 1h
    next: { left: done, right: done }
"""
)


def asked(text: str, **more: object) -> int:
    return play(publish_run(text, **more)).pk


def approver(name: str) -> Client:
    return visitor(name=name, groups=("approver",))


def path(run: int) -> str:
    return reverse("pages:question", args=[run, 1])


def say(client: Client, run: int, decision: str, **fields: str) -> HttpResponse:
    data = {"decision": decision, "attempt": "1", **{name.replace("field_", "field-"): v for name, v in fields.items()}}
    return client.post(path(run), data)  # type: ignore[return-value]


def text_of(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


def test_a_question_shows_what_is_approved_by_whom_until_when_and_what_happens_then() -> None:
    """INT.5"""
    run = asked(APPROVAL, started_by="bob")
    page = text_of(approver("ann").get(path(run)))  # type: ignore[arg-type]
    for words in ("Release 1.4?", "app-1.4.tar", "1f2e", "2 approvals of different people; 0 so far", "stop"):
        assert words in page
    assert "Not bybob" in page


def test_two_people_approve_and_the_run_gets_their_answer() -> None:
    """INT.5: the vote holds the digest of what was shown."""
    run = asked(APPROVAL, started_by="bob")
    first, second = approver("ann"), approver("eve")
    one = say(first, run, "approved", field_count="3", comment="Looks well")
    assert (one.status_code, one.headers["Location"]) == (302, path(run))
    assert "1 of 2 that are needed" in first.get(path(run)).content.decode()

    assert say(second, run, "approved", field_count="4").status_code == 302
    question = Interrupt.objects.get(run=run)
    assert question.status == "answered"
    assert {(vote.voter, vote.recorded_by, vote.shown_digest) for vote in Vote.objects.all()} == {
        ("ann", "ann", question.shown_digest),
        ("eve", "eve", question.shown_digest),
    }


def test_wrong_fields_are_marked_and_nothing_that_was_typed_is_lost() -> None:
    """INT.4"""
    run = asked(APPROVAL, started_by="bob")
    before = all_rows()
    response = say(approver("ann"), run, "approved", field_count="9", field_note="two\nlines <b>", comment="why not")
    page = response.content.decode()
    assert response.status_code == 422
    assert 'value="9"' in page
    assert 'aria-invalid="true"' in page
    assert "two\nlines &lt;b&gt;</textarea>" in page
    assert "why not</textarea>" in page
    assert all_rows() == before


def test_a_rejection_needs_no_form() -> None:
    run = asked(APPROVAL, started_by="bob")
    assert say(approver("ann"), run, "rejected", comment="Not today").status_code == 302
    assert Interrupt.objects.get(run=run).status == "answered"


def test_the_first_answer_wins_and_the_other_is_told_who_answered() -> None:
    """INT.3"""
    run = asked(CHOICE)
    assert say(approver("ann"), run, "left").status_code == 302
    response = say(approver("eve"), run, "right", comment="I thought of the right one")
    assert response.status_code == 409
    page = text_of(response)
    assert "was answered by ann" in page
    assert "I thought of the right one" in page
    assert Interrupt.objects.get(run=run).answered_by == "ann"


def test_the_same_answer_again_is_no_error() -> None:
    """INT.3: a form that is sent twice."""
    run = asked(CHOICE)
    ann = approver("ann")
    assert say(ann, run, "left").status_code == 302
    assert say(ann, run, "left").status_code == 302
    assert Vote.objects.count() == 1


def test_a_form_of_an_earlier_asking_answers_nothing() -> None:
    """INT.7"""
    run = asked(CHOICE)
    before = all_rows()
    response = approver("ann").post(path(run), {"decision": "left", "attempt": "7"})
    assert response.status_code == 409
    assert "has changed since it was looked at" in text_of(response)  # type: ignore[arg-type]
    assert all_rows() == before


def test_whoever_started_the_run_may_not_approve_it_superusers_included() -> None:
    """INT.5"""
    run = asked(APPROVAL, started_by="root")
    root = visitor(name="root", is_superuser=True)
    page = root.get(path(run))
    assert "You may not answer this." in page.content.decode()
    assert "id_comment" not in page.content.decode()
    before = all_rows()
    assert say(root, run, "approved", field_count="1").status_code == 403
    assert all_rows()["Vote"] == before["Vote"]


def test_no_way_of_looking_answers() -> None:
    """INT.6"""
    run = asked(CHOICE)
    ann = approver("ann")
    before = all_rows()
    ann.get(path(run), {"decision": "left", "attempt": "1"})
    ann.head(path(run), {"decision": "left", "attempt": "1"})
    for method in (ann.put, ann.patch, ann.delete):
        assert method(path(run)).status_code == 405
    assert all_rows() == before


def test_an_answer_needs_the_token_of_its_form() -> None:
    """INT.6: no other site decides in somebody's name."""
    run = asked(CHOICE)
    ann = approver("ann")
    ann.handler.enforce_csrf_checks = True
    assert say(ann, run, "left").status_code == 403
    assert Vote.objects.count() == 0


@pytest.mark.parametrize("name", ["comment", "field_note", "field_count", "decision"])
def test_characters_that_no_text_has_are_refused_beside_the_field(name: str) -> None:
    """DB.4"""
    run = asked(APPROVAL, started_by="bob")
    before = all_rows()
    said = {"decision": "approved", "field_count": "3", name: "a\0b"}
    assert say(approver("ann"), run, said.pop("decision"), **said).status_code == 422
    assert all_rows() == before


def inbox_of(client: Client, show: str = "mine") -> list[str]:
    page = client.get(reverse("pages:inbox"), {"show": show}).content.decode()
    return re.findall(r'class="inbox-ask" href="/runs/(\d+)/', page)


def test_the_inbox_holds_what_waits_for_this_person_and_no_other() -> None:
    """INT.5, WEB.2"""

    def asking(by: str) -> str:
        return workflow(f'  - {{ id: ask, kind: approval, ask: "Go?", timeout: 1h, by: {by} }}')

    everyone = str(asked(CHOICE))
    mine = str(asked(asking("{ users: [ann] }")))
    group = str(asked(asking("{ groups: [approver] }")))
    starter = str(asked(asking("{ users: [requester] }"), started_by="ann"))
    similar = str(asked(asking("{ users: [ann_marie] }")))
    others = str(asked(asking("{ groups: [leads] }")))
    not_mine = str(asked(APPROVAL, started_by="ann"))

    ann = approver("ann")
    assert inbox_of(ann) == [everyone, mine, group, starter]
    assert set(inbox_of(ann, "open")) == {everyone, mine, group, starter, similar, others, not_mine}
    assert 'aria-label="4 waiting for you"' in ann.get("/").content.decode()

    say(ann, int(everyone), "left")
    assert inbox_of(ann) == [mine, group, starter]
    assert everyone in inbox_of(ann, "ended")


def test_what_somebody_has_voted_on_does_not_wait_for_them_any_more() -> None:
    run = asked(APPROVAL, started_by="bob")
    ann = approver("ann")
    assert inbox_of(ann) == [str(run)]
    say(ann, run, "approved", field_count="1")
    assert inbox_of(ann) == []
    assert inbox_of(approver("eve")) == [str(run)]


def test_a_viewer_has_no_inbox_and_hears_why() -> None:
    asked(CHOICE)
    viewer = visitor(name="viv", groups=("viewer",))
    assert inbox_of(viewer) == []
    assert "Your roles do not let you answer" in text_of(viewer.get(reverse("pages:inbox")))  # type: ignore[arg-type]


def test_the_inbox_takes_few_queries_however_many_runs_ask(django_assert_max_num_queries: object) -> None:
    for _ in range(12):
        asked(CHOICE)
    ann = approver("ann")
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        assert len(inbox_of(ann)) == 12


def test_a_deadline_that_has_passed_is_told() -> None:
    run = publish_run(CHOICE)
    Hand(run).step()  # asked in the past, for an hour
    assert "deadline passed" in text_of(approver("ann").get(reverse("pages:inbox")))  # type: ignore[arg-type]
    response = say(approver("eve"), run, "left")
    assert response.status_code == 409
    assert "its deadline has passed" in text_of(response)
