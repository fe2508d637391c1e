"""Programs at the door: what they are given, what is taken from them, what is refused with its reasons."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from tests.api.programs import Program as Caller
from tests.api.programs import key_of, person, program
from tests.external.programs import LABELLING, offered
from tests.support.plans import publish_run, workflow
from tests.support.players import Player, output_of
from tests.support.rows import all_rows
from workflows.ledger.transactions import database_thread, ledger_transaction
from workflows.models import AuditEntry, ExternalOffer, Run, Workflow, WorkflowAccess
from workflows.operations import external
from workflows.operations.people import user_actor

pytestmark = pytest.mark.django_db(transaction=True)

CHECKED = workflow(
    """
  - id: it
    kind: external
    queue: q
    outcomes: [unusable]
    schema: { type: object, required: [labels], properties: { labels: { type: integer } } }
    next: { unusable: continue }
"""
)


@pytest.fixture
def robot() -> Caller:
    return program(scopes=("external", "read"), name="rob", groups=("operator",))


def reserve(robot: Caller, *queues: str, **more: Any) -> Any:
    response = robot.post("/external/reserve", {"queues": queues or ["labelling"], "worker": "robot 1", **more})
    assert response.status_code in (200, 204), response.content
    return response.json() if response.status_code == 200 else None


def refused(robot: Caller, path: str, body: Any) -> Any:
    """The problem of a request that changes nothing of the ledger but what the key used."""
    before = {name: rows for name, rows in all_rows().items() if name != "ApiKey"}
    response = robot.post(path, body)
    assert {name: rows for name, rows in all_rows().items() if name != "ApiKey"} == before
    return response.status_code, response.json()


def test_a_program_does_its_work(robot: Caller) -> None:
    """EXT.2, EXT.3, EXT.5"""
    player = offered()
    work = reserve(robot)
    token, until = work.pop("token"), work.pop("lease_until")
    offer = ExternalOffer.objects.get()
    assert work == {
        "run": player.run_id,
        "workflow": "demo",
        "queue": "labelling",
        "step": "label",
        "path": "label",
        "visit": 1,
        "attempt": 1,
        "idempotency_key": work["idempotency_key"],
        "input": {"hosts": ["a", "b"]},
        "lease_s": 300.0,
    }
    assert len(work["idempotency_key"]) == 32
    assert (offer.worker, offer.reserved_by) == ("robot 1", "rob (key ci)")
    assert robot.post("/external/renew", {"token": token}).json()["lease_until"] >= until
    told = robot.post("/external/finish", {"token": token, "output": {"labels": 3}})
    assert (told.status_code, told.json()) == (
        200,
        {"run": player.run_id, "visit": 1, "attempt": 1, "outcome": "ok", "new": True},
    )
    again = robot.post("/external/finish", {"token": token, "output": {"labels": 3}})
    assert again.json()["new"] is False
    player.again()
    assert output_of(player.run_id) == ["ok", {"labels": 3}, 1]
    actions = AuditEntry.objects.filter(action__startswith="external.").order_by("pk")
    assert list(actions.values_list("action", "actor")) == [
        ("external.reserve", "rob (key ci)"),
        ("external.finish", "rob (key ci)"),
    ]
    assert token not in json.dumps(all_rows(), default=str)


def test_there_is_nothing_in_other_queues(robot: Caller) -> None:
    offered()
    assert reserve(robot, "painting") is None
    assert reserve(robot, "painting", "labelling")["queue"] == "labelling"
    assert reserve(robot, "painting", "labelling") is None


def test_priority_comes_before_waiting_time(robot: Caller) -> None:
    """EXT.2"""
    runs = [offered(priority=priority).run_id for priority in (0, 5, 0)]
    assert [reserve(robot)["run"] for _ in runs] == [runs[1], runs[0], runs[2]]


def test_work_that_was_not_renewed_is_given_to_whoever_asks_next(robot: Caller) -> None:
    """EXT.4"""
    offered()
    first = reserve(robot)
    ledger_transaction(ExternalOffer.objects.update)(lease_until_ms=1)
    second = reserve(robot)
    assert second["idempotency_key"] == first["idempotency_key"]
    assert second["token"] != first["token"]
    assert second["attempt"] == first["attempt"] == 1
    response = robot.post("/external/finish", {"token": first["token"], "output": "late"})
    assert (response.status_code, response.json()) == (
        409,
        {
            "code": "offer.lost",
            "message": f"The reservation of v1.1 of run {first['run']} is lost: it was not renewed in time, and the "
            "work was offered again.",
            "hint": "Stop working on it; what it brings is not used.",
            "data": {
                "run": first["run"],
                "work": "v1.1",
                "reason": "it was not renewed in time, and the work was offered again",
                "kept": True,
            },
        },
    )


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        (
            {"output": {"labels": "many"}},
            "output",
            'The output does not fit the schema of the step: output.labels: "many" is not of type "integer".',
        ),
        ({"outcome": "broken"}, "outcome", 'The outcome must be one of ok, unusable; it is "broken".'),
        ({"outcome": "failed"}, "outcome", 'The outcome must be one of ok, unusable; it is "failed".'),
        ({"output": {"labels": 1, "x": "x" * 1_100_000}}, "output", None),
    ],
)
def test_a_result_that_does_not_fit_is_refused_and_the_work_stays_reserved(
    robot: Caller, body: Any, path: str, message: str | None
) -> None:
    """EXT.9"""
    player = offered(CHECKED)
    token = reserve(robot, "q")["token"]
    status, problem = refused(robot, "/external/finish", {"token": token, **body})
    assert (status, problem["code"]) == (422, "offer.invalid")
    assert problem["message"] in ("The result has 1 problem.", "The result has 2 problems.")
    (told,) = problem["data"]["problems"]
    assert told["path"] == path
    assert message is None or told["message"] == message
    assert robot.post("/external/finish", {"token": token, "output": {"labels": 2}}).status_code == 200
    player.again()
    assert player.run.status == "succeeded"


@pytest.mark.parametrize("text", ['{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a": NaN}', '{"a": 9007199254740993}'])
def test_what_cannot_be_stored_is_refused_with_its_path(robot: Caller, text: str) -> None:
    """EXT.9, DB.4"""
    offered()
    token = reserve(robot)["token"]
    before = ExternalOffer.objects.values().get()
    response = robot.post("/external/finish", f'{{"token": "{token}", "output": {text}}}')
    assert response.status_code in (400, 422), response.content
    assert ExternalOffer.objects.values().get() == before


def test_a_program_says_that_it_failed(robot: Caller) -> None:
    """EXT.7"""
    player = offered()
    token = reserve(robot)["token"]
    told = robot.post("/external/fail", {"token": token, "code": "quota", "message": "Used up.", "retryable": False})
    assert told.json()["outcome"] == "failed"
    player.again()
    assert output_of(player.run_id) == ["failed", None, 1]
    offer = ExternalOffer.objects.get()
    assert json.loads(offer.error) == {"code": "task_error", "message": "quota: Used up.", "retryable": False}


def test_a_program_may_say_that_it_timed_out(robot: Caller) -> None:
    """EXT.7"""
    text = workflow("  - { id: it, kind: external, queue: q, next: { timed_out: continue } }")
    player = offered(text)
    robot.post("/external/fail", {"token": reserve(robot, "q")["token"], "code": "timeout"})
    player.again()
    assert (player.run.status, ExternalOffer.objects.get().outcome) == ("succeeded", "timed_out")


def test_an_unknown_token_is_no_reservation(robot: Caller) -> None:
    for path in ("renew", "finish", "fail"):
        status, problem = refused(robot, f"/external/{path}", {"token": "wrong"})
        assert (status, problem["code"]) == (404, "offer.not_found")


def test_a_program_gets_no_work_of_workflows_that_its_user_may_not_see(robot: Caller) -> None:
    """EXT.10, WEB.2"""
    offered()
    work = reserve(robot)
    offered()
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="others"))
    assert reserve(robot) is None
    status, problem = refused(robot, "/external/finish", {"token": work["token"]})
    assert (status, problem["code"]) == (404, "offer.not_found")
    assert robot.get("/external/queues").json() == {"queues": []}


@pytest.mark.parametrize("path", ["reserve", "renew", "finish", "fail"])
def test_who_may_not_do_it_gets_nothing_and_changes_nothing(path: str) -> None:
    """EXT.10, WEB.2"""
    offered()
    body = {"queues": ["labelling"], "worker": "w"} if path == "reserve" else {"token": "x"}
    viewer = program(name="vic", groups=("viewer",))
    status = viewer.post(f"/external/{path}", body).status_code
    assert status == 403
    narrow = Caller(key_of(person(name="ned", groups=("operator",)), "read"))
    assert refused(narrow, f"/external/{path}", body)[1]["code"] == "key.scope"
    assert refused(Caller(), f"/external/{path}", body)[0] == 401
    assert ExternalOffer.objects.get().status == "open"
    assert Run.objects.get().revision == 2


@pytest.mark.parametrize(
    "body",
    [
        {"queues": [], "worker": "w"},
        {"queues": ["q"] * 21, "worker": "w"},
        {"queues": ["q"], "worker": ""},
        {"queues": ["q"], "worker": "   "},
        {"queues": ["q"], "worker": "w" * 201},
        {"queues": ["q"], "worker": "w", "wait": -1},
        {"queues": ["q"], "worker": "w", "more": 1},
        {"queues": [1], "worker": "w"},
        {"worker": "w"},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(robot: Caller, body: Any) -> None:
    status, problem = refused(robot, "/external/reserve", body)
    assert (status, problem["code"]) == (422, "input.invalid")


def test_who_waits_gets_work_as_soon_as_there_is_some_and_holds_no_connection(
    robot: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EXT.2, DB.3"""
    looked = threading.Event()
    seen: list[bool] = []

    def pause(seconds: float) -> None:
        seen.append(connection.connection is None)
        looked.set()
        threading.Event().wait(0.01)

    actor = user_actor(person(name="wil", groups=("operator",)))
    got: list[Any] = []

    def wait() -> None:
        with database_thread():
            got.append(external.reserve(["labelling"], worker="w", actor=actor, wait_s=20, pause=pause))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert looked.wait(10)
    run_id = publish_run(LABELLING)
    Player(run_id).play()
    waiting.join(15)
    assert got[0].reservation.run_id == run_id
    assert all(seen)


def test_who_waits_in_vain_is_told_so_when_the_time_is_over(robot: Caller) -> None:
    assert reserve(robot, wait=0.05) is None


def test_queues_tell_what_waits_and_what_is_being_done(robot: Caller) -> None:
    offered()
    offered()
    reserve(robot)
    (queue,) = robot.get("/external/queues").json()["queues"]
    assert (queue["queue"], queue["open"], queue["reserved"]) == ("labelling", 1, 1)
    assert queue["oldest"] is not None
