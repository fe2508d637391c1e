"""The list and the document of runs: a constant number of queries, whatever their length."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.commands.support import manage, workflow_file
from workflows.errors import Refusal
from workflows.models import Run
from workflows.queries.events import events_after
from workflows.queries.history import state_at
from workflows.queries.runs import RunFilter, run_document, run_list, run_result
from workflows.queries.workflows import version_list, workflow_list

pytestmark = pytest.mark.django_db(transaction=True)

LOOP = """
params: { rounds: { type: integer } }
vars: { n: 0 }
steps:
  - { id: count, kind: assign, set: { n: "${ vars.n + 1 }" }, max_visits: 500 }
  - { id: again, kind: condition, if: "${ vars.n < params.rounds }", next: { then: count, else: done } }
output: ${ vars.n }
"""


def looped(folder: Path, rounds: int) -> int:
    manage("run_workflow", workflow_file(folder, LOOP), "-P", f"rounds={rounds}", "--quiet")
    return Run.objects.latest("pk").pk


@pytest.mark.parametrize("rounds", [1, 40])
def test_the_number_of_queries_does_not_grow_with_the_run(
    tmp_path: Path, rounds: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    run = looped(tmp_path, rounds)
    with django_assert_num_queries(9):
        document = run_document(run)
    assert len(document["visits"]) == 2 * rounds
    revision = Run.objects.get().revision
    with django_assert_num_queries(8):
        state_at(run, revision)
    with django_assert_num_queries(2):
        run_result(run)
    with django_assert_num_queries(2):
        events_after(run)


def test_lists_take_one_query(tmp_path: Path, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(3):
        looped(tmp_path, 1)
    manage("workflows", "publish", workflow_file(tmp_path, LOOP))
    with django_assert_num_queries(1):
        assert len(run_list(RunFilter())) == 3
    with django_assert_num_queries(1):
        (workflow,) = workflow_list()
    assert (workflow["name"], workflow["version"], workflow["runs"]) == ("demo", 1, 3)
    with django_assert_num_queries(1):
        (version,) = version_list("demo")
    assert (version["version"], version["runs"]) == (1, 0)


def test_a_run_that_is_not_there_is_refused() -> None:
    for query in (run_document, run_result, events_after):
        with pytest.raises(Refusal, match=r"^There is no run 9\.$"):
            query(9)
