"""Notifications: a person chooses, an admin adds a webhook, without scripts and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.browser.person import PHONE
from tests.support.plans import store_plan, workflow
from workflows.models import Webhook
from workflows.operations.notifications_audience import preferences_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

DEPLOY = workflow("  - { id: work, kind: shell, run: make }", name="deploy")


def test_a_person_chooses_what_to_be_told_of(people: People) -> None:
    """NOTE.4, WEB.6"""
    store_plan(DEPLOY, private=False)
    page = people("ann", java_script_enabled=False, viewport=PHONE).open("/")
    page.locator(".menu summary").click()
    page.get_by_role("link", name="Notifications").click()
    page.get_by_label("A run failed").uncheck()
    page.get_by_label("Only runs of these workflows").check()
    page.get_by_label("Workflows", exact=True).select_option("deploy")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    expect(page.get_by_label("A run failed")).not_to_be_checked()
    found = preferences_of(["ann"])["ann"]
    assert (found.about, found.workflows) == ("chosen", {"deploy"})
    assert "run_failed" not in found.kinds


def test_an_admin_adds_a_webhook_and_hears_what_is_wrong_with_it(people: People) -> None:
    """NOTE.6, WEB.6"""
    store_plan(DEPLOY, private=False)
    page = people("ann").open("/workflows/deploy/")
    page.locator("main").get_by_role("link", name="Notifications").click()
    page.get_by_label("Address").fill("http://127.0.0.1/hook")
    page.get_by_label("Name of the secret").fill("hook")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("must not be an address of a private network")
    expect(page.get_by_label("Name of the secret")).to_have_value("hook")
    page.get_by_label("Address").fill("https://example.com/hook")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("https://example.com/hook")).to_be_visible()
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_role("button", name="Switch on")).to_be_visible()
    assert not Webhook.objects.get().is_on
