"""What is done through the API is what is done everywhere: each operation, its answer and what it leaves (API, ACC)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.api.programs import Program, program
from tests.api.world import ASKS, FILE, WAITS, World, make_world
from tests.support.plans import publish_run, store_plan
from workflows.models import AuditEntry, ControlMessage, Interrupt, Plan, Run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def admin() -> Program:
    return program(name="ada", groups=("admin",))


def code_of(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def status_of(run: int) -> str:
    return str(Run.objects.get(pk=run).status)


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_the_list_goes_on_where_a_page_ended_without_gap_or_repetition(admin: Program) -> None:
    runs = [publish_run(WAITS) for _ in range(7)]
    found: list[int] = []
    page = admin.get("/runs", limit=3).json()
    while True:
        found += [row["run"] for row in page["runs"]]
        if len(found) == 3:
            runs.append(publish_run(WAITS))  # started meanwhile; belongs before the first page
        if page["older"] is None:
            break
        page = admin.get("/runs", limit=3, before=page["older"]).json()
    assert found == sorted(runs[:7], reverse=True)
    assert [row["run"] for row in admin.get("/runs", after=found[0]).json()["runs"]] == [runs[7]]


def test_the_list_takes_the_filters_of_the_page(admin: Program, world: World) -> None:
    def runs(**query: Any) -> set[int]:
        return {row["run"] for row in admin.get("/runs", **query).json()["runs"]}

    everything = {world.asks, world.waits, world.broken, world.failed}
    assert runs() == everything
    assert runs(status="failed") == runs(status="ended") == {world.failed}
    assert runs(status=["failed", "live"]) == everything
    assert runs(workflow="asks") == {world.asks}
    assert runs(waits_for="people") == {world.asks}
    assert runs(error="exit_nonzero") == {world.failed}
    assert runs(by="nobody") == set()
    assert runs(text=f"#{world.waits}") == {world.waits}
    assert runs(parent=world.asks) == set()
    now = timezone.now()
    assert runs(created_from=(now + timedelta(hours=1)).isoformat()) == set()
    assert runs(created_to=(now + timedelta(hours=1)).isoformat()) == everything
    assert code_of(admin.get("/runs", created_from="0001-01-01T00:00:00+14:00")) == (422, "input.invalid")


def test_a_run_can_be_started_with_a_version_title_and_priority(admin: Program) -> None:
    store_plan(ASKS, private=False)
    admin.post("/workflows/publish", {"source": FILE})
    wish = {"workflow": "asks", "version": 1, "title": "First", "priority": 5}
    run = Run.objects.get(pk=admin.post("/runs", wish).json()["run"])
    assert (run.plan.version, run.title, run.priority) == (1, "First", 5)
    newest = Run.objects.get(pk=admin.post("/runs", {"workflow": "asks"}).json()["run"])
    assert newest.plan.version == 2


def test_a_state_is_the_one_of_its_revision(admin: Program, world: World) -> None:
    first = admin.get(f"/runs/{world.asks}/revisions/1").json()
    assert (first["revision"], first["status"], first["visits"]) == (1, "queued", [])
    assert code_of(admin.get(f"/runs/{world.asks}/revisions/999")) == (404, "history.no_such_revision")


def test_an_export_is_the_document_and_is_audited(admin: Program, world: World) -> None:
    response = admin.post(f"/runs/{world.asks}/export")
    document = json.loads(b"".join(response.streaming_content))
    assert (document["format"], document["run"]) == ("waypost-run", world.asks)
    entry = AuditEntry.objects.get(action="run.export")
    assert (entry.actor, entry.run) == ("ada (key ci)", world.asks)


# ---- actions ---------------------------------------------------------------------------------------------------------


def test_a_run_without_closing_steps_is_cancelled_at_once_and_once(admin: Program, world: World) -> None:
    """CTL.3"""
    wish = {"reason": "no need", "request_id": "r1"}
    first = admin.post(f"/runs/{world.waits}/cancel", wish)
    assert first.json() == {"run": world.waits, "new": True}
    assert status_of(world.waits) == "cancelled"
    assert admin.post(f"/runs/{world.waits}/cancel", {"request_id": "r2"}).json()["new"] is False
    assert code_of(admin.post(f"/runs/{world.failed}/cancel")) == (409, "run.terminal")


def test_a_hold_is_laid_and_lifted(admin: Program, world: World) -> None:
    assert admin.post(f"/runs/{world.waits}/pause", {"reason": "wait"}).json()["new"] is True
    kinds = list(ControlMessage.objects.filter(run=world.waits).values_list("kind", "sender"))
    assert kinds == [("pause", "ada (key ci)")]


@pytest.mark.parametrize("verb", ["resume", "retry"])
def test_a_failed_run_is_opened_again(admin: Program, world: World, verb: str) -> None:
    assert admin.post(f"/runs/{world.failed}/{verb}").json() == {"run": world.failed, "how": "reopened"}
    assert status_of(world.failed) in ("queued", "running")


def test_a_step_is_skipped_with_a_reason(admin: Program, world: World) -> None:
    assert code_of(admin.post(f"/runs/{world.failed}/skip")) == (422, "input.invalid")
    assert code_of(admin.post(f"/runs/{world.failed}/skip", {"reason": " "})) == (422, "input.invalid")
    assert admin.post(f"/runs/{world.failed}/skip", {"reason": "not needed"}).json()["visit"] == 1


def test_a_run_is_abandoned_with_a_reason(admin: Program, world: World) -> None:
    told = admin.post(f"/runs/{world.waits}/abandon", {"reason": "wrong one"})
    assert told.json() == {"run": world.waits, "was": "waiting"}
    assert status_of(world.waits) == "abandoned"


def test_a_signal_is_sent_once_for_its_request_id(admin: Program, world: World) -> None:
    wish = {"name": "go_on", "payload": {"n": 1}, "request_id": "s1"}
    assert admin.post(f"/runs/{world.waits}/signal", wish).json()["new"] is True
    assert admin.post(f"/runs/{world.waits}/signal", wish).json()["new"] is False
    other = admin.post(f"/runs/{world.waits}/signal", {**wish, "payload": 2})
    assert code_of(other) == (409, "control.conflict")
    assert code_of(admin.post(f"/runs/{world.waits}/signal", {"name": "go_no"})) == (422, "input.invalid")
    assert ControlMessage.objects.count() == 1


def test_words_for_a_step_are_kept_for_it(admin: Program, world: World) -> None:
    assert admin.post(f"/runs/{world.waits}/steer", {"text": "be brief"}).json()["new"] is True
    assert [one["text"] for one in admin.get(f"/runs/{world.waits}").json()["steering"]] == ["be brief"]
    assert code_of(admin.post(f"/runs/{world.waits}/steer", {"text": "  "})) == (422, "input.invalid")


def test_an_interrupted_write_is_reconciled(admin: Program, world: World) -> None:
    """ADM.6"""
    wish = {"decision": "happened", "output": "paid", "reason": "The bank says so."}
    assert admin.post(f"/runs/{world.broken}/reconcile", {**wish, "decision": "maybe"}).status_code == 422
    assert admin.post(f"/runs/{world.broken}/reconcile", wish).json() == {"run": world.broken, "visit": 1}
    assert code_of(admin.post(f"/runs/{world.broken}/reconcile", wish)) == (409, "attempt.not_interrupted")


def test_a_fork_is_previewed_and_made_once(admin: Program, world: World) -> None:
    """FORK.8"""
    shown = admin.post(f"/runs/{world.failed}/fork/preview", {"begin_with": "v1"}).json()
    assert (shown["visit"], shown["kept"]) == (1, 0)
    assert Run.objects.count() == 4
    wish = {"begin_with": "v1", "reason": "again", "request_id": "f1"}
    first, again = admin.post(f"/runs/{world.failed}/fork", wish), admin.post(f"/runs/{world.failed}/fork", wish)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"] == again.json()["run"]
    assert Run.objects.count() == 5
    assert code_of(admin.post(f"/runs/{world.failed}/fork", {"at": 999})) == (404, "history.no_such_revision")


# ---- questions -------------------------------------------------------------------------------------------------------


def test_a_question_is_listed_shown_and_answered_as_the_owner_of_the_key(admin: Program, world: World) -> None:
    """INT.6"""
    listed = admin.get("/questions").json()["questions"]
    assert [(one["run"], one["visit"], one["ask"]) for one in listed] == [(world.asks, 1, "Really?")]
    shown = admin.get(f"/questions/{world.asks}/1").json()
    assert (shown["kind"], shown["status"], shown["attempt"]) == ("approval", "open", 1)
    said = admin.post(f"/questions/{world.asks}/1/answer", {"decision": "approved", "comment": "Fine.", "attempt": 1})
    assert said.json() == {"run": world.asks, "visit": 1, "closed": True}
    question = Interrupt.objects.get()
    assert (question.status, question.answered_by) == ("answered", "ada")
    again = admin.post(f"/questions/{world.asks}/1/answer", {"decision": "approved"})
    assert code_of(again)[0] == 409
    assert admin.get("/questions").json()["questions"] == []
    assert code_of(admin.get(f"/questions/{world.asks}/9")) == (404, "interrupt.not_found")


def test_an_answer_that_does_not_fit_leaves_the_question_open(admin: Program, world: World) -> None:
    for wish in ({}, {"decision": "perhaps"}, {"decision": "approved", "fields": {"x": 1}}):
        assert code_of(admin.post(f"/questions/{world.asks}/1/answer", wish)) == (422, "interrupt.invalid"), wish
    assert Interrupt.objects.get().status == "open"


# ---- workflows -------------------------------------------------------------------------------------------------------


def test_workflows_are_listed_and_shown_with_their_versions(admin: Program) -> None:
    store_plan(ASKS, private=False)
    assert [one["name"] for one in admin.get("/workflows").json()["workflows"]] == ["asks"]
    assert admin.get("/workflows", text="nothing").json()["total"] == 0
    shown = admin.get("/workflows/asks").json()
    assert (shown["version"], [one["is_current"] for one in shown["versions"]]) == (1, [True])
    version = admin.get("/workflows/asks/versions/1").json()
    assert version["document"]["name"] == "asks"
    assert code_of(admin.get("/workflows/asks/versions/2")) == (404, "plan.no_such_version")


def test_a_file_is_validated_and_nothing_is_stored(admin: Program) -> None:
    assert admin.post("/workflows/validate", {"source": FILE}).json() == {"is_valid": True, "problems": []}
    wrong = admin.post("/workflows/validate", {"source": "format: 1\nname: x\nsteps: []\n"}).json()
    assert wrong["is_valid"] is False
    assert wrong["problems"][0]["code"].startswith("E")
    assert not Plan.objects.exists()


def test_a_file_is_published_over_what_it_began_from(admin: Program) -> None:
    """PLAN.7"""
    made = admin.post("/workflows/publish", {"source": FILE, "name": "asks", "began_from": 0})
    assert (made.status_code, made.json()["version"]) == (201, 1)
    other = FILE.replace("id: a", "id: b")
    assert code_of(admin.post("/workflows/publish", {"source": other, "began_from": 0})) == (409, "plan.superseded")
    assert admin.post("/workflows/publish", {"source": other, "began_from": 1}).json()["version"] == 2
    assert admin.post("/workflows/publish", {"source": other}).json()["created"] is False
    assert code_of(admin.post("/workflows/publish", {"source": "steps: []"})) == (422, "definition.invalid")
