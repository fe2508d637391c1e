"""The shipped workflow rollback, which others start as a child run."""

from __future__ import annotations

import pytest

from tests.library.support import begin, steps_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_release_before_the_present_one_is_put_back() -> None:
    document = begin("rollback", service="checkout")
    assert (document["status"], document["error"]) == ("succeeded", None)
    assert document["output"] == {"service": "checkout", "release": "1.3.0"}
    assert steps_of(document) == ["releases", "enough", "put_back", "check"]
