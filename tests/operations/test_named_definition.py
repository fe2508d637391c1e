"""Workflows by name: what the library has, and what is suggested to whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group, Permission, User
from pytest_django import Settings

from tests.support.plans import store_plan, workflow
from workflows.definitions.compiler import compile_plan
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.models import Workflow, WorkflowAccess
from workflows.operations.children import definitions_below
from workflows.operations.people import user_actor
from workflows.operations.versions import publish_text
from workflows.operations.workflows import check_files, named_definition, publish_library

pytestmark = pytest.mark.django_db(transaction=True)

WORK = "  - { id: work, kind: shell, run: make }"
PARENT = workflow("  - { id: below, kind: workflow, ref: deply_secret }", name="parent")


def hidden_from_ann() -> User:
    """A workflow ``deploy_secret`` is given to a group that ann, who may start runs, is not in."""
    store_plan(workflow(WORK, name="deploy_secret"), private=False)
    insiders = Group.objects.create(name="insiders")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="deploy_secret"), group=insiders)
    ann = User.objects.create_user("ann")
    ann.user_permissions.set(Permission.objects.filter(codename__in=["start_run", "view_run", "view_workflow"]))
    return ann


def test_a_hidden_workflow_is_suggested_to_nobody_who_may_not_see_it() -> None:
    """WEB.2: neither by its name nor as the child run of a plan; the operator's shell sees everything."""
    ann = hidden_from_ann()
    with pytest.raises(Refusal) as caught:
        named_definition("deply_secret", viewer=ann)
    assert "deploy_secret" not in caught.value.hint
    plan = compile_plan(freeze(read_source(PARENT).document).document)
    with pytest.raises(Refusal) as caught:
        definitions_below(plan, viewer=ann)
    assert (caught.value.code, "deploy_secret" in caught.value.hint) == ("workflow.not_found", False)
    with pytest.raises(Refusal) as caught:
        named_definition("deply_secret")
    assert caught.value.hint == 'Did you mean "deploy_secret"?'


def test_a_text_cannot_ask_whether_there_is_a_hidden_workflow() -> None:
    """WEB.2: to refer to one is the same problem as to refer to none, also where a text is published."""
    ann = hidden_from_ann()
    ann.user_permissions.add(Permission.objects.get(codename="publish_plan"))
    hidden, nothing = (PARENT.replace("deply_secret", name).encode() for name in ("deploy_secret", "zzz"))
    told = [[str(problem) for problem in check_files([text], viewer=ann)[0].problems] for text in (hidden, nothing)]
    assert "E508" in told[0][0]
    assert told[0] == [line.replace("zzz", "deploy_secret") for line in told[1]]
    with pytest.raises(Refusal) as caught:
        publish_text(hidden, actor=user_actor(ann))
    assert caught.value.code == "definition.invalid"
    assert check_files([hidden])[0].problems == ()


def test_what_a_person_may_see_is_suggested_to_them() -> None:
    ann = hidden_from_ann()
    ann.groups.add(Group.objects.get(name="insiders"))
    with pytest.raises(Refusal) as caught:
        named_definition("deply_secret", viewer=ann)
    assert caught.value.hint == 'Did you mean "deploy_secret"?'


@pytest.mark.store("sqlite")
def test_the_library_is_published_once_and_again_where_it_changed(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "mine.yaml").write_text(workflow(WORK, name="mine"))
    (tmp_path / "broken.yaml").write_text(workflow("  - { id: work, kind: nothing }", name="broken"))
    settings.WAYPOST_LIBRARY_DIRS = [tmp_path]
    first = publish_library()
    assert {"mine", "release"} <= set(first.published)
    assert {name: refusal.code for name, refusal in first.refused.items()} == {"broken": "definition.invalid"}
    assert publish_library().published == ()
    (tmp_path / "mine.yaml").write_text(workflow(WORK.replace("make", "make all"), name="mine"))
    assert publish_library().published == ("mine",)
    assert Workflow.objects.get(name="mine").current.version == 2
