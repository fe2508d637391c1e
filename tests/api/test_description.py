"""The description of the API: committed, complete, and shown to people who are logged in (promise API.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.api.programs import Program, person, program
from tests.processes import PROJECT
from workflows.api.api import api
from workflows.api.description import PROBLEMS, operations_of
from workflows.api.docs import schema_text
from workflows.models.api_key import KeyScope

pytestmark = pytest.mark.django_db(transaction=True)
COMMITTED = PROJECT / "docs" / "openapi.json"


def operations() -> dict[str, dict[str, Any]]:
    paths = json.loads(schema_text())["paths"]
    return {one["operationId"]: one for methods in paths.values() for one in methods.values()}


def test_the_description_is_the_committed_one() -> None:
    """API.5: `python -m workflows.api` writes it anew"""
    assert schema_text() == COMMITTED.read_text(encoding="utf-8")


def test_every_operation_has_its_own_name_words_scope_and_refusals() -> None:
    """API.5"""
    found = operations()
    assert len(found) == len(list(operations_of(api)))
    for name, operation in found.items():
        is_public = "security" not in operation
        assert operation["description"], name
        assert operation["tags"], name
        assert is_public == name.startswith(("live", "ready")), name
        assert is_public or operation["x-scope"] in KeyScope.values, name
        assert is_public or {"401", "403", "422", "429"} <= set(operation["responses"]), name


def test_every_status_of_a_refusal_is_described() -> None:
    """API.5"""
    from workflows.errors import REFUSALS

    assert {rule.http_status for rule in REFUSALS.values()} <= set(PROBLEMS)


def test_the_description_is_for_callers_and_its_page_for_people() -> None:
    """API.5"""
    assert Program().get("/openapi.json").status_code == 401
    assert program().get("/openapi.json").json()["info"]["title"] == "Waypost"
    assert Client().get("/api/v1/docs").headers["Location"].endswith("/login/?next=/api/v1/docs")
    client = Client()
    client.force_login(person(name="ada"))
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert "://" not in page.content.decode().replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-init.js"])
def test_the_page_is_made_of_files_that_are_here(name: str) -> None:
    assert finders.find(f"ninja/{name}") is not None
