"""Answering questions, alone and with others."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import publish_run, workflow
from tests.support.players import play
from workflows.models import Interrupt, Run, Vote

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

QUORUM = workflow(
    """
  - { id: go, kind: approval, ask: "Ship to everyone?", quorum: 2, show: { version: "1.4.0" } }
  - { id: over, kind: end, status: succeeded }
""",
    name="quorum",
)
THREE = workflow(
    """
  - id: all
    kind: parallel
    branches:
      a: [{ id: first, kind: question, ask: "First?" }]
      b: [{ id: second, kind: question, ask: "Second?" }]
      c: [{ id: third, kind: question, ask: "Third?" }]
""",
    name="three",
)
CHOICE = workflow(
    '  - { id: color, kind: question, ask: "Which color?", choices: { red: Red, blue: Blue } }', name="choice"
)


def test_two_people_approve_what_needs_two(people: People) -> None:
    """INT.5: a quorum counts people."""
    run = play(publish_run(QUORUM)).pk
    ann, bob = people("ann", "approver").page, people("bob", "approver").page
    for page in (ann, bob):
        page.goto("/inbox/")
        page.get_by_role("link", name="Ship to everyone?").click()
        expect(page.get_by_text("1.4.0")).to_be_visible()

    ann.get_by_role("button", name="Approve").click()

    expect(ann.get_by_text("1 of 2 approvals are there")).to_be_visible()
    expect(ann.get_by_role("button", name="Approve")).to_have_count(0)
    assert Run.objects.get(pk=run).status == "paused"

    bob.get_by_label("Comment").fill("Looks good")
    bob.get_by_role("button", name="Approve").click()

    # whose answer decides is brought onward; whoever looks at the question again sees who said what
    ann.goto(f"/runs/{run}/questions/1/")
    expect(ann.get_by_text("Answered by")).to_be_visible()
    expect(ann.get_by_text("Looks good")).to_be_visible()
    assert set(Vote.objects.values_list("voter", flat=True)) == {"ann", "bob"}
    assert play(run).status == "succeeded"


def test_who_answers_second_is_told_who_was_first_and_keeps_what_they_wrote(people: People) -> None:
    """INT.3"""
    run = play(publish_run(CHOICE)).pk
    ann, bob = people("ann", "approver").page, people("bob", "approver").page
    for page in (ann, bob):
        page.goto(f"/runs/{run}/questions/1/")
    ann.get_by_role("button", name="Red").click()
    expect(ann.get_by_role("button", name="Blue")).to_have_count(0)

    bob.get_by_label("Comment").fill("It has to be blue, since red is sold out")
    bob.get_by_role("button", name="Blue").click()

    expect(bob.get_by_role("alert")).to_contain_text("ann")
    expect(bob.get_by_text("It has to be blue, since red is sold out")).to_be_visible()
    expect(bob.get_by_text("It was not sent.")).to_be_visible()
    answered = Interrupt.objects.get()
    assert answered.answered_by == "ann"


def test_three_open_questions_are_answered_from_the_last_to_the_first(people: People) -> None:
    """INT.2"""
    run = play(publish_run(THREE)).pk
    page = people("ann", "approver").page
    for ask in ("Third?", "Second?", "First?"):
        page.goto("/inbox/")
        page.get_by_role("link", name=ask).click()
        page.get_by_role("textbox", name="Answer").fill(f"to {ask}")
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.get_by_role("button", name="Answer", exact=True)).to_have_count(0)
        play(run)
    assert Run.objects.get(pk=run).status == "succeeded"
    assert Interrupt.objects.filter(status="answered").count() == 3
