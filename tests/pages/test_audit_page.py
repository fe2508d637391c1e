"""The audit in the browser (promise WEB.2)."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from tests.pages.visitors import visitor
from tests.pages.world import HARM
from tests.support.plans import START, publish_run, workflow
from workflows.ledger.auditing import audit
from workflows.models import Workflow, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

ENDS = workflow("  - { id: stop, kind: end, status: succeeded }", name="ends")


def admin() -> Client:
    return visitor(name="ada", groups=("admin",))


def actors(client: Client, query: str = "") -> list[str]:
    response = client.get(f"/audit/?{query}")
    assert response.status_code == 200
    return re.findall(r'<bdi class="person">([^<]*)</bdi></td>', response.content.decode())


def test_entries_are_found_by_person_action_run_day_and_denial() -> None:
    run = publish_run(ENDS)
    audit(actor="ann", action="run.cancel", at=START, run=run, reason="late")
    audit(actor="bob", action="run.abandon", at=START + timedelta(days=2), allowed=False, run=run)
    audit(actor="shell:root as ann", action="plan.publish", at=START + timedelta(days=4), workflow="ends")
    client = admin()
    assert actors(client) == ["shell:root as ann", "bob", "ann"]
    assert actors(client, "actor=ann") == ["shell:root as ann", "ann"]
    assert actors(client, "action=run.abandon") == ["bob"]
    assert actors(client, f"run={run}") == ["bob", "ann"]
    assert actors(client, "allowed=no") == ["bob"]
    assert actors(client, "since=2026-02-01&until=2026-02-02") == ["bob"]
    assert actors(client, "since=soon&run=x&before=y&allowed=maybe") == ["shell:root as ann", "bob", "ann"]


def test_runs_that_are_gone_are_no_links() -> None:
    audit(actor="ann", action="run.cancel", at=START, run=424242)
    page = admin().get("/audit/").content.decode()
    assert "run 424242" in page
    assert 'href="/runs/424242/"' not in page


def test_pages_of_the_audit_follow_each_other() -> None:
    for number in range(60):
        audit(actor=f"p{number:02}", action="run.cancel", at=START, run=1)
    client = admin()
    first = actors(client)
    older = re.findall(r'href="\?([^"]*before=\d+)"', client.get("/audit/").content.decode())[0]
    assert first + actors(client, older) == [f"p{number:02}" for number in reversed(range(60))]


def test_what_is_told_of_hidden_workflows_is_hidden() -> None:
    publish_run(ENDS)
    audit(actor="ann", action="plan.publish", at=START, workflow="ends", reason="secret plans")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="ends"), group=Group.objects.create(name="few"))
    assert "secret plans" not in admin().get("/audit/").content.decode()


def test_reasons_are_text() -> None:
    """WEB.1"""
    audit(actor=HARM[:100], action="run.cancel", at=START, reason=HARM, data={HARM[:20]: HARM})
    page = admin().get("/audit/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
