"""A request has an id: on its answer, and on what is logged for it (OBS.3)."""

from __future__ import annotations

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_id_that_a_proxy_gives_is_kept() -> None:
    answer = Client().get("/account/login/", headers={"X-Request-ID": "abc-123.DEF_4"})
    assert answer.headers["X-Request-ID"] == "abc-123.DEF_4"


@pytest.mark.parametrize(
    "given", ["", "short", "x" * 65, "with space and more", "broken\u00e9\u00e9\u00e9\u00e9\u00e9"]
)
def test_any_other_request_gets_one_of_its_own(given: str) -> None:
    """OBS.3: nothing that could forge a line of a log is taken over."""
    answers = [Client().get("/account/login/", headers={"X-Request-ID": given}) for _ in range(2)]
    ids = {answer.headers["X-Request-ID"] for answer in answers}
    assert len(ids) == 2
    assert all(len(one) == 32 and one.isalnum() for one in ids)
