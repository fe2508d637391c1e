"""Pages of workflows: the list, one of them, its versions, the editor."""

from __future__ import annotations

import html

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages.visitors import LOOK, visitor
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.rows import all_rows
from workflows.models import AuditEntry, Plan, Workflow, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = workflow("  - { id: work, kind: shell, run: make }", before="title: Make it\nowner: builders\ntags: [nightly]")
OTHER = workflow(
    "  - { id: work, kind: shell, run: make all }\n  - { id: more, kind: shell, run: ls }", before="title: Make it"
)


def published(text: str) -> None:
    store_plan(text, private=False)


def page_text(response) -> str:
    return html.unescape(response.content.decode())


# ---- the list --------------------------------------------------------------------------------------------------------


def test_the_list_shows_what_is_published_with_its_latest_runs() -> None:
    published(SMALL)
    runs = [publish_run(SMALL) for _ in range(3)]

    text = page_text(visitor(*LOOK).get("/workflows/"))

    assert "Make it" in text
    assert "builders" in text
    assert "nightly" in text
    for run in runs:
        assert f'href="/runs/{run}/"' in text


def test_the_list_is_narrowed_by_words_and_tags() -> None:
    published(SMALL)
    published(workflow("  - { id: x, kind: shell, run: x }", name="other", before="title: Quite different"))
    client = visitor(*LOOK)

    assert "/workflows/other/" not in page_text(client.get("/workflows/?text=BUILD"))
    assert "/workflows/demo/" in page_text(client.get("/workflows/?text=BUILD"))
    assert "/workflows/other/" not in page_text(client.get("/workflows/?tag=nightly"))
    assert "No workflow fits" in page_text(client.get("/workflows/?text=nothing+of+that"))


def test_the_list_needs_a_few_queries_however_many_workflows_there_are() -> None:
    """WEB.3"""
    client = visitor(*LOOK)
    for number in range(12):
        name = f"flow_{number}"
        published(workflow("  - { id: x, kind: shell, run: x }", name=name))
        publish_run(workflow("  - { id: x, kind: shell, run: x }", name=name))
    client.get("/workflows/")

    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get("/workflows/")

    assert len(few) <= 14


def test_a_workflow_that_only_a_group_may_see_does_not_exist_for_others() -> None:
    """WEB.2"""
    published(SMALL)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="builders"))
    outside, inside = visitor(*LOOK), visitor(*LOOK, name="ben", groups=("builders",))

    addresses = ("", "start/", "edit/", "versions/", "versions/1/", "versions/1/source/", "compare/")
    assert "/workflows/demo/" not in page_text(outside.get("/workflows/"))
    assert "/workflows/demo/" in page_text(inside.get("/workflows/"))
    for address in addresses:
        expected = 403 if address == "start/" else 404
        assert outside.get(f"/workflows/demo/{address}").status_code == expected, address
    assert "builders" in page_text(inside.get("/workflows/demo/"))


def test_who_may_not_look_at_workflows_sees_none_of_the_pages() -> None:
    """WEB.2"""
    published(SMALL)
    client = visitor("view_run")

    for address in ("", "demo/", "demo/start/", "demo/edit/", "new-workflow/", "demo/versions/1/", "demo/compare/"):
        assert client.get(f"/workflows/{address}").status_code == 403, address


# ---- the library -----------------------------------------------------------------------------------------------------


def test_shipped_files_are_offered_and_published_by_who_may() -> None:
    client = visitor(*LOOK, "publish_plan")
    assert 'action="/workflows/release/library/"' in page_text(client.get("/workflows/"))

    response = client.post("/workflows/release/library/", follow=True)

    assert "Version 1 of release is published." in page_text(response)
    assert Workflow.objects.get(name="release").current.created_by == "library"
    assert AuditEntry.objects.get(action="plan.publish").actor == "ann"
    assert 'action="/workflows/release/library/"' not in page_text(client.get("/workflows/"))


def test_who_may_not_publish_is_offered_no_button_and_refused() -> None:
    """WEB.2"""
    client = visitor(*LOOK)
    assert "/library/" not in page_text(client.get("/workflows/"))

    assert client.post("/workflows/release/library/").status_code == 403

    assert not Workflow.objects.exists()
    assert AuditEntry.objects.get().allowed is False


# ---- one workflow ----------------------------------------------------------------------------------------------------


