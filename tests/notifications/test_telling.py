"""Which facts are told, to whom, once (promises NOTE, INT.8)."""

from __future__ import annotations

import importlib
import json
import threading
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.notifications.mail import Mailbox
from tests.notifications.worlds import HOUR, SHELL, actor, asking, blocked, failed, known, person, send, tell, told
from tests.support.kinds import bad
from tests.support.plans import workflow
from tests.support.players import Player
from tests.support.rows import all_rows
from tests.support.worlds import publish_parent
from workflows.ledger.transactions import database_thread
from workflows.models import Delivery, Event, Notification, Run, Workflow, WorkflowAccess
from workflows.operations import notifications_wishes as wishes
from workflows.operations.answering import Wish, answer
from workflows.operations.exporting import export_run
from workflows.operations.importing import import_document
from workflows.operations.notifications import fact_of, record, tell_missed, tell_news, untold
from workflows.operations.notifications_audience import Preference
from workflows.operations.notifications_sending import due_lanes
from workflows.operations.reconciling import Told, reconcile
from workflows.statuses import About

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mailbox")]

KID = workflow("  - { id: work, kind: shell, run: x }", name="kid")
BOTH_WRITE = workflow("""
  - id: both
    kind: parallel
    branches:
      left: [ { id: one, kind: shell, run: x } ]
      right: [ { id: two, kind: shell, run: x } ]
""")
PARENT = workflow("  - { id: call, kind: workflow, ref: kid }", name="parent")


def by(*users: str, groups: str = "", more: str = "") -> str:
    audience = f"by: {{ users: [{', '.join(users)}], groups: [{groups}] }}"
    return workflow(f"  - {{ id: check, kind: approval, ask: Go?, {audience}{more} }}", name="pay")


def test_a_question_is_told_to_those_who_may_answer_it() -> None:
    """NOTE.1, NOTE.4"""
    person("ada", "approver"), person("bob", "approver"), person("viv", "viewer"), person("ops", "operator")
    asking()
    assert tell() == 1
    assert told() == [("question_asked", "ada"), ("question_asked", "bob")]
    assert tell() == 0
    assert len(told()) == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (by("ada"), ["ada"]),
        (by("requester"), ["ann"]),
        (by("nobody", groups="leads"), ["lea"]),
        (by("ada", groups="leads", more=", not_by: [lea]"), ["ada"]),
        (by("viv"), []),
    ],
)
def test_audience_and_exclusions_decide(text: str, names: list[str]) -> None:
    """NOTE.4: whoever lacks the right to answer is not asked, named or not."""
    for name in ("ada", "ann", "bob"):
        person(name, "approver")
    person("lea", "approver", "leads"), person("viv", "viewer")
    asking(text)
    tell()
    assert told() == [("question_asked", name) for name in names]


def test_who_cannot_see_the_workflow_is_inactive_or_has_no_address_is_told_nothing() -> None:
    """NOTE.4"""
    person("ada", "approver", "payers"), person("bob", "approver"), person("kim", "approver", "payers", email="")
    person("old", "approver", "payers", is_active=False)
    known("pay")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(name="pay"), group=Group.objects.get(name="payers"))
    asking()
    tell()
    assert told() == [("question_asked", "ada")]


def test_failed_and_blocked_runs_are_told_to_operators_and_to_who_started_them() -> None:
    """NOTE.4"""
    person("ann", "viewer"), person("ops", "operator"), person("viv", "viewer"), person("apo", "approver")
    failed()
    tell()
    assert told() == [("run_failed", "ann"), ("run_failed", "ops")]
    blocked()
    tell()
    assert told()[2:] == [("run_blocked", "ann"), ("run_blocked", "ops")]


def test_a_reminder_is_a_fact_of_its_own() -> None:
    """INT.8, NOTE.1"""
    person("ada", "approver")
    player = asking()
    tell()
    for hours in (1, 2):
        player.pass_time(HOUR)
        player.again()
        tell(hours=hours)
        tell(hours=hours)
    assert told() == [("question_asked", "ada"), ("question_reminded", "ada"), ("question_reminded", "ada")]
    assert len(set(Delivery.objects.values_list("message_id", flat=True))) == 3
    assert Event.objects.filter(type="question_reminded").count() == 2


