"""What every request passes: sizes, JSON, names, and problems with their status (promises API)."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from django.db import OperationalError
from django.test import RequestFactory

from tests.api.programs import Program, program
from tests.support.plans import store_plan, workflow
from tests.support.rows import all_rows
from workflows.api.doors import refusal_of
from workflows.api.problems import problem
from workflows.errors import REFUSALS, Problem, Refusal

pytestmark = pytest.mark.django_db(transaction=True)

TAKES = workflow(
    "  - { id: a, kind: shell, run: x }",
    before="params: { text: { type: string, optional: true }, data: { type: object, optional: true } }",
    name="takes",
)


@pytest.fixture
def admin() -> Program:
    store_plan(TAKES, private=False)
    return program(name="ada", is_superuser=True)


def refused(response: Any) -> tuple[int, str]:
    body = response.json()
    assert set(body) == {"code", "message", "hint", "data"}
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "private, no-store"
    return response.status_code, body["code"]


@pytest.mark.parametrize("code", REFUSALS)
def test_every_refusal_is_a_problem_with_its_status(code: str) -> None:
    """API.1"""
    wrong = Problem(code="E602", path="body.a", message="No.", hint="Yes.")
    refusal = Refusal(code, run=7, count=1, problems=(wrong,), names={"b"}, reason="Because.")
    response = problem(RequestFactory().get("/api/v1/"), refusal)
    body = json.loads(response.content)
    assert response.status_code == REFUSALS[code].http_status
    assert 400 <= response.status_code < 600
    assert (body["code"], body["data"]["run"], body["data"]["names"]) == (code, 7, ["b"])
    assert body["message"]
    assert body["data"]["problems"][0]["path"] == "body.a"
    assert ("WWW-Authenticate" in response.headers) == (response.status_code == 401)
    assert ("Retry-After" in response.headers) == (response.status_code == 503)


def test_addresses_and_methods_that_are_none_are_problems_too(admin: Program) -> None:
    """API.1"""
    for path in ("/", "/nothing", "/runs/1/nothing", "/runs/1/", "/docs/x"):
        assert refused(admin.get(path)) == (404, "request.no_such_address"), path
    wrong = admin.call("DELETE", "/runs")
    assert refused(wrong) == (405, "request.method")
    assert set(wrong.headers["Allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize(
    ("body", "status", "code", "says"),
    [
        ("{", 400, "request.not_json", "line 1"),
        ("", 422, "input.invalid", "body"),
        ("[]", 422, "input.invalid", "body"),
        ('{"workflow": "takes", "workflow": "takes"}', 400, "request.not_json", "twice"),
        (b'{"workflow": "\xff"}', 400, "request.not_json", "UTF-8"),
        ('{"workflow": "takes", "params": {"text": "a\\u0000b"}}', 422, "input.invalid", "body.params.text"),
        ('{"workflow": "takes", "params": {"text": "\\ud800"}}', 422, "input.invalid", "body.params.text"),
        ('{"workflow": "takes", "params": {"data": {"n": NaN}}}', 422, "input.invalid", "body.params.data.n"),
        ('{"workflow": "takes", "params": {"data": {"n": 1e999}}}', 422, "input.invalid", "body.params.data.n"),
        ('{"workflow": "takes", "params": {"data": {"n": 9007199254740993}}}', 422, "input.invalid", "data.n"),
        ('{"workflow": "takes", "parms": {}}', 422, "input.invalid", "parms"),
        ('{"workflow": "takes", "priority": "high"}', 422, "input.invalid", "body.priority"),
        ('{"workflow": "takes", "params": {"txet": "x"}}', 422, "params.invalid", "txet"),
        ('{"workflow": "takes", "key": ""}', 422, "input.invalid", "body.key"),
        ('{"workflow": "tkaes"}', 404, "workflow.not_found", "tkaes"),
        ('{"workflow": "takes", "version": 9}', 404, "plan.no_such_version", "9"),
        ('{"workflow": ' + "[" * 5_000 + "]" * 5_000 + "}", 422, "input.invalid", ""),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_its_path(
    admin: Program, body: str | bytes, status: int, code: str, says: str
) -> None:
    """API.3"""
    before = {table: rows for table, rows in all_rows().items() if table != "ApiKey"}
    response = admin.call("POST", "/runs", body)
    assert refused(response) == (status, code), response.content
    assert says in json.dumps(response.json(), ensure_ascii=False)
    assert {table: rows for table, rows in all_rows().items() if table != "ApiKey"} == before


@pytest.mark.parametrize(
    ("path", "query", "says"),
    [
        ("/runs", {"statuss": "failed"}, "statuss"),
        ("/runs", {"status": "lost"}, "lost"),
        ("/runs", {"limit": "0"}, "query.limit"),
        ("/runs", {"limit": "many"}, "query.limit"),
        ("/runs", {"before": str(10**30)}, "query.before"),
        ("/runs", {"created_from": "yesterday"}, "query.created_from"),
        ("/runs", {"text": "a\0b"}, "query.text"),
        ("/runs/0", {}, "path.run"),
        ("/runs/x", {}, "path.run"),
        (f"/runs/{10**40}", {}, "path.run"),
        ("/workflows", {"x\0": "1"}, "query"),
    ],
)
def test_an_address_that_is_wrong_is_refused_with_the_name(
    admin: Program, path: str, query: dict[str, str], says: str
) -> None:
    """API.3"""
    response = admin.get(path, **query)
    assert refused(response) == (422, "input.invalid")
    assert says in json.dumps(response.json(), ensure_ascii=False)


def test_a_body_that_is_too_large_is_not_read(admin: Program, settings: Any) -> None:
    """API.1"""
    settings.WAYPOST_API_BODY_LIMIT = 1_000
    assert refused(admin.post("/runs", {"workflow": "takes", "title": "x" * 1_000})) == (413, "request.too_large")


def test_a_busy_database_is_a_problem_and_a_mistake_of_ours_is_not() -> None:
    """API.1"""
    error = OperationalError("database is locked")
    error.__cause__ = cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    busy = refusal_of(error)
    assert busy is not None
    assert REFUSALS[busy.code].http_status == 503
    assert refusal_of(ZeroDivisionError()) is None


def test_a_database_that_lacks_migrations_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """API.1"""
    from workflows.stores.schema_state import SchemaReport, SchemaState

    assert Program().get("/health/ready").json() == {"status": "ok"}
    old = SchemaReport(state=SchemaState.OLD, missing=("workflows.0009",))
    monkeypatch.setattr("workflows.api.health.schema_state", lambda: old)
    behind = Program().get("/health/ready")
    assert refused(behind) == (503, "schema.behind")
    assert Program().get("/health/live").json() == {"status": "ok"}


def test_a_database_that_does_not_answer_is_told_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """API.1"""

    def unreachable() -> None:
        raise OperationalError("connection to server at db.internal failed")

    monkeypatch.setattr("workflows.api.health.schema_state", unreachable)
    away = Program().get("/health/ready")
    assert refused(away) == (503, "store.unavailable")
    assert "internal" not in away.content.decode()


@pytest.mark.parametrize("path", ["/workflows/%00", "/workflows/%00/versions/1", "/workflows/a%00b"])
def test_a_name_that_no_database_can_hold_is_that_of_no_workflow(admin: Program, path: str) -> None:
    assert refused(admin.get(path)) == (404, "workflow.not_found")


def test_an_answer_is_not_longer_than_what_was_wrong(admin: Program) -> None:
    store_plan(workflow("  - { id: work, kind: shell, run: x }"), private=False)
    answer = admin.post("/runs", {"workflow": "demo", "params": {f"p{number}": 1 for number in range(250)}})
    data = answer.json()["data"]
    assert (answer.status_code, len(data["problems"]), data["problems_left_out"]) == (422, 100, 150)