def test_a_workflow_is_shown_with_its_picture_parameters_steps_and_versions() -> None:
    published(SMALL)
    published(workflow("  - { id: build, kind: shell, run: x }", before="params: { count: { type: integer, max: 9 } }"))

    text = page_text(visitor(*LOOK).get("/workflows/demo/"))

    assert 'aria-label="Graph of demo"' in text
    assert 'href="#step-build"' in text
    assert 'id="step-build"' in text
    assert "at most 9" in text
    assert "/workflows/demo/versions/1/" in text
    assert "/workflows/demo/start/" not in text


def test_a_run_of_a_file_makes_a_workflow_without_a_version() -> None:
    publish_run(SMALL)
    client = visitor(*LOOK, "start_run")

    text = page_text(client.get("/workflows/demo/"))

    assert "No version of this workflow is published." in text
    assert client.get("/workflows/demo/start/").status_code == 404
    assert "/workflows/demo/" not in page_text(client.get("/workflows/"))


def test_a_damaged_plan_is_told_and_its_workflow_is_still_shown() -> None:
    """PLAN.2"""
    published(SMALL)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflows_plan SET document = '{}'")

    response = visitor(*LOOK).get("/workflows/demo/")

    assert response.status_code == 200
    assert "does not match its hash" in page_text(response)


def test_texts_of_a_file_stay_texts() -> None:
    """WEB.1"""
    evil = "<script>alert(1)</script>"
    published(
        workflow(
            f"  - {{ id: work, kind: shell, run: make, title: '{evil}' }}",
            before=f"title: '{evil}'\nowner: '{evil}'\ndescription: '{evil} [x](javascript:alert(1)) **b**'\ntags: ['{evil}']",
        )
    )
    client = visitor(*LOOK, "publish_plan", "start_run")

    for address in ("", "demo/", "demo/start/", "demo/edit/", "demo/versions/1/", "demo/compare/"):
        content = client.get(f"/workflows/{address}").content.decode()
        assert evil not in content, address
        assert 'href="javascript:' not in content
    assert "<strong>b</strong>" in client.get("/workflows/demo/").content.decode()


# ---- versions --------------------------------------------------------------------------------------------------------


def test_a_version_is_shown_as_it_was_published_and_can_be_downloaded() -> None:
    published(SMALL)
    published(OTHER)
    client = visitor(*LOOK)

    text = page_text(client.get("/workflows/demo/versions/1/"))
    assert "owner: builders" in text
    assert "/workflows/demo/compare/?from=1&to=2" in text
    download = client.get("/workflows/demo/versions/1/source/")
    assert download.content.decode() == SMALL
    assert download.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert client.get("/workflows/demo/versions/3/").status_code == 404


def test_two_versions_are_compared_in_words_and_line_by_line() -> None:
    published(SMALL)
    published(OTHER)

    text = page_text(visitor(*LOOK).get("/workflows/demo/compare/?from=1&to=2"))

    assert "steps.work.run" in text
    assert "steps.more" in text
    assert '<td class="diff-mark">−</td><td class="diff-text">owner: builders</td>' in text
    assert '<td class="diff-mark">+</td>' in text


def test_versions_that_do_not_exist_cannot_be_compared() -> None:
    published(SMALL)
    client = visitor(*LOOK)

    assert client.get("/workflows/demo/compare/?from=1&to=9").status_code == 404
    assert client.get("/workflows/demo/compare/?from=x").status_code == 422
    assert client.get("/workflows/demo/compare/").status_code == 200


# ---- the editor ------------------------------------------------------------------------------------------------------


def test_a_check_tells_every_problem_at_its_line_and_keeps_the_text() -> None:
    published(SMALL)
    broken = SMALL.replace("kind: shell", "kind: shel")
    before = all_rows()

    response = visitor(*LOOK).post(
        "/workflows/demo/edit/", {"source": broken.replace("\n", "\r\n"), "action": "check", "began_from": 1}
    )

    text = page_text(response)
    assert "E206" in text
    assert "Line 7" in text
    assert '"shel" is not a step kind.' in text
    assert broken in text
    assert all_rows() == before


def test_who_may_not_publish_can_check_and_is_refused_otherwise() -> None:
    """WEB.2"""
    published(SMALL)
    client = visitor(*LOOK)
    assert "Publish" not in page_text(client.get("/workflows/demo/edit/"))

    response = client.post("/workflows/demo/edit/", {"source": OTHER, "action": "publish", "began_from": 1})

    assert response.status_code == 403
    assert OTHER in page_text(response)
    assert Plan.objects.count() == 1


def test_a_text_is_published_as_the_next_version() -> None:
    published(SMALL)

    response = visitor(*LOOK, "publish_plan").post(
        "/workflows/demo/edit/", {"source": OTHER, "action": "publish", "began_from": 1}, follow=True
    )

    assert "Version 2 of demo is published." in page_text(response)
    current = Workflow.objects.get().current
    assert (current.version, current.created_by, current.source) == (2, "ann", OTHER)


