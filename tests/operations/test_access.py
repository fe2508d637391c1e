from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User

from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows
from workflows.errors import Refusal
from workflows.models import AuditEntry, Workflow, WorkflowAccess
from workflows.operations.access import may, require, words_of
from workflows.operations.people import Actor, shell_actor, user_actor

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = workflow("  - { id: work, kind: shell, run: make }", name="deploy")


def user(name: str, *permissions: str, **more: Any) -> User:
    made = User.objects.create_user(name, **more)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return made


def close(name: str, *groups: str) -> None:
    """Let only these groups see a workflow."""
    for group in groups:
        made, _ = Group.objects.get_or_create(name=group)
        WorkflowAccess.objects.create(workflow=Workflow.objects.get(name=name), group=made)


def refusal_of(actor: Actor, permission: str, **about: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        require(actor, permission, **about)
    return caught.value


def entries() -> list[tuple[Any, ...]]:
    return list(AuditEntry.objects.values_list("actor", "action", "allowed", "run", "workflow"))


def test_who_has_the_permission_may() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    before = all_rows()
    require(user_actor(user("alice", "view_run", "cancel_run")), "cancel_run", run=run_id)
    require(user_actor(user("root", is_superuser=True)), "abandon_run", run=run_id)
    require(shell_actor(), "abandon_run", run=run_id)
    assert all_rows() == before


def test_a_denied_action_changes_nothing_and_is_audited() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    before = all_rows()
    refusal = refusal_of(user_actor(user("alice", "view_run"), through="key ci"), "cancel_run", run=run_id)
    assert (refusal.code, refusal.message, refusal.http_status) == ("access.denied", "alice may not cancel runs.", 403)
    assert refusal.hint == "Whoever manages users and groups can allow it (permission `cancel_run`)."
    assert entries() == [("alice (key ci)", "run.cancel", False, run_id, "deploy")]
    assert {**all_rows(), "AuditEntry": []} == before


def test_a_permission_for_several_actions_names_the_one_that_was_denied() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    refusal_of(user_actor(user("alice", "view_run")), "hold_run", run=run_id, action="run.steer")
    assert entries() == [("alice", "run.steer", False, run_id, "deploy")]


def test_a_run_of_a_hidden_workflow_is_as_if_it_were_not_there() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    close("deploy", "ops")
    alice = user_actor(user("alice", "view_run", "cancel_run"))
    hidden, missing = refusal_of(alice, "cancel_run", run=run_id), refusal_of(alice, "cancel_run", run=run_id + 1)
    assert (hidden.code, hidden.message) == ("run.not_found", f"There is no run {run_id}.")
    assert (missing.code, missing.message, missing.hint) == (hidden.code, f"There is no run {run_id + 1}.", hidden.hint)
    assert entries() == [("alice", "run.cancel", False, run_id, "deploy")], "a guessed number is not worth an entry"


def test_a_member_of_one_of_its_groups_sees_a_closed_workflow() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    close("deploy", "ops", "leads")
    member = user("alice", "view_run", "cancel_run")
    member.groups.add(Group.objects.get(name="leads"), Group.objects.get(name="ops"))
    require(user_actor(member), "cancel_run", run=run_id)


def test_who_may_not_look_at_runs_learns_nothing_of_them() -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    assert refusal_of(user_actor(user("alice", "cancel_run")), "cancel_run", run=run_id).code == "run.not_found"


def test_a_hidden_workflow_is_as_if_it_were_not_there() -> None:
    """WEB.2"""
    publish_run(PLAN)
    close("deploy", "ops")
    alice = user_actor(user("alice", "view_workflow", "start_run"))
    refusal = refusal_of(alice, "start_run", workflow="deploy")
    assert (refusal.code, refusal.message, refusal.hint) == ("workflow.not_found", "There is no workflow deploy.", "")
    require(alice, "start_run", workflow="of-the-library")


@pytest.mark.parametrize("who", ["inactive superuser", "nobody"])
def test_who_cannot_log_in_may_nothing(who: str) -> None:
    """WEB.2"""
    run_id = publish_run(PLAN)
    someone = AnonymousUser() if who == "nobody" else user("old", is_superuser=True, is_active=False)
    assert not may(user_actor(someone), "cancel_run")
    assert refusal_of(user_actor(someone), "cancel_run", run=run_id).code == "run.not_found"


def test_a_permission_that_does_not_exist_is_a_mistake_of_the_code() -> None:
    with pytest.raises(KeyError):
        require(shell_actor(), "cancel_runs")


def test_permissions_are_told_in_words() -> None:
    assert words_of("start_run") == "start runs and send signals"
    assert words_of("answer_interrupt") == "answer questions and approvals"
    assert words_of("publish_plan") == "publish versions of workflows"
    assert words_of("view_auditentry") == "view audit entries"
