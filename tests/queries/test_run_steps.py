"""The steps of a run as a list."""

from __future__ import annotations

import pytest

from tests.support.hand import Hand, expire
from tests.support.kinds import ok
from tests.support.plans import publish_run, workflow
from workflows.models import Run
from workflows.queries.run_steps import step_page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("access", ["read", "write"])
def test_tries_are_all_attempts_also_those_that_a_death_interrupted(access: str) -> None:
    """ADM.5"""
    run_id = publish_run(workflow(f"  - {{ id: work, kind: shell, run: make, access: {access} }}"))
    Hand(run_id, owner="first").step()
    expire(run_id)
    again = Hand(run_id, owner="second")
    again.step()

    def tries() -> int:
        (step,) = step_page(Run.objects.get(pk=run_id)).steps
        return step.attempts

    assert tries() == (2 if access == "read" else 1)
    if access == "read":
        again.step({"v1.2": ok()})
        assert tries() == 2
