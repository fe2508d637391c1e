"""A worker is killed in the middle of writes, and people say what became of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import People
from tests.browser.crew import Crew, eventually
from tests.support.hand import expire
from tests.support.plans import publish_run, workflow
from tests.support.players import output_of
from workflows.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.store("sqlite")]

#: The first try leaves a mark and stays at work; a second one ends at once.
PAYS = workflow(
    """
  - id: pay
    kind: shell
    run: 'if [ -e "$MARK" ]; then echo second; else touch "$MARK"; sleep 1000; fi'
    env: { MARK: "${ params.mark }" }
    timeout: 1h
""",
    before="params: { mark: { type: string } }",
    after="output: ${ steps.pay.output }",
    name="pays",
)


def decide(page: Page, run: int, decision: str, output: str = "") -> None:
    page.goto(f"/runs/{run}/")
    page.locator("#why").get_by_role("link", name="Say what happened").click()
    page.locator(f'input[name="decision"][value="{decision}"]').check()
    if output:
        page.get_by_label("Output", exact=True).fill(output)
    page.get_by_label("Reason").fill("I asked the bank")
    page.get_by_role("button", name="Record the decision").click()
    expect(page.get_by_role("button", name="Record the decision")).to_have_count(0)


def test_a_killed_write_is_decided_in_each_of_the_three_ways(people: People, worker: Crew, tmp_path: Path) -> None:
    """ADM.6, with a worker that was killed for real."""
    runs = {word: publish_run(PAYS, {"mark": str(tmp_path / word)}) for word in ("happened", "did_not", "stop")}
    eventually(lambda: len(list(tmp_path.iterdir())) == 3, "the writes never began")
    worker.kill()
    for run in runs.values():
        expire(run)
    worker.work()
    page = people("ann", "operator").page
    eventually(lambda: Run.objects.filter(status="blocked").count() == 3, "nobody noticed")

    decide(page, runs["happened"], "happened", "paid by hand")
    decide(page, runs["did_not"], "did_not")
    decide(page, runs["stop"], "stop")

    for word, status in (("happened", "succeeded"), ("did_not", "succeeded"), ("stop", "failed")):
        page.goto(f"/runs/{runs[word]}/")
        expect(page.locator("#run-head .status-pill")).to_have_text(status)
    assert (output_of(runs["happened"]), output_of(runs["did_not"])) == ("paid by hand", "second")
    expect(page.locator("#run-head")).to_contain_text("stopped")
