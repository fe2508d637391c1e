"""What operators do: say what became of an interrupted write, fork, abandon and resume, cancel many."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import People
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import output_of, play
from workflows.models import AuditEntry, BulkAction, Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite"), pytest.mark.usefixtures("by_hand")]

SUM = workflow(
    """
  - { id: add, kind: assign, set: { total: "${ params.amount + 1 }" } }
  - { id: wrap, kind: shell, access: read, run: make }
""",
    before="params: { amount: { type: integer } }\nvars: { total: 0 }",
    after="output: { total: '${ vars.total }' }",
    name="sum",
)
FAILS = workflow("  - { id: stop, kind: end, status: failed, reason: out of paper }", name="fails")
WAITS = workflow('  - { id: ask, kind: question, ask: "What?" }', name="waits")


def test_a_fork_with_an_edited_parameter_goes_another_way(people: People) -> None:
    """FORK.3, FORK.5"""
    store_plan(SUM, private=False)
    run = play(publish_run(SUM, {"amount": 1})).pk
    page = people("ann").open(f"/runs/{run}/")
    page.locator(".run-actions").get_by_role("link", name="Fork").click()
    page.get_by_label("Begin with step").fill("v1")
    page.get_by_label("Parameters").fill('{"amount": 41')
    page.get_by_role("button", name="Show what it comes to").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Parameters")).to_have_value('{"amount": 41')
    expect(page.get_by_label("Begin with step")).to_have_value("v1")

    page.get_by_label("Parameters").fill('{"amount": 41}')
    page.get_by_label("Reason").fill("The amount was wrong")
    page.get_by_role("button", name="Show what it comes to").click()
    expect(page.get_by_text("edited")).to_contain_text("params")
    page.get_by_role("button", name="Fork").click()

    expect(page.get_by_role("link", name=f"run {run}", exact=True)).to_be_visible()
    fork = Run.objects.exclude(pk=run).get()
    assert play(fork.pk).status == "succeeded"
    assert (output_of(run), output_of(fork.pk)) == ({"total": 2}, {"total": 42})


def test_runs_are_abandoned_in_the_admin_with_a_reason_and_resumed(people: People) -> None:
    run = play(publish_run(WAITS)).pk
    page = people("ann", user={"is_staff": True}).open("/admin/workflows/run/")
    page.locator(f'input[name="_selected_action"][value="{run}"]').check()
    page.locator('select[name="action"]').select_option("abandon")
    page.locator('button[name="index"]').click()
    page.get_by_label("Reason").fill("Nobody needs it")
    page.get_by_role("button", name="Abandon").click()
    expect(page.get_by_text("Abandoned.")).to_be_visible()
    assert Run.objects.get(pk=run).status == "abandoned"

    page.goto(f"/runs/{run}/")
    expect(page.locator("#run-head .status-pill")).to_have_text("abandoned")
    page.goto(f"/runs/{run}/audit/")
    expect(page.get_by_text("Nobody needs it")).to_be_visible()

    page.goto(f"/runs/{run}/")
    page.locator(".run-actions").get_by_role("link", name="Resume").or_(
        page.locator(".run-actions").get_by_role("button", name="Resume")
    ).click()
    if page.get_by_label("Reason").count():
        page.get_by_role("button", name="Resume").click()
    expect(page.locator("#run-head .status-pill")).not_to_have_text("abandoned")
    assert play(run).status == "paused"
    assert "Nobody needs it" in AuditEntry.objects.values_list("reason", flat=True)


def test_what_a_filter_finds_is_cancelled_after_a_preview(people: People) -> None:
    """ABR.4"""
    waiting = [play(publish_run(WAITS, title=f"Letter {number}")).pk for number in range(3)]
    ended = play(publish_run(FAILS)).pk
    page = people("ann").open("/runs/")
    page.get_by_label("Workflow", exact=True).select_option("waits")
    page.get_by_role("button", name="Filter").click()
    page.locator("#bulk-action").select_option("cancel")
    page.get_by_role("button", name="All that the filter finds").click()

    expect(page.get_by_role("heading", name="Cancel 3 runs?")).to_be_visible()
    assert {run.status for run in Run.objects.filter(pk__in=waiting)} == {"paused"}
    later = play(publish_run(WAITS)).pk
    page.get_by_label("Reason").fill("The campaign is over")
    page.get_by_role("button", name="Cancel 3 runs").click()

    expect(page.get_by_text("3 done")).to_be_visible()
    expect(page.locator("#bulk .status", has_text="over")).to_be_visible()
    for run in waiting:
        if Run.objects.get(pk=run).status != "cancelled":
            assert play(run).status == "cancelled"
    assert Run.objects.get(pk=later).status == "paused", "it was started after the preview"
    assert Run.objects.get(pk=ended).status == "failed"
    assert BulkAction.objects.count() == 1


def test_the_state_at_a_revision_of_the_past_is_looked_at(people: People) -> None:
    """REV.2"""
    run = play(publish_run(SUM, {"amount": 1})).pk
    page = people("ann").open(f"/runs/{run}/")
    page.get_by_role("link", name="History").click()
    page.locator("#revision").fill("1")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="The run at revision 1")).to_be_visible()
    expect(page.locator("main")).to_contain_text("None yet.")
    page.get_by_role("link", name="Later").click()
    expect(page.get_by_role("heading", name="The run at revision 2")).to_be_visible()
    # the slider goes there as soon as it is let go
    page.locator('input[type="range"]').fill("1")
    expect(page.get_by_role("heading", name="The run at revision 1")).to_be_visible()
