"""The run as it was: states and differences in words (REV.2)."""

from __future__ import annotations

import html
from itertools import pairwise
from typing import Any

import pytest

from tests.pages.visitors import LOOK, visitor
from tests.support.scenarios import SCENARIOS
from workflows.errors import Refusal
from workflows.ledger.advance import advance
from workflows.models import Run, Visit
from workflows.queries.run_state import differences, run_state

pytestmark = pytest.mark.django_db(transaction=True)


def text_of(response: Any) -> str:
    return html.unescape(response.content.decode())


@pytest.mark.parametrize("name", ["chain", "closed", "fanned_out", "asked", "interrupted_write"])
def test_every_revision_of_every_kind_of_run_has_a_state_and_a_difference(name: str) -> None:
    """REV.2: every visit has its own cut; the last state is the present one."""
    run = Run.objects.get(pk=SCENARIOS[name](advance))
    states = [run_state(run, revision) for revision in range(1, run.revision + 1)]
    assert states[-1].status == run.status
    assert states[-1].visits[-1].number == Visit.objects.filter(run=run).order_by("number").last().number
    assert differences(states[0], states[0]) == []
    for former, state in pairwise(states):
        assert state.events, state.revision
        began = {visit.number for visit in state.visits} - {visit.number for visit in former.visits}
        assert began == {one.visit for one in differences(former, state) if one.visit and not one.before}
    with pytest.raises(Refusal) as refused:
        run_state(run, run.revision + 1)
    assert refused.value.code == "history.no_such_revision"


def test_differences_are_told_in_words() -> None:
    """REV.2: what changed between two revisions, with what it was before."""
    run = Run.objects.get(pk=SCENARIOS["chain"](advance))
    found = differences(run_state(run, 1), run_state(run, run.revision))
    told = {one.what: (one.before, one.after) for one in found}
    assert told["Status"] == ("queued", "succeeded")
    assert told["Variable n"] == ("", "4")
    assert told["v1 one"] == ("", "succeeded")


def test_the_page_goes_to_a_revision_compares_with_another_and_refuses_one_that_never_was() -> None:
    """REV.2: r outside 1..current is refused with 404."""
    run = Run.objects.get(pk=SCENARIOS["chain"](advance))
    client = visitor(*LOOK, "fork_run")
    response = client.get(f"/runs/{run.pk}/at/?revision=4&since=2")
    assert response.headers["Location"] == f"/runs/{run.pk}/at/4/?since=2"
    text = text_of(client.get(f"/runs/{run.pk}/at/4/?since=2"))
    assert "The run at revision 4" in text
    assert "different from revision 2" in text
    assert f"/runs/{run.pk}/fork/?at=4" in text
    assert client.get(f"/runs/{run.pk}/at/{run.revision + 1}/").status_code == 404
    assert client.get(f"/runs/{run.pk}/at/0/").status_code == 404
    assert "There is nothing before it." in text_of(client.get(f"/runs/{run.pk}/at/1/"))
