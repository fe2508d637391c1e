"""Actions on runs in the admin: a page that asks, a permission, a reason, one result for each run."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile

import pytest
from django.contrib.auth.models import Group

from tests.pages.visitors import visitor
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows
from workflows.models import AuditEntry, Run, Workflow, WorkflowAccess
from workflows.statuses import RunStatus

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = workflow("  - { id: work, kind: shell, run: make }")
ADDRESS = "/admin/workflows/run/"


def ticked(action: str, *runs: int, **more: str) -> dict[str, object]:
    return {"action": action, "_selected_action": [str(run) for run in runs], **more}


def staff(*permissions: str):
    return visitor("view_run", "view_workflow", *permissions, is_staff=True)


def page_text(response) -> str:
    return html.unescape(response.content.decode())


@pytest.mark.parametrize("action", ["cancel", "abandon", "resume", "fork", "export"])
def test_an_action_asks_first_and_changes_nothing(action: str) -> None:
    run = publish_run(SMALL)
    client = staff("cancel_run", "abandon_run", "reopen_run", "fork_run", "export_run")
    before = all_rows()

    response = client.post(ADDRESS, ticked(action, run))

    assert response.status_code == 200
    text = page_text(response)
    assert 'name="reason"' in text
    assert f'name="_selected_action" value="{run}"' in text
    assert all_rows() == before


@pytest.mark.parametrize("action", ["cancel", "abandon", "resume", "fork", "export"])
def test_an_action_needs_its_permission(action: str) -> None:
    """WEB.2"""
    run = publish_run(SMALL)
    client = staff()
    before = all_rows()

    assert f'value="{action}"' not in page_text(client.get(ADDRESS))
    client.post(ADDRESS, ticked(action, run, confirmed="1", reason="because"))

    assert all_rows() == before


def test_every_run_has_a_result_of_its_own() -> None:
    """ABR.4"""
    live, over = publish_run(SMALL), publish_run(SMALL)
    client = staff("abandon_run")
    client.post(ADDRESS, ticked("abandon", over, confirmed="1", reason="first"))

    response = client.post(ADDRESS, ticked("abandon", live, over, confirmed="1", reason="It hangs"))

    text = page_text(response)
    assert "Abandon: 1 of 2 done" in text
    assert f"Run {over} is already abandoned." in text
    assert Run.objects.get(pk=live).status == RunStatus.ABANDONED
    entry = AuditEntry.objects.get(run=live)
    assert (entry.actor, entry.action, entry.reason) == ("ann", "run.abandon", "It hangs")


def test_abandoning_needs_a_reason_and_asks_again() -> None:
    run = publish_run(SMALL)

    response = staff("abandon_run").post(ADDRESS, ticked("abandon", run, confirmed="1", reason=" "))

    assert response.status_code == 422
    text = page_text(response)
    assert "needs a reason" in text
    assert f'name="_selected_action" value="{run}"' in text
    assert Run.objects.get().status == RunStatus.QUEUED


def test_a_cancel_reaches_the_run() -> None:
    run = publish_run(SMALL)

    response = staff("cancel_run").post(ADDRESS, ticked("cancel", run, confirmed="1", reason="not needed"))

    assert "Asked to end." in page_text(response)
    assert json.loads(Run.objects.get().closing)["status"] == "cancelled"


def test_a_form_that_is_sent_twice_forks_once() -> None:
    run = publish_run(SMALL)
    client = staff("fork_run", "abandon_run")
    client.post(ADDRESS, ticked("abandon", run, confirmed="1", reason="It hangs"))
    token = re.search(r'name="token" value="(\w+)"', page_text(client.post(ADDRESS, ticked("fork", run))))[1]
    sent = ticked("fork", run, confirmed="1", reason="look again", token=token)

    first, second = client.post(ADDRESS, sent), client.post(ADDRESS, sent)

    assert Run.objects.count() == 2, page_text(first)
    forked = Run.objects.exclude(pk=run).get()
    assert forked.fork_of_id == run
    assert f"run {forked.pk}." in page_text(first)
    assert "This form had forked it already" in page_text(second)


def test_an_export_is_an_archive_with_a_document_for_each_run() -> None:
    runs = [publish_run(SMALL), publish_run(SMALL)]

    response = staff("export_run").post(ADDRESS, ticked("export", *runs, confirmed="1"))

    assert response.headers["Content-Type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    assert set(archive.namelist()) == {f"run-{run}.json" for run in runs}
    for run in runs:
        assert json.loads(archive.read(f"run-{run}.json"))["runs"][0]["run"]["id"] == run
    assert AuditEntry.objects.filter(action="run.export").count() == 2


def test_runs_of_hidden_workflows_are_out_of_reach() -> None:
    """WEB.2"""
    hidden = publish_run(SMALL)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="builders"))
    before = all_rows()

    staff("abandon_run").post(ADDRESS, ticked("abandon", hidden, confirmed="1", reason="because"))

    assert all_rows() == before


def test_more_runs_than_can_be_watched_are_sent_to_the_list_of_runs(monkeypatch) -> None:
    runs = [publish_run(SMALL) for _ in range(3)]
    monkeypatch.setattr("workflows.admin.run_actions.MOST_RUNS", 2)

    response = staff("abandon_run").post(ADDRESS, ticked("abandon", *runs, confirmed="1", reason="because"))

    assert "More than 2 runs are ticked" in page_text(response)
    assert set(Run.objects.values_list("status", flat=True)) == {"queued"}


def test_texts_of_runs_stay_texts_on_the_page_that_asks() -> None:
    """WEB.1"""
    run = publish_run(SMALL, title="<script>alert(1)</script>")

    content = staff("abandon_run").post(ADDRESS, ticked("abandon", run)).content.decode()

    assert "<script>alert" not in content
