"""Lists read what is hidden once; they show the same as the rule of the models (promise WEB.2)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from tests.support.plans import publish_run, workflow
from workflows.models import Run, Workflow, WorkflowAccess
from workflows.queries.visible import hidden_workflows, seen_runs

pytestmark = pytest.mark.django_db(transaction=True)


def test_lists_show_what_the_rule_of_access_allows() -> None:
    runs = {}
    for name in ("open", "few", "others", "both"):
        runs[name] = publish_run(workflow("  - { id: stop, kind: end, status: succeeded }", name=name))
    few, others = Group.objects.create(name="few"), Group.objects.create(name="others")
    for name, groups in (("few", [few]), ("others", [others]), ("both", [few, others])):
        for group in groups:
            WorkflowAccess.objects.create(workflow=Workflow.objects.get(name=name), group=group)
    ann, root = User.objects.create(username="ann"), User.objects.create(username="root", is_superuser=True)
    ann.groups.add(few)

    assert set(seen_runs(ann)) == set(Run.objects.visible_to(ann))
    assert set(seen_runs(ann).values_list("pk", flat=True)) == {runs["open"], runs["few"], runs["both"]}
    assert set(seen_runs(root).values_list("pk", flat=True)) == set(runs.values())
    assert hidden_workflows(root) == []


def test_where_nothing_is_hidden_runs_are_not_filtered(django_assert_num_queries: object) -> None:
    """WEB.3"""
    publish_run(workflow("  - { id: stop, kind: end, status: succeeded }"))
    ann = User.objects.create(username="ann")
    with django_assert_num_queries(2):  # type: ignore[operator]
        assert "WHERE" not in str(seen_runs(ann).query)
        assert len(seen_runs(ann)) == 1
