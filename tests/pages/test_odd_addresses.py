"""Addresses that nobody types are answered calmly, on every database."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.pages.visitors import LOOK, visitor

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {
    "/runs/": ("text", "workflow", "starter", "key", "error", "parent", "before"),
    "/audit/": ("actor", "workflow", "action", "run", "before"),
    "/inbox/": ("show",),
    "/workflows/": ("text", "tag", "after"),
}


@pytest.mark.parametrize("path", ASKED)
def test_a_query_with_a_character_that_no_text_has_is_refused(path: str) -> None:
    client = visitor(*LOOK, "view_auditentry")

    for name in ASKED[path]:
        assert client.get(f"{path}?{name}=%00").status_code == 422, name


@pytest.mark.parametrize("path", ASKED)
def test_odd_texts_in_a_query_are_no_failure(path: str) -> None:
    client = visitor(*LOOK, "view_auditentry")

    for name in ASKED[path]:
        for text in ("9" * 40, "-1", "%F0%9F%92%A5", "%FF", "'--", "%25", "1e9", "%E2%80%AE"):
            assert client.get(f"{path}?{name}={text}").status_code < 500, (name, text)


def test_a_name_that_no_text_has_cannot_log_in() -> None:
    assert Client().post("/login/", {"username": "a\0", "password": "x"}).status_code == 200
