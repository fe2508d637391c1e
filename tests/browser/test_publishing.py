"""Writing a workflow in the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import store_plan, workflow
from workflows.models import Plan

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

FIRST = workflow("  - { id: work, kind: shell, run: make }", name="print")


def test_an_error_is_told_at_its_line_and_corrected_before_the_version_is_published(people: People) -> None:
    store_plan(FIRST, private=False)
    page = people("ann").open("/workflows/print/")
    page.get_by_role("link", name="Edit").click()
    text = page.get_by_label("The text of the workflow file")
    wrong = "format: 1\nname: print\nsteps:\n  - { id: work, kind: shell, run: make }\n  - { id: tell, kind: shel, run: echo }\n"
    text.fill(wrong)
    page.get_by_role("button", name="Publish").click()

    findings = page.locator("#findings")
    expect(findings).to_contain_text("1 error")
    expect(findings).to_contain_text("Line 5")
    expect(text).to_have_value(wrong)
    assert Plan.objects.count() == 1

    text.fill(wrong.replace("shel,", "shell,"))
    page.get_by_role("button", name="Check").click()
    expect(findings).to_contain_text("No problems.")
    expect(page.get_by_role("heading", name="What it looks like")).to_be_visible()
    page.get_by_role("button", name="Publish version 2").click()

    expect(page.get_by_role("link", name="version 2").first).to_be_visible()
    page.get_by_role("link", name="Compare").click()
    expect(page.locator("main")).to_contain_text("tell")
    assert Plan.objects.filter(version=2).exists()