def test_a_broken_text_is_not_published_and_not_lost() -> None:
    published(SMALL)
    broken = SMALL.replace("run: make", "rum: make")

    response = visitor(*LOOK, "publish_plan").post(
        "/workflows/demo/edit/", {"source": broken, "action": "publish", "began_from": 1}
    )

    assert response.status_code == 422
    assert broken in page_text(response)
    assert Plan.objects.count() == 1


def test_a_text_that_somebody_overtook_is_kept_and_published_when_that_is_confirmed() -> None:
    """PLAN.7"""
    published(SMALL)
    published(OTHER)
    mine = OTHER.replace("ls", "ls -l")
    client = visitor(*LOOK, "publish_plan")

    refused = client.post("/workflows/demo/edit/", {"source": mine, "action": "publish", "began_from": 1})

    assert refused.status_code == 409
    text = page_text(refused)
    assert "ann published version 2 of demo meanwhile; this text began from version 1." in text
    assert mine in text
    assert Plan.objects.count() == 2
    again = {"source": mine, "action": "publish", "began_from_before": 1}
    assert client.post("/workflows/demo/edit/", again).status_code == 409
    assert client.post("/workflows/demo/edit/", {**again, "began_from": 2}).status_code == 302
    assert Workflow.objects.get().current.version == 3


def test_a_text_of_another_name_is_not_published_under_this_one() -> None:
    published(SMALL)
    renamed = SMALL.replace("name: demo", "name: another")
    client = visitor(*LOOK, "publish_plan")

    checked = client.post("/workflows/demo/edit/", {"source": renamed, "action": "check", "began_from": 1})
    refused = client.post("/workflows/demo/edit/", {"source": renamed, "action": "publish", "began_from": 1})

    for response in (checked, refused):
        assert 'The name is "another", but this page publishes "demo".' in page_text(response)
    assert not Workflow.objects.filter(name="another").exists()


def test_a_new_workflow_is_written_and_published() -> None:
    client = visitor(*LOOK, "publish_plan")
    example = client.get("/workflows/new-workflow/").context["text"]

    response = client.post("/workflows/new-workflow/", {"source": example, "action": "publish", "began_from": 0})

    assert response.status_code == 302
    assert response.url == "/workflows/my_workflow/"


def test_a_new_workflow_does_not_replace_one_that_is_hidden_from_its_author() -> None:
    """WEB.2"""
    published(SMALL)
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="builders"))
    client = visitor(*LOOK, "publish_plan")

    response = client.post("/workflows/new-workflow/", {"source": OTHER, "action": "publish", "began_from": 0})

    assert response.status_code == 404
    assert OTHER in page_text(response)
    assert Plan.objects.count() == 1


def test_a_text_of_many_problems_or_of_none_at_all_is_told_calmly() -> None:
    client = visitor(*LOOK)

    for source in ("", "\x00", "steps: [", "a: b\n" * 2000, "format: 1\nname: x\nsteps: 7"):
        response = client.post("/workflows/new-workflow/", {"source": source, "action": "check"})
        assert response.status_code == 200
        assert "error" in page_text(response)


def test_a_check_of_a_sound_text_shows_what_it_looks_like() -> None:
    published(SMALL)

    text = page_text(
        visitor(*LOOK).post("/workflows/demo/edit/", {"source": OTHER, "action": "check", "began_from": 1})
    )

    assert "No problems." in text
    assert 'aria-label="Graph of Make it"' in text


@pytest.mark.parametrize("name", ["a%00b", "..", "%2e%2e%2fx", "x" * 3000, "Übung", "%F0%9F%92%A5", "-", "a b"])
def test_names_that_nothing_can_have_are_not_found(name: str) -> None:
    client = visitor(*LOOK, "start_run", "publish_plan")

    for address in ("", "start/", "edit/", "versions/", "versions/1/", "compare/"):
        assert client.get(f"/workflows/{name}/{address}").status_code == 404
    assert client.post(f"/workflows/{name}/library/").status_code in (403, 404)


def test_numbers_that_no_version_has_are_not_found() -> None:
    published(SMALL)
    client = visitor(*LOOK, "start_run")
    huge = "9" * 30

    assert client.get(f"/workflows/demo/versions/{huge}/").status_code == 404
    assert client.get(f"/workflows/demo/versions/{huge}/source/").status_code == 404
    assert client.get(f"/workflows/demo/start/?version={huge}&from_run={huge}").status_code == 200