def test_who_has_voted_is_not_reminded() -> None:
    """NOTE.4"""
    person("ada", "approver"), person("bob", "approver")
    player = asking(workflow("  - { id: check, kind: approval, ask: Go?, quorum: 2, remind: 1h }", name="pay"))
    answer(player.run_id, None, Wish(decision="approved"), actor=actor("ada"))
    player.pass_time(HOUR)
    player.again()
    tell(hours=1)
    assert told() == [("question_asked", "bob"), ("question_reminded", "bob")]


def test_the_failure_of_a_child_run_is_told_by_its_parent() -> None:
    """NOTE.1: one message for one failure."""
    person("ops", "operator")
    player = Player(publish_parent(PARENT, KID), now=timezone.now())
    player.play()
    child = Run.objects.get(parent_run=player.run_id)
    Player(child.pk, {"work": bad()}, now=timezone.now()).play()
    assert player.again().status == "failed"
    assert tell() == 2
    assert told() == [("run_failed", "ops")]
    assert Delivery.objects.get().notification.run == player.run_id


@pytest.mark.parametrize(
    ("preference", "expected"),
    [
        (Preference(), ["deploy", "pay", "mine"]),
        (Preference(by_email=False), []),
        (Preference(kinds=frozenset()), []),
        (Preference(kinds=frozenset({"run_blocked"})), []),
        (Preference(about=About.MINE), ["mine"]),
        (Preference(about=About.CHOSEN, workflows=frozenset({"pay"})), ["pay"]),
        (Preference(about=About.CHOSEN), []),
    ],
)
def test_people_choose_what_they_hear_of(preference: Preference, expected: list[str]) -> None:
    """NOTE.4"""
    person("ops", "operator")
    known("pay")
    wishes.choose(preference, actor=actor("ops"))
    failed(), failed(workflow("  - { id: work, kind: shell, run: x }", name="pay"))
    failed(workflow("  - { id: work, kind: shell, run: x }", name="mine"), started_by="ops")
    tell()
    names = Delivery.objects.order_by("pk").values_list("notification__workflow", flat=True)
    assert sorted(names) == sorted(expected)


def test_a_question_that_names_a_person_is_theirs() -> None:
    """NOTE.4"""
    person("ada", "approver"), person("bob", "approver", "leads")
    for name in ("ada", "bob"):
        wishes.choose(Preference(about=About.MINE), actor=actor(name))
    asking(by("ada", groups="leads"))
    tell()
    assert told() == [("question_asked", "ada")]


def test_nothing_is_lost_when_nobody_looked_for_days_and_nothing_old_is_dug_up() -> None:
    """NOTE.1"""
    person("ops", "operator")
    failed()
    now = timezone.now()
    assert tell_news(now=now + timedelta(hours=1)) == 0, "only the last minutes are looked at often"
    assert tell_missed(now=now + timedelta(days=8)) == 0
    assert tell_missed(now=now + timedelta(days=6)) == 1


