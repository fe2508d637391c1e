"""Following a run that a worker drives."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import store_plan, workflow

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("worker")]

MAP = workflow(
    """
  - { id: gate, kind: question, ask: "Ready?", choices: { begin: "Yes, begin" }, next: { begin: each } }
  - id: each
    kind: map
    over: ${ ["north", "south", "east"] }
    as: site
    do:
      - { id: measure, kind: shell, access: read, run: 'echo "$SITE"', env: { SITE: "${ site }" } }
    collect: ${ steps.measure.output }
output: { sites: "${ steps.each.output }" }
""",
    before="title: Measure every site",
    name="sites",
)
SLOW = workflow(
    """
  - { id: before, kind: shell, access: read, run: echo first }
  - { id: hang, kind: shell, access: read, run: sleep 1000, timeout: 1h }
""",
    name="slow",
)


def test_a_run_is_followed_to_its_end_without_reloading(people: People) -> None:
    """WEB.7: the page asks for what has changed, says that it is stale while it cannot, and stops asking when all is over."""
    store_plan(MAP, private=False)
    person = people("ann")
    page = person.open("/workflows/sites/start/")
    page.locator(".start-actions").get_by_role("button", name="Start").click()
    page.evaluate("window.isTheSamePage = true")
    expect(page.locator("#run-head .status-pill")).to_have_text("paused")
    expect(page.locator("#why")).to_contain_text("gate waits for an answer")
    expect(page.locator("#live-mark")).to_contain_text("Live")

    person.context.set_offline(True)
    expect(page.locator("#live-mark")).to_contain_text("Stale since")
    person.context.set_offline(False)
    expect(page.locator("#live-mark")).to_have_text("Live")

    other = person.new_page()
    other.goto(page.url)
    other.locator("#why").get_by_role("link", name="Answer", exact=True).click()
    other.get_by_role("button", name="Yes, begin").click()
    expect(other.get_by_role("button", name="Yes, begin")).to_have_count(0)
    other.close()

    expect(page.locator("#run-head .status-pill")).to_have_text("succeeded")
    expect(page.locator("#live-mark")).to_have_text("Final")
    expect(page.locator("#timeline")).to_contain_text("measure")
    expect(page.locator("#timeline")).to_contain_text("3 ok")
    expect(page.get_by_text('"sites"')).to_be_visible()
    assert page.locator("#poll[hx-get]").count() == 0, "it goes on asking"
    assert page.evaluate("window.isTheSamePage"), "the page was loaded anew"


def test_a_step_at_work_is_cancelled_and_its_end_is_seen(people: People) -> None:
    store_plan(SLOW, private=False)
    page = people("ann").open("/workflows/slow/start/")
    page.locator(".start-actions").get_by_role("button", name="Start").click()
    hang = page.locator("#timeline .timeline-row", has_text="hang")
    expect(hang.locator(".row-state")).to_have_attribute("title", "running")

    page.locator(".run-actions").get_by_role("link", name="Cancel").click()
    page.get_by_label("Reason").fill("The wrong one")
    page.get_by_role("button", name="Cancel").click()

    expect(page.locator("#run-head .status-pill")).to_have_text("cancelled")
    expect(hang.locator(".row-state")).to_have_attribute("title", "cancelled")
    expect(page.locator("#live-mark")).to_have_text("Final")
