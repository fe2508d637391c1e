"""What pages ask of the database does not grow with the installation (promise WEB.3); ``benchmarks.pages`` has times."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks import page_data
from benchmarks.page_addresses import ROOT, lists
from tests.pages.visitors import LOOK, visitor

pytestmark = pytest.mark.django_db(transaction=True)

#: Of a page of a run, and of a list with all that stands beside it.
MOST_QUERIES, MOST_OF_LIST = 20, 30
MOST_BYTES = 150_000


def costs(user: str) -> dict[str, int]:
    """Statements of each list, by its name."""
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username=user))
    found = {}
    for name, path in lists("ann").items():
        with CaptureQueriesContext(connection) as queries:
            response = client.get(path)
        assert response.status_code == 200, name
        assert len(response.content) < MOST_BYTES, name
        found[name] = len(queries)
    return found


@pytest.mark.unsound  # copies hold what lists read
def test_lists_ask_as_little_of_three_hundred_runs_as_of_a_few() -> None:
    """WEB.3: for who sees everything and for who does not."""
    origins = [page_data.run_that_is(status, f"hidden_{status}") for status in page_data.STEPS]
    origins += [page_data.run_that_is(status, f"procedure_1_{status}") for status in page_data.STEPS]
    page_data.make_people()
    people = (ROOT, "ann")
    for origin in origins:
        page_data.copies_of(origin, 2)
    before = {user: costs(user) for user in people}
    for origin in origins:
        page_data.copies_of(origin, 25)
    after = {user: costs(user) for user in people}
    grown = {
        (user, name): (before[user][name], count)
        for user in people
        for name, count in after[user].items()
        # links to further pages may ask whether there are any
        if count > before[user][name] + 1 or count >= MOST_OF_LIST
    }
    assert grown == {}


@pytest.mark.unsound  # the value is put into the run from outside
def test_a_run_with_a_value_of_twenty_mib_opens_without_it() -> None:
    """WEB.3: the page, its pieces and its state at a moment hold a part, and a link to the whole."""
    run = page_data.large_run()
    client = visitor(*LOOK)
    for path in ("", "parts/live/", "steps/", "events/", "at/", "visits/1/", "parts/visits/1/"):
        with CaptureQueriesContext(connection) as queries:
            response = client.get(f"/runs/{run}/{path}")
        assert response.status_code == 200, path
        assert len(response.content) < MOST_BYTES, path
        assert len(queries) < MOST_QUERIES, path
    assert f"/runs/{run}/output/" in client.get(f"/runs/{run}/").content.decode()
