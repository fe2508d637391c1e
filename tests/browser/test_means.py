"""Without scripts, without a mouse, on both databases."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import People
from tests.browser.crew import Crew, eventually
from tests.support.plans import store_plan, workflow
from workflows.models import Run

pytestmark = pytest.mark.django_db(transaction=True)

GREET = workflow(
    """
  - { id: ask, kind: question, ask: "Which greeting?", choices: { warm: Warm, cool: Cool }, next: { warm: greet, cool: greet } }
  - { id: greet, kind: shell, access: read, run: 'echo "$HOW"', env: { HOW: "${ steps.ask.output.choice }" } }
output: ${ steps.greet.output }
""",
    before="title: Greet\nparams: { guests: { type: integer, title: Guests } }",
    name="greet",
)


def reaches(run: int, status: str) -> None:
    eventually(lambda: Run.objects.get(pk=run).status in (status, "failed"), f"the run never became {status}")
    found = Run.objects.get(pk=run)
    assert found.status == status, found.error


def focused(page: Page) -> str:
    """What has the focus, in words, and that it shows."""
    return str(
        page.evaluate(
            """() => {
              const at = document.activeElement, style = getComputedStyle(at);
              const isSeen = style.outlineStyle !== "none" || style.boxShadow !== "none";
              return `${at.tagName.toLowerCase()} ${(at.ariaLabel || at.textContent || at.name).trim()}${isSeen ? "" : " (unseen)"}`;
            }"""
        )
    )


def test_everything_works_without_scripts(people: People, worker: Crew) -> None:
    """WEB.6: start, look, answer, cancel: the pages that matter need no script, on both databases."""
    store_plan(GREET, private=False)
    page = people("ann", java_script_enabled=False).open("/workflows/greet/start/")
    page.get_by_label("Guests").fill("3")
    page.locator(".start-actions").get_by_role("button", name="Start").click()
    run = Run.objects.get().pk
    reaches(run, "paused")
    page.get_by_role("link", name="Refresh").click()
    page.locator("#why").get_by_role("link", name="Answer", exact=True).click()
    page.get_by_role("button", name="Warm").click()
    reaches(run, "succeeded")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#run-head .status-pill")).to_have_text("succeeded")
    expect(page.locator("main")).to_contain_text("warm")
    page.locator("#timeline .row-name", has_text="greet").click()
    expect(page.get_by_role("heading", name="Attempts")).to_be_visible()

    page.goto("/workflows/greet/start/?from_run=" + str(run))
    page.locator(".start-actions").get_by_role("button", name="Start").click()
    second = Run.objects.latest("pk").pk
    reaches(second, "paused")
    page.goto(f"/runs/{second}/")
    page.locator(".run-actions").get_by_role("link", name="Cancel").click()
    page.get_by_role("button", name="Cancel").click()
    reaches(second, "cancelled")


def test_everything_works_with_the_keyboard(people: People, worker: Crew) -> None:
    """WEB.6: search, places, a form, an answer: each focus can be seen, on both databases."""
    store_plan(GREET, private=False)
    page = people("ann").open("/")
    page.keyboard.press("Tab")
    assert focused(page) == "a Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page).to_have_title("Workflows · Waypost")
    page.goto("/workflows/greet/start/")
    page.get_by_label("Guests").focus()
    page.keyboard.type("7")
    page.keyboard.press("Tab")
    assert focused(page) == "input title"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#run-head .status-pill")).to_have_text("paused")
    answer = page.locator("#why").get_by_role("link", name="Answer", exact=True)
    answer.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Comment").focus()
    page.keyboard.press("Tab")
    assert focused(page) == "button Warm"
    page.keyboard.press("Tab")
    assert focused(page) == "button Cool"
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cool")).to_have_count(0)
    run = Run.objects.get().pk
    reaches(run, "succeeded")
    page.keyboard.press("/")
    page.keyboard.type(str(run))
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Greet", exact=True)).to_be_visible()
