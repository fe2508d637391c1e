"""Starting a run from its form."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import store_plan, workflow
from workflows.jsonvalue import decode
from workflows.models import Payload, Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

SHIP = workflow(
    "  - { id: work, kind: shell, run: make }",
    before="""
title: Ship it
params:
  region: { type: string, enum: [eu, us], labels: [Europe, America], default: eu }
  copies: { type: integer, title: Copies, min: 1, max: 9 }
  notes: { type: string, multiline: true, optional: true, title: Notes }
  labels: { type: object, title: Labels, optional: true }
""",
    name="ship",
)


def params_of(run: Run) -> object:
    return decode(Payload.objects.get(digest=run.params_digest).text)


def test_an_error_in_the_form_is_corrected_and_nothing_that_was_typed_is_lost(people: People) -> None:
    store_plan(SHIP, private=False)
    page = people("ann", "operator").open("/workflows/ship/")
    page.get_by_role("link", name="Start").click()
    page.get_by_label("Region").select_option(label="America")
    page.get_by_label("Copies").fill("3")
    page.get_by_label("Notes").fill("two lines\nwith 'quotes' & <angles>")
    page.get_by_label("Labels").fill('{"team": "blue"')
    page.get_by_label("Title", exact=True).fill("For the fair")
    page.locator(".start-actions").get_by_role("button", name="Start").click()

    expect(page.get_by_role("alert")).to_contain_text("Not started: 1 problem")
    labels = page.get_by_label("Labels")
    expect(labels).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#{labels.get_attribute('id')}_error0")).to_be_visible()
    expect(labels).to_have_value('{"team": "blue"')
    expect(page.get_by_label("Region")).to_have_value("us")
    expect(page.get_by_label("Copies")).to_have_value("3")
    expect(page.get_by_label("Notes")).to_have_value("two lines\nwith 'quotes' & <angles>")
    expect(page.get_by_label("Title", exact=True)).to_have_value("For the fair")
    assert not Run.objects.exists()

    labels.fill('{"team": "blue"}')
    expect(page.locator("#preview pre")).to_contain_text('"team": "blue"')
    page.locator(".start-actions").get_by_role("button", name="Start").click()

    expect(page.get_by_role("heading", name="For the fair")).to_be_visible()
    run = Run.objects.get()
    assert params_of(run) == {
        "region": "us",
        "copies": 3,
        "notes": "two lines\nwith 'quotes' & <angles>",
        "labels": {"team": "blue"},
    }
    assert (run.title, run.started_by, run.origin) == ("For the fair", "ann", "page")


@pytest.mark.parametrize("with_scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_double_click_starts_one_run(people: People, with_scripts: bool) -> None:
    """PUB.8"""
    store_plan(SHIP, private=False)
    page = people("ann", "operator", java_script_enabled=with_scripts).open("/workflows/ship/start/")
    page.get_by_label("Copies").fill("1")
    page.locator(".start-actions").get_by_role("button", name="Start").dblclick()
    expect(page).to_have_url(re.compile(r"/runs/\d+/$"))
    assert Run.objects.count() == 1


def test_the_form_and_its_json_say_the_same(people: People) -> None:
    store_plan(SHIP, private=False)
    page = people("ann", "operator").open("/workflows/ship/start/")
    page.get_by_label("Copies").fill("4")
    page.get_by_role("button", name="JSON").click()
    json = page.get_by_label("All parameters as one JSON object")
    assert decode(json.input_value()) == {"region": "eu", "copies": 4}
    json.fill('{"region": "us", "copies": 5}')
    page.get_by_role("button", name="Form").click()
    expect(page.get_by_label("Region")).to_have_value("us")
    expect(page.get_by_label("Copies")).to_have_value("5")
