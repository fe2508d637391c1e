"""Every operation asks for its permission first, and leaves exactly one entry of the audit (promises WEB.2, CTL.5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from tests.support.hand import Hand, expire
from tests.support.kinds import bad
from tests.support.plans import publish_run, workflow
from tests.support.rows import all_rows, assert_sound
from workflows.errors import Refusal
from workflows.models import AuditEntry, ControlMessage, Run, Workflow, WorkflowAccess
from workflows.operations import runs
from workflows.operations.answering import Wish, answer
from workflows.operations.people import Actor, shell_actor, user_actor
from workflows.operations.reconciling import Told, reconcile
from workflows.operations.runs import Start, start
from workflows.operations.signals import signal, steer
from workflows.operations.workflows import definition_of_file, named_definition, publish_file
from workflows.queries.audit import AuditFilter, audit_page

pytestmark = pytest.mark.django_db(transaction=True)

WORK = workflow("  - { id: work, kind: shell, run: make }", name="deploy")
TIMER = workflow("  - { id: nap, kind: wait, for: 1h }", name="deploy")
ASKS = workflow("  - { id: check, kind: approval, ask: Go? }", name="deploy")
AWAITS = workflow("  - { id: pay, kind: wait, signal: paid }", name="deploy")
BACKS_OFF = workflow(
    "  - { id: work, kind: shell, run: make, retry: { attempts: 2, wait: 1h, max_wait: 1h } }", name="deploy"
)


def parked(text: str) -> int:
    run_id = publish_run(text)
    assert Hand(run_id, now=timezone.now()).step().parks  # questions have deadlines
    return run_id


def failed() -> int:
    run_id = publish_run(WORK)
    hand = Hand(run_id)
    hand.step()
    hand.step({"v1.1": bad()})
    return run_id


def interrupted() -> int:
    run_id = publish_run(WORK)
    Hand(run_id).step()
    expire(run_id)
    assert Hand(run_id).step().parks
    return run_id


def backing_off() -> int:
    run_id = publish_run(BACKS_OFF)
    hand = Hand(run_id)
    hand.step()
    assert hand.step({"v1.1": bad()}).parks
    return run_id


def held() -> int:
    run_id = publish_run(TIMER)
    runs.pause(run_id, actor=Actor(name="o", recorded="o"))
    assert Hand(run_id).step().parks
    return run_id


def abandoned() -> int:
    run_id = parked(TIMER)
    runs.abandon(run_id, actor=Actor(name="o", recorded="o"), reason="by mistake")
    return run_id


def told(decision: Any = "did_not") -> Told:
    return Told(decision=decision, reason="seen")


Act = Callable[[int, Actor], Any]
CASES: list[tuple[str, str, Callable[[], int], Act]] = [
    ("cancel_run", "run.cancel", lambda: parked(TIMER), lambda run, who: runs.cancel(run, actor=who, reason="why")),
    ("hold_run", "run.pause", lambda: parked(TIMER), lambda run, who: runs.pause(run, actor=who, reason="why")),
    ("hold_run", "run.resume", held, lambda run, who: runs.resume(run, actor=who, reason="why")),
    ("hold_run", "run.steer", lambda: parked(TIMER), lambda run, who: steer(run, "to the left", actor=who)),
    ("reopen_run", "run.resume", failed, lambda run, who: runs.resume(run, actor=who, reason="why")),
    ("reopen_run", "run.resume", abandoned, lambda run, who: runs.resume(run, actor=who, reason="why")),
    ("reopen_run", "run.resume", interrupted, lambda run, who: runs.resume(run, actor=who, reason="why")),
    ("reopen_run", "run.retry", failed, lambda run, who: runs.retry(run, actor=who, reason="why")),
    ("reopen_run", "run.retry", backing_off, lambda run, who: runs.retry(run, actor=who, reason="why")),
    ("reopen_run", "run.skip", failed, lambda run, who: runs.skip(run, actor=who, reason="why")),
    ("reopen_run", "run.skip", lambda: parked(TIMER), lambda run, who: runs.skip(run, actor=who, reason="why")),
    ("abandon_run", "run.abandon", lambda: parked(TIMER), lambda run, who: runs.abandon(run, actor=who, reason="why")),
    ("reconcile_run", "run.reconcile", interrupted, lambda run, who: reconcile(run, told(), actor=who)),
    ("start_run", "run.signal", lambda: parked(AWAITS), lambda run, who: signal(run, "paid", 7, actor=who)),
    (
        "answer_interrupt",
        "interrupt.answer",
        lambda: parked(ASKS),
        lambda run, who: answer(run, None, Wish(decision="approved"), actor=who),
    ),
]
NAMES = [f"{action} of {made.__name__.replace('<lambda>', 'parked')}" for _, action, made, _ in CASES]


def person(name: str, *permissions: str) -> User:
    made = User.objects.create_user(name)
    made.user_permissions.set(Permission.objects.filter(codename__in=["view_run", "view_workflow", *permissions]))
    return made


@pytest.mark.parametrize(("permission", "action", "made", "act"), CASES, ids=NAMES)
def test_who_has_the_permission_acts_and_leaves_one_entry(
    permission: str, action: str, made: Callable[[], int], act: Act
) -> None:
    """WEB.2"""
    run_id = made()
    before = AuditEntry.objects.count()
    act(run_id, user_actor(person("alice", permission), through="key ci"))
    (entry,) = AuditEntry.objects.order_by("pk")[before:]
    assert (entry.actor, entry.action, entry.allowed, entry.run, entry.workflow) == (
        "alice (key ci)",
        action,
        True,
        run_id,
        "deploy",
    )
    assert entry.reason == {"run.steer": "", "run.signal": "", "interrupt.answer": "", "run.reconcile": "seen"}.get(
        action, "why"
    )
    assert_sound()


@pytest.mark.parametrize(("permission", "action", "made", "act"), CASES, ids=NAMES)
def test_who_lacks_it_changes_nothing_and_is_audited(
    permission: str, action: str, made: Callable[[], int], act: Act
) -> None:
    """WEB.2"""
    run_id = made()
    others = [one for one in {case[0] for case in CASES} if one != permission]
    alice = user_actor(person("alice", *others))
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        act(run_id, alice)
    assert (caught.value.code, caught.value.data["permission"]) == ("access.denied", permission)
    *known, entry = AuditEntry.objects.order_by("pk").values()
    assert (entry["actor"], entry["action"], entry["allowed"], entry["run"]) == ("alice", action, False, run_id)
    assert {**all_rows(), "AuditEntry": known} == before


@pytest.mark.parametrize(("permission", "action", "made", "act"), CASES, ids=NAMES)
def test_who_cannot_see_the_workflow_hears_that_there_is_no_run(
    permission: str, action: str, made: Callable[[], int], act: Act
) -> None:
    """WEB.2"""
    run_id = made()
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="ops"))
    before = all_rows()
    alice = user_actor(person("alice", *{case[0] for case in CASES}))
    with pytest.raises(Refusal) as caught:
        act(run_id, alice)
    assert (caught.value.code, caught.value.message) == ("run.not_found", f"There is no run {run_id}.")
    assert {**all_rows(), "AuditEntry": []} == {**before, "AuditEntry": []}


@pytest.mark.parametrize(("permission", "action", "made", "act"), CASES, ids=NAMES)
def test_a_run_that_is_not_there_is_told_to_the_shell_too(
    permission: str, action: str, made: Callable[[], int], act: Act
) -> None:
    with pytest.raises(Refusal) as caught:
        act(4_711, shell_actor())
    assert caught.value.code == "run.not_found"


def test_starting_is_audited_and_needs_its_permission() -> None:
    """WEB.2, PUB.10: beside a full key with a reason and a permission of its own."""
    text = WORK.replace("steps:", "concurrency: { key: prod, max: 1, when_full: reject }\nsteps:").encode()
    publish_file(text, created_by="ann", audited_as="shell:root")
    definition = named_definition("deploy")
    alice = user_actor(person("alice", "start_run"))
    run_id = start(Start(definition=definition, actor=alice)).run_id
    with pytest.raises(Refusal) as caught:
        start(Start(definition=definition, actor=alice, over_limit="the other one hangs"))
    assert caught.value.message == "alice may not start runs beside a full concurrency key."
    boss = user_actor(person("boss", "start_run", "exceed_limit"))
    beside = start(Start(definition=definition, actor=boss, over_limit="the other one hangs")).run_id
    with pytest.raises(Refusal) as caught:
        start(Start(definition=definition, actor=user_actor(person("carol"))))
    assert caught.value.message == "carol may not start runs and send signals."
    rows = AuditEntry.objects.order_by("pk").values_list("actor", "action", "allowed", "run", "reason")
    assert list(rows) == [
        ("shell:root", "plan.publish", True, None, ""),
        ("alice", "run.start", True, run_id, ""),
        ("alice", "run.start_over_limit", False, None, ""),
        ("boss", "run.start", True, beside, "the other one hangs"),
        ("carol", "run.start", False, None, ""),
    ]
    assert Run.objects.count() == 2


def test_one_key_per_rendered_form_makes_one_run_and_one_entry() -> None:
    """PUB.8: a double click on Start"""
    definition = definition_of_file(WORK.encode())
    actor = shell_actor()
    first, again = (start(Start(definition=definition, actor=actor, key="form:8f3a")) for _ in range(2))
    assert (first.created, again.created, again.run_id) == (True, False, first.run_id)
    assert AuditEntry.objects.filter(action="run.start").count() == 1


def test_somebody_for_whom_a_question_is_not_is_denied_and_audited() -> None:
    """INT.5, WEB.2"""
    run_id = parked(ASKS.replace("ask: Go?", "ask: Go?, by: { users: [bob] }"))
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        answer(run_id, None, Wish(decision="approved"), actor=user_actor(person("alice", "answer_interrupt")))
    assert caught.value.code == "interrupt.not_allowed"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.allowed, json.loads(entry.data)) == ("interrupt.answer", False, {"question": "v1.1"})
    assert {**all_rows(), "AuditEntry": []} == before


@pytest.mark.parametrize("reason", ["x" * 2_001, "nul \0"])
def test_a_reason_that_cannot_be_kept_is_refused(reason: str) -> None:
    """DB.4"""
    run_id = parked(TIMER)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        runs.cancel(run_id, actor=shell_actor(), reason=reason)
    assert caught.value.code == "input.invalid"
    assert all_rows() == before


# ---- steering (CTL.5) ------------------------------------------------------------------------------------------------


def test_a_text_that_steers_stays_pending_where_no_step_takes_it() -> None:
    """CTL.5"""
    run_id = parked(TIMER)
    accepted = steer(run_id, "to the left", actor=shell_actor(), request_id="r1")
    Hand(run_id, now=timezone.now() + timedelta(hours=2)).step()
    assert Run.objects.get(pk=run_id).status == "succeeded"
    message = ControlMessage.objects.get(run_id=run_id)
    assert (message.kind, message.sequence, json.loads(message.payload), message.consumed_at) == (
        "steer",
        accepted.sequence,
        {"text": "to the left"},
        None,
    )
    assert_sound()


def test_the_same_request_is_the_same_text() -> None:
    """CTL.2, CTL.5"""
    run_id = parked(TIMER)
    first = steer(run_id, "left", actor=shell_actor(), request_id="r1")
    again = steer(run_id, "left", actor=shell_actor(), request_id="r1")
    assert (again.new, again.sequence) == (False, first.sequence)
    with pytest.raises(Refusal) as caught:
        steer(run_id, "right", actor=shell_actor(), request_id="r1")
    assert caught.value.code == "control.conflict"
    assert AuditEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The text is empty."),
        (" \n", "The text is empty."),
        ("x" * 20_001, "The text has 20001 characters; the limit is 20000."),
    ],
)
def test_a_text_that_says_nothing_or_too_much_is_refused(text: str, message: str) -> None:
    """CTL.5"""
    run_id = parked(TIMER)
    before = all_rows()
    with pytest.raises(Refusal) as caught:
        steer(run_id, text, actor=shell_actor())
    assert (caught.value.code, caught.value.message) == ("input.invalid", message)
    assert all_rows() == before


def test_pending_messages_are_bounded_in_size() -> None:
    """CTL.5: 512 KiB; a cancel is always taken."""
    run_id = parked(TIMER)
    for _ in range(26):
        steer(run_id, "x" * 20_000, actor=shell_actor())
    with pytest.raises(Refusal) as caught:
        steer(run_id, "x" * 20_000, actor=shell_actor())
    assert (caught.value.code, caught.value.message) == (
        "control.too_large",
        f"The pending messages of run {run_id} would hold more than 512 KiB; no more are taken.",
    )
    assert runs.cancel(run_id, actor=shell_actor())


def test_a_cancel_is_taken_however_many_messages_wait() -> None:
    """CTL.3, CTL.5"""
    run_id = parked(TIMER)
    for number in range(128):
        steer(run_id, f"step {number}", actor=shell_actor())
    with pytest.raises(Refusal) as caught:
        steer(run_id, "one more", actor=shell_actor())
    assert caught.value.code == "control.too_many"
    assert runs.cancel(run_id, actor=shell_actor())


# ---- looking at the audit --------------------------------------------------------------------------------------------


def test_the_audit_is_read_newest_first_in_pages() -> None:
    """WEB.2"""
    run_id = parked(TIMER)
    for number in range(5):
        steer(run_id, f"step {number}", actor=shell_actor())
    first = audit_page(AuditFilter(run=run_id), limit=3)
    rest = audit_page(AuditFilter(run=run_id, before=first.next_before), limit=3)
    numbers = [entry["number"] for entry in (*first.entries, *rest.entries)]
    assert (len(first.entries), len(rest.entries), rest.next_before) == (3, 2, None)
    assert numbers == sorted(numbers, reverse=True)
    assert first.entries[0]["data"] == {"event": Run.objects.get().next_event - 1}


def test_entries_are_found_by_who_what_and_whether() -> None:
    """WEB.2"""
    run_id = parked(TIMER)
    alice = person("alice", "hold_run")
    steer(run_id, "left", actor=shell_actor("alice"))
    steer(run_id, "right", actor=user_actor(alice, through="key ci"))
    with pytest.raises(Refusal):
        runs.abandon(run_id, actor=user_actor(alice), reason="r")
    steer(run_id, "back", actor=Actor(name="malice", recorded="malice"))

    def found(**wanted: Any) -> list[str]:
        return [entry["actor"].split()[-1] for entry in audit_page(AuditFilter(**wanted)).entries]

    assert found(actor="alice") == ["alice", "ci)", "alice"]
    assert found(action="run.abandon") == ["alice"]
    assert found(action="run") == ["malice", "alice", "ci)", "alice"]
    assert found(action="ru") == []
    assert found(allowed=False) == ["alice"]
    assert found(workflow="other") == []


def test_entries_of_a_hidden_workflow_are_hidden() -> None:
    """WEB.2"""
    run_id = parked(TIMER)
    steer(run_id, "left", actor=shell_actor())
    viewer = person("viewer", "view_auditentry")
    assert len(audit_page(AuditFilter(), viewer=viewer).entries) == 1
    group = Group.objects.create(name="ops")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=group)
    assert audit_page(AuditFilter(), viewer=viewer).entries == []
    assert len(audit_page(AuditFilter()).entries) == 1
    viewer.groups.add(group)
    assert len(audit_page(AuditFilter(), viewer=viewer).entries) == 1
