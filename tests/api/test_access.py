"""Who may call what: every operation of the description, every role (promises API, WEB.2)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from tests.api.programs import Program, key_of, person
from tests.api.world import ANYBODY, CALLS, MISSING, Call, World, make_world, operations_here
from tests.support.kinds import ok
from tests.support.plans import publish_run, store_plan, workflow
from tests.support.players import Player
from tests.support.rows import all_rows
from workflows.models import AuditEntry, Workflow, WorkflowAccess

pytestmark = pytest.mark.django_db(transaction=True)

ROLES = ("viewer", "operator", "approver", "admin")
LOOKS = [name for name, call in CALLS.items() if call.method == "GET"]
ACTS = [name for name, call in CALLS.items() if call.method == "POST"]


@pytest.fixture
def world() -> World:
    return make_world()


def do(program: Program, world: World, call: Call) -> Any:
    return program.call(call.method, world.path(call), None if call.body is None else dict(call.body), **call.query)


def rows() -> dict[str, Any]:
    """Every row but the audit, and what a key says of its use."""
    kept = {table: found for table, found in all_rows().items() if table not in ("AuditEntry", "ApiKey")}
    return kept


def test_every_operation_has_a_line_in_the_table() -> None:
    assert set(operations_here()) == set(CALLS)


def test_who_is_nobody_is_refused_everywhere(world: World) -> None:
    """API.2"""
    before = rows()
    for name, call in CALLS.items():
        refused = do(Program(), world, call)
        if call.needs == ANYBODY:
            assert refused.status_code == 200, name
        else:
            assert (refused.status_code, refused.json()["code"]) == (401, "request.unauthenticated"), name
    assert rows() == before


@pytest.mark.parametrize("name", CALLS)
def test_who_has_the_permission_may_and_nobody_else(world: World, name: str) -> None:
    """API.2"""
    call = CALLS[name]
    if call.needs == ANYBODY:
        return
    look = {"view_run", "view_workflow"} - {call.needs}
    without = Program(key_of(person(*look, name="without")))
    before = rows()
    refused = do(without, world, call)
    assert (refused.status_code, refused.json()["code"]) == (403, "access.denied"), refused.content
    assert rows() == before
    assert AuditEntry.objects.filter(allowed=False).count() == (
        call.method == "POST" and call.needs not in ("view_workflow",)
    )
    allowed = do(Program(key_of(person(*look, call.needs, name="with"))), world, call)
    assert allowed.status_code == call.status, allowed.content


@pytest.mark.parametrize("role", ROLES)
def test_roles_may_what_their_permissions_say(world: World, role: str) -> None:
    """API.2"""
    user = person(name=role, groups=(role,))
    program = Program(key_of(user))
    for name, call in CALLS.items():
        may = call.needs == ANYBODY or user.has_perm(f"workflows.{call.needs}")
        if call.method == "POST" and may:
            continue  # tried one by one above
        assert do(program, world, call).status_code == (call.status if may else 403), name


def without_names(response: Any, world: World) -> tuple[int, str]:
    """An answer with a mark for whatever was asked for."""
    text = response.content.decode()
    for name in (world.asks, world.waits, world.broken, world.failed, world.workflow):
        text = re.sub(rf"\b{name}\b", "…", text)
    return response.status_code, text


def test_a_workflow_of_other_groups_does_not_exist(world: World) -> None:
    """API.2, WEB.2"""
    for row in Workflow.objects.all():
        WorkflowAccess.objects.create(workflow=row, group=Group.objects.create(name=f"only {row.name}"))
    admin = Program(key_of(person(name="ada", groups=("admin",))))
    before = rows()
    for name, call in CALLS.items():
        if call.about is None:
            continue
        hidden, missing = do(admin, world, call), do(admin, MISSING, call)
        assert (hidden.status_code, missing.status_code) == (404, 404), name
        assert without_names(hidden, world) == without_names(missing, MISSING), name
        assert "Really?" not in hidden.content.decode(), name
    unknown = admin.post("/runs", {"workflow": "missing"})
    assert without_names(do(admin, world, CALLS["start_run"]), world) == without_names(unknown, MISSING)
    assert do(admin, world, CALLS["publish_workflow"]).status_code == 404
    assert do(admin, world, CALLS["list_runs"]).json()["runs"] == []
    assert do(admin, world, CALLS["list_workflows"]).json()["workflows"] == []
    assert do(admin, world, CALLS["list_questions"]).json()["questions"] == []
    assert rows() == before


def test_looking_changes_nothing_however_often(world: World) -> None:
    """API.4, INT.6"""
    client = Client()
    client.force_login(person(name="ada", is_superuser=True))
    program = Program()
    program.client = client
    before = all_rows()
    for name in LOOKS:
        for _ in range(2):
            assert do(program, world, CALLS[name]).status_code == 200, name
        program.call("HEAD", world.path(CALLS[name]))
    for name in ACTS:
        assert program.get(world.path(CALLS[name])).status_code in (200, 404, 405, 422), name
    assert all_rows() == before


def test_an_action_of_a_session_needs_the_proof_that_it_comes_from_here(world: World) -> None:
    """API.4"""
    client = Client(enforce_csrf_checks=True)
    client.force_login(person(name="ada", is_superuser=True))
    program = Program()
    program.client = client
    before = rows()
    for name in ACTS:
        refused = do(program, world, CALLS[name])
        assert (refused.status_code, refused.json()["code"]) == (403, "request.csrf"), name
    assert rows() == before
    client.get("/account/")
    program.headers = {"X-CSRFToken": client.cookies["csrftoken"].value}
    assert do(program, world, CALLS["pause_run"]).status_code == 200


def test_a_scope_is_asked_of_a_key_and_not_of_a_person(world: World) -> None:
    """KEY.3"""
    key = Program(key_of(person(name="ada", is_superuser=True), "external"))
    before = rows()
    for name, call in CALLS.items():
        if call.needs != ANYBODY:
            refused = do(key, world, call)
            assert (refused.status_code, refused.json()["code"]) == (403, "key.scope"), name
    assert rows() == before


def test_values_of_sensitive_steps_are_left_out_for_who_may_not_see_them() -> None:
    """API.2"""
    steps = workflow("  - { id: quiet, kind: shell, run: x, sensitive: true }\n  - { id: loud, kind: shell, run: x }")
    player = Player(publish_run(steps), {"quiet": ok("hush"), "loud": ok("hello")})
    player.play()
    for permissions, seen in (((), None), (("view_sensitive",), "hush")):
        name = f"ann{len(permissions)}"
        program = Program(key_of(person("view_run", *permissions, name=name)))
        for path in (f"/runs/{player.run_id}", f"/runs/{player.run_id}/revisions/4"):
            shown = program.get(path).json()
            outputs = {visit["step"]: visit["output"] for visit in shown["visits"]}
            assert outputs["quiet"] == seen, path
            assert outputs.get("loud") in ("hello", None)
            assert shown["hidden"] == ([] if permissions else ["quiet"])


def test_runs_that_may_not_be_seen_are_not_named_by_others() -> None:
    """API.2, FORK.5"""
    keyed = "concurrency: { key: one, max: 1, when_full: queue }"
    for name in ("hidden", "shown"):
        store_plan(workflow("  - { id: a, kind: shell, run: x }", before=keyed, name=name), private=False)
    program = Program(key_of(person("view_run", "view_workflow", "start_run")))
    hidden, shown = (program.post("/runs", {"workflow": name}).json()["run"] for name in ("hidden", "shown"))
    told = program.get(f"/runs/{shown}").json()["reasons"]
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="hidden"), group=Group.objects.create(name="few"))
    kept = program.get(f"/runs/{shown}").json()["reasons"]
    assert ([one["holders"] for one in told], [one["holders"] for one in kept]) == ([[hidden]], [[]])
