"""Versions of workflows that people publish (promises PLAN)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.plans import START, workflow
from tests.support.rows import all_rows
from workflows.definitions.freezing import freeze
from workflows.definitions.source import read_source
from workflows.errors import Refusal
from workflows.ledger.publishing import PlanVersion, publish_plan
from workflows.models import AuditEntry, Workflow

pytestmark = pytest.mark.django_db(transaction=True)


def version(number: int, *, began_from: int | None = None, by: str = "ann") -> PlanVersion:
    text = workflow(f"  - {{ id: work, kind: shell, run: make {number} }}")
    frozen = freeze(read_source(text).document)
    return PlanVersion(
        name="demo",
        title="Demo",
        document=frozen.canonical,
        hash=frozen.hash,
        source=text,
        created_by=by,
        now=START,
        began_from=began_from,
        audited_as=by,
    )


def test_a_text_that_began_from_an_older_version_is_not_published_over_a_newer_one() -> None:
    """PLAN.7"""
    publish_plan(version(1, began_from=0))
    publish_plan(version(2, began_from=1, by="ben"))
    before = all_rows()

    with pytest.raises(Refusal) as refused:
        publish_plan(version(3, began_from=1))

    assert refused.value.code == "plan.superseded"
    assert refused.value.message == "ben published version 2 of demo meanwhile; this text began from version 1."
    assert all_rows() == before


def test_a_new_workflow_is_not_published_over_one_that_appeared_meanwhile() -> None:
    """PLAN.7"""
    publish_plan(version(1, began_from=0, by="ben"))

    with pytest.raises(Refusal) as refused:
        publish_plan(version(2, began_from=0))

    assert refused.value.message == "ben published version 1 of demo meanwhile; this text began from none."


def test_what_is_current_already_can_be_published_from_wherever_it_began() -> None:
    """PLAN.7"""
    publish_plan(version(1))
    stored = publish_plan(version(2, began_from=1))

    again = publish_plan(version(2, began_from=1))

    assert (again.version, again.created) == (2, False)
    assert again.plan_id == stored.plan_id == Workflow.objects.get(name="demo").current_id


def test_a_version_that_a_person_publishes_is_in_the_audit_with_it() -> None:
    """WEB.2"""
    publish_plan(version(1))
    publish_plan(version(1))
    publish_plan(replace(version(2), audited_as=""))

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.workflow, entry.allowed) == ("ann", "plan.publish", "demo", True)
    assert json.loads(entry.data) == {"hash": version(1).hash, "version": 1}
