"""What people do for their programs: keys, and the description of the API on which requests are tried."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import publish_run, workflow
from workflows.models import ApiKey, ControlMessage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

WAITS = workflow("  - { id: ready, kind: wait, signal: go_on }", name="waits")


def test_a_key_is_made_shown_once_and_revoked(people: People) -> None:
    """KEY.1"""
    page = people("ann").open("/account/")
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("start runs").check()
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_label("The new key")).to_contain_text(f"wp_{ApiKey.objects.get().public_id}_")
    page.goto("/account/keys/")
    expect(page.get_by_label("The new key")).to_have_count(0)
    page.get_by_role("button", name="Revoke nightly").click()
    expect(page.get_by_role("table")).to_contain_text("revoked")
    assert ApiKey.objects.get().revoked_at is not None


def test_requests_are_tried_on_the_page_of_the_description(people: People) -> None:
    """API.5: its files are from here, and the strict policy lets them work."""
    run = publish_run(WAITS)
    page = people("ann").open("/api/v1/docs")
    operation = page.locator("[id$='-pause_run']")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_placeholder("run").fill(str(run))
    operation.locator("textarea").fill('{"reason": "wait"}')
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("200")
    assert ControlMessage.objects.filter(run=run, kind="pause").exists()