def test_of_many_who_find_a_fact_one_writes_it() -> None:
    """NOTE.1"""
    person("ops", "operator")
    failed()
    (fact,) = untold(since=timezone.now() - timedelta(days=1))
    gate, new = threading.Barrier(4), []

    def find() -> None:
        with database_thread():
            gate.wait()
            new.append(record(fact, now=timezone.now()))

    threads = [threading.Thread(target=find) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == [False, False, False, True]
    assert told() == [("run_failed", "ops")]


def test_without_a_mail_server_no_mail_is_written(settings: pytest.FixtureRequest) -> None:
    settings.WAYPOST_SENDS_EMAIL = False  # type: ignore[attr-defined]
    person("ops", "operator")
    failed()
    assert tell() == 1
    assert told() == []


def test_notifications_are_kept_for_some_months() -> None:
    person("ops", "operator")
    failed()
    tell()
    tell_missed(now=timezone.now() + timedelta(days=89))
    assert Notification.objects.count() == 1
    tell_missed(now=timezone.now() + timedelta(days=91))
    assert (Notification.objects.count(), Delivery.objects.count()) == (0, 0)


def test_what_is_told_changes_no_run() -> None:
    person("ada", "approver")
    asking()
    before = {name: rows for name, rows in all_rows().items() if name not in ("Notification", "Delivery")}
    tell()
    send()
    after = {name: rows for name, rows in all_rows().items() if name not in ("Notification", "Delivery")}
    assert after == before


def test_what_happened_since_is_looked_at_before_a_message_is_sent(mailbox: Mailbox) -> None:
    """NOTE.4"""
    person("ada", "approver"), person("bob", "approver"), person("cat", "approver"), person("dan", "approver")
    asking()
    tell()
    User.objects.filter(username="bob").update(is_active=False)
    User.objects.get(username="cat").groups.clear()
    wishes.choose(Preference(by_email=False), actor=actor("dan"))
    assert send() == 4
    assert mailbox.receivers == ["ada@example.com"]
    dropped = Delivery.objects.filter(status="dropped")
    assert set(dropped.values_list("person", "error")) == {
        (name, "This person is not to be told any more.") for name in ("bob", "cat", "dan")
    }


def test_a_question_that_was_answered_meanwhile_asks_nobody_any_more(mailbox: Mailbox) -> None:
    """NOTE.4"""
    person("ada", "approver"), person("bob", "approver")
    player = asking()
    tell()
    answer(player.run_id, None, Wish(decision="approved"), actor=actor("ada"))
    send()
    assert mailbox.messages == []
    assert set(Delivery.objects.values_list("status", "error")) == {("dropped", "The question is not open any more.")}


@pytest.mark.store("sqlite")
def test_what_workers_look_for_every_second_is_found_by_an_index(mailbox: Mailbox) -> None:
    """NOTE.1: however many events and deliveries there are."""
    person("ops", "operator")
    failed()
    tell()
    with CaptureQueriesContext(connection) as queries:
        untold(since=timezone.now())
        due_lanes(0)
    with connection.cursor() as cursor:
        plans = []
        for query in queries:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plans.append(cursor.fetchall()[0][3])
    assert plans == [
        "SEARCH workflows_event USING INDEX event_told (at>?)",
        "SCAN workflows_delivery USING INDEX delivery_due",
    ]


def test_a_run_that_is_still_blocked_is_told_once(mailbox: Mailbox) -> None:
    """NOTE.1"""
    person("ops", "operator")
    run_id = blocked(BOTH_WRITE)
    reconcile(run_id, Told(decision="happened", reason="seen", output="x"), actor=actor("ops"), visit=2)
    Player(run_id, now=timezone.now()).play()
    assert tell() == 1
    (fact,) = [fact_of(row) for row in Notification.objects.all()]
    last = Event.objects.filter(run_id=run_id).order_by("-sequence").first()
    assert last is not None
    # an event of that type that only tells of other reasons, as the engine writes one when nothing else has changed
    assert record(replace(fact, event=last.sequence), now=timezone.now())
    assert told() == [("run_blocked", "ops")]


def test_what_was_imported_happened_elsewhere() -> None:
    """NOTE.1"""
    person("ops", "operator")
    run_id = failed()
    tell()
    document = json.loads("".join(export_run(run_id, actor=SHELL)))
    import_document(document, actor=SHELL)
    assert Run.objects.count() == 2
    tell()
    assert told() == [("run_failed", "ops")]


def test_what_happened_before_there_were_notifications_is_told_to_nobody() -> None:
    """NOTE.1"""
    person("ops", "operator")
    failed()
    migration = importlib.import_module("workflows.migrations.0007_notifications")
    past = MigrationLoader(connection).project_state([("workflows", "0007_notifications")]).apps
    migration.leave_the_past_alone(past, SimpleNamespace(connection=connection))
    assert tell() == 0
    failed()
    assert tell() == 1
