"""Who may go where: every address, every method, every sort of person (promises WEB.1, WEB.2, INT.6)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from tests.pages.addresses import ADDRESSES, LOOK, LOOK_AT_SCHEDULES, LOOK_AT_WORKERS, LOOK_AT_WORKFLOWS, PUBLIC, SELF
from tests.pages.visitors import visitor
from tests.pages.world import HARM, World, make_world
from tests.support.rows import all_rows
from workflows.models import Workflow, WorkflowAccess
from workflows.pages import urls

pytestmark = pytest.mark.django_db(transaction=True)

VIEWER = {LOOK, LOOK_AT_WORKFLOWS, LOOK_AT_SCHEDULES, LOOK_AT_WORKERS}
GET = [name for name, address in ADDRESSES.items() if address.get is not None and not address.is_missing]
POST = [name for name, address in ADDRESSES.items() if address.post is not None]
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=\s*[\"']|javascript:(?!alert\(3\))", re.IGNORECASE)


@pytest.fixture
def world() -> World:
    return make_world()


def get(client: Client, world: World, name: str) -> HttpResponse:
    address = ADDRESSES[name]
    return client.get(world.path(name, address), dict(address.query))  # type: ignore[return-value]


def post(client: Client, world: World, name: str) -> HttpResponse:
    address = ADDRESSES[name]
    return client.post(world.path(name, address), dict(address.data))  # type: ignore[return-value]


def rows_but_audit() -> dict[str, list[dict[str, Any]]]:
    return {table: rows for table, rows in all_rows().items() if table != "AuditEntry"}


def group(name: str) -> tuple[str, ...]:
    return (name,)


def test_every_address_has_a_line_in_the_table() -> None:
    assert {pattern.name for pattern in urls.urlpatterns} == set(ADDRESSES)


def test_who_is_not_logged_in_is_asked_to(world: World) -> None:
    """WEB.2"""
    login = reverse("pages:login")
    for name in ADDRESSES:
        for method, allowed in ((get, ADDRESSES[name].get), (post, ADDRESSES[name].post)):
            response = method(Client(), world, name)
            if PUBLIC in (ADDRESSES[name].get, ADDRESSES[name].post):
                assert not response.headers.get("Location", "").startswith(f"{login}?next="), name
            else:
                assert response.headers.get("Location", "").startswith(f"{login}?next="), (name, allowed)


def test_a_fragment_sends_the_page_around_it_to_the_login(world: World) -> None:
    around = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/runs/{world.asks}/?a=1"}
    response = Client().get(reverse("pages:home_part"), headers=around)
    assert response.status_code == 401
    assert response.headers["HX-Redirect"] == f"{reverse('pages:login')}?next=/runs/{world.asks}/"


def test_who_has_no_role_sees_nothing(world: World) -> None:
    """WEB.2"""
    nobody = visitor(name="nobody")
    found = {name: get(nobody, world, name).status_code for name in GET if ADDRESSES[name].get not in (PUBLIC, SELF)}
    assert {name: status for name, status in found.items() if status != 403} == {}
    assert "You may look at nothing yet" in nobody.get("/").content.decode()


def test_a_viewer_sees_what_needs_no_more_and_nothing_else(world: World) -> None:
    """WEB.2"""
    viewer = visitor(name="viv", groups=group("viewer"))
    for name in GET:
        status = get(viewer, world, name).status_code
        if ADDRESSES[name].get in {*VIEWER, SELF}:
            assert status in (200, 304), name
        elif ADDRESSES[name].get != PUBLIC:
            assert status == 403, name


def test_an_action_without_its_permission_is_denied_and_changes_nothing(world: World) -> None:
    """WEB.2"""
    viewer = visitor(name="viv", groups=group("viewer"))
    before = rows_but_audit()
    for name in POST:
        if ADDRESSES[name].post not in (PUBLIC, SELF):
            assert post(viewer, world, name).status_code == 403, name
            assert rows_but_audit() == before, name


def test_an_admin_of_the_site_gets_everywhere(world: World) -> None:
    admin = visitor(name="ada", groups=group("admin"))
    found = {name: get(admin, world, name).status_code for name in GET}
    assert {name: status for name, status in found.items() if status not in (200, 302, 304)} == {}


def test_methods_that_an_address_does_not_take_are_refused(world: World) -> None:
    admin = visitor(name="ada", is_superuser=True)
    for name, address in ADDRESSES.items():
        if address.get is None:
            assert get(admin, world, name).status_code == 405, name
        if address.post is None:
            assert post(admin, world, name).status_code == 405, name


def test_looking_changes_nothing_however_often(world: World) -> None:
    """INT.6"""
    admin = visitor(name="ada", is_superuser=True)
    before = all_rows()
    for name in GET:
        address = ADDRESSES[name]
        for _ in range(2):
            get(admin, world, name)
        admin.head(world.path(name, address), dict(address.query))
    assert all_rows() == before


def test_a_workflow_of_other_groups_does_not_exist(world: World) -> None:
    """WEB.2"""
    for workflow in Workflow.objects.all():
        WorkflowAccess.objects.create(workflow=workflow, group=Group.objects.create(name=f"only {workflow.name}"))
    admin = visitor(name="ada", groups=group("admin"))
    missing = World(asks=777_777, broken=777_778, bulk=world.bulk, workflow="missing")
    for name, address in ADDRESSES.items():
        if address.about in (None, "bulk"):
            continue
        for method, taken in ((get, address.get), (post, address.post)):
            if taken is not None:
                hidden = method(admin, world, name)
                assert (hidden.status_code, method(admin, missing, name).status_code) == (404, 404), name
                assert "Really?" not in hidden.content.decode(), name
    for name in ("home", "home_part", "run_list", "inbox", "workflow_list"):
        assert "Really?" not in get(admin, world, name).content.decode(), name
        assert "&lt;script" not in get(admin, world, name).content.decode(), name


def _html(response: HttpResponse) -> str:
    is_html = response.headers.get("Content-Type", "").startswith("text/html")
    return response.content.decode() if is_html else ""


def test_every_page_has_a_strict_policy_and_nothing_inline(world: World) -> None:
    """WEB.1"""
    admin = visitor(name="ada", is_superuser=True)
    for name in GET:
        response = get(admin, world, name)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy, name
        assert "unsafe" not in policy, name
        assert response.headers["X-Content-Type-Options"] == "nosniff", name
        # what a run supplied is escaped, so it has no quotes that could end an attribute
        assert INLINE.findall(_html(response).replace(_escaped(HARM), "")) == [], name


def test_text_of_a_run_stays_text(world: World) -> None:
    """WEB.1"""
    admin = visitor(name="ada", is_superuser=True)
    for name in GET:
        page = _html(get(admin, world, name))
        assert "<script>alert" not in page, name
        assert "<b onclick" not in page, name
        assert "<i>Note" not in page, name
        assert "<u>Asks" not in page, name
        assert 'href="javascript' not in page, name


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def test_a_page_is_for_who_asked_and_is_asked_for_again(world: World) -> None:
    admin = visitor(name="ada", is_superuser=True)
    for name in GET:
        if ADDRESSES[name].get == PUBLIC:
            continue
        response = get(admin, world, name)
        assert "private" in response.headers["Cache-Control"], name
        assert {"HX-Request", "Cookie"} <= set(re.split(r",\s*", response.headers["Vary"])), name


def test_errors_are_pages_too() -> None:
    admin = visitor(name="ada", is_superuser=True)
    missing = admin.get("/no/such/page/")
    assert missing.status_code == 404
    assert "There is no such page" in missing.content.decode()
    strict = Client(enforce_csrf_checks=True)
    expired = strict.post(reverse("pages:theme"), {"theme": "dark"})
    assert expired.status_code == 403
    assert "This form has expired" in expired.content.decode()
