"""E-mail: what it says, and what happens when the server is slow, down or of another opinion (promises NOTE, INT.8)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.utils import timezone

from tests.notifications.mail import Mailbox
from tests.notifications.worlds import HOUR, asking, fact, failed, person, send, tell
from tests.processes import Processes
from tests.support.http_server import unused_port
from tests.support.plans import workflow
from workflows.clock import database_now_ms
from workflows.ledger.notifying import Outcome, claim_delivery, settle_delivery
from workflows.ledger.transactions import database_thread
from workflows.models import Delivery, Run
from workflows.operations import notifications_sending as sending
from workflows.operations.notifications_sending import Courier, send_due
from workflows.operations.notifications_text import message_of
from workflows.statuses import DeliveryStatus

pytestmark = pytest.mark.django_db(transaction=True)


def later(milliseconds: int) -> Any:
    return lambda: database_now_ms() + milliseconds


def one() -> Delivery:
    return Delivery.objects.get()


def test_a_message_says_which_run_what_is_the_matter_and_where_to_go(mailbox: Mailbox) -> None:
    """NOTE.5: no value of the run is in it, and nothing in it decides anything."""
    person("ada", "approver")
    run = asking(title="Lunch\r\nBcc: eve@example.com \u202e of May").run_id
    tell()
    send()
    (message,) = mailbox.messages
    body = message.get_content()
    assert message["Subject"] == f"[Waypost] pay #{run} waits for an approval: Lunch Bcc: eve@example.com of May"
    assert (message["To"], message["Bcc"], message["Auto-Submitted"]) == ("ada@example.com", None, "auto-generated")
    assert f"https://waypost.example/runs/{run}/questions/1/" in body
    assert "Workflow: pay" in body
    assert "Step:     check" in body
    assert "Open the question, read it there, and answer." in body
    assert message["List-Unsubscribe"] == "<https://waypost.example/account/notifications/>"
    assert "7321" not in message.as_string()
    assert "Eve?" not in message.as_string()
    assert (one().status, one().attempts, one().error) == ("delivered", 1, "")
    assert message["Message-ID"] == one().message_id
    assert one().message_id.endswith("@waypost.example>")


def test_a_failed_run_is_told_with_the_code_of_its_error_and_not_with_its_words(mailbox: Mailbox) -> None:
    """NOTE.5"""
    person("ops", "operator")
    run = failed()
    tell()
    send()
    body = mailbox.messages[0].get_content()
    assert mailbox.messages[0]["Subject"] == f"[Waypost] deploy #{run} failed"
    assert "Error:    exit_nonzero" in body
    assert "hunter2" not in mailbox.messages[0].as_string()
    assert f"https://waypost.example/runs/{run}/\r\n" in body


def test_links_are_those_of_the_pages() -> None:
    """NOTE.5"""
    from django.urls import reverse

    from workflows.operations.notifications_text import page_of, preferences_page

    run = asking().run_id
    tell()
    assert page_of(fact()).endswith(reverse("pages:question", args=[run, 1]))
    assert preferences_page().endswith(reverse("pages:notification_preferences"))


def test_a_server_that_is_down_is_tried_again_with_the_same_id(mailbox: Mailbox, settings: Any) -> None:
    """NOTE.2, NOTE.3"""
    person("ops", "operator")
    failed()
    tell()
    settings.EMAIL_PORT = unused_port()
    before = database_now_ms()
    assert send() == 1
    assert (one().status, one().attempts) == ("waiting", 1)
    assert one().error == f"The mail server 127.0.0.1:{settings.EMAIL_PORT} did not take it: ConnectionRefusedError."
    assert 30_000 <= one().due_ms - before < 45_000
    settings.EMAIL_PORT = mailbox.port
    assert send() == 0, "it is not its time yet"
    assert send(later(60_000)) == 1
    assert [message["Message-ID"] for message in mailbox.messages] == [one().message_id]
    assert (one().status, one().attempts, one().error) == ("delivered", 2, "")


def test_tries_end(mailbox: Mailbox, settings: Any) -> None:
    """NOTE.3"""
    person("ops", "operator")
    failed()
    tell()
    settings.EMAIL_PORT = unused_port()
    for number in range(sending.MOST_ATTEMPTS + 3):
        send(later(number * 24 * HOUR))
    assert (one().status, one().attempts) == ("given_up", sending.MOST_ATTEMPTS)
    assert mailbox.messages == []


def test_pauses_double_up_to_a_limit_and_differ_between_messages() -> None:
    """NOTE.3"""
    pauses = [sending.pause_ms("<a@b>", attempt) for attempt in range(1, 13)]
    assert pauses == [sending.pause_ms("<a@b>", attempt) for attempt in range(1, 13)]
    assert pauses != [sending.pause_ms("<c@b>", attempt) for attempt in range(1, 13)]
    for attempt, pause in enumerate(pauses, start=1):
        least = min(30_000 * 2 ** (attempt - 1), 6 * HOUR)
        assert least <= pause <= least * 1.25


@pytest.mark.parametrize(
    ("refusal", "status"), [("550 no such person", "given_up"), ("451 try again later", "waiting")]
)
def test_what_the_server_says_about_an_address_counts(mailbox: Mailbox, refusal: str, status: str) -> None:
    """NOTE.3"""
    person("ops", "operator")
    failed()
    tell()
    mailbox.refusal = refusal
    send()
    code = int(refusal[:3])
    assert (one().status, one().response_code) == (status, code)
    assert one().error == f"The mail server refused it ({code})."


def test_of_two_workers_one_sends(mailbox: Mailbox) -> None:
    """NOTE.2"""
    for name in ("ada", "bob", "cat", "dan", "eva", "fay"):
        person(name, "approver")
    asking()
    tell()
    gate, sent = threading.Barrier(3), []

    def work() -> None:
        with database_thread():
            gate.wait()
            sent.append(send_due(None))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mailbox.messages) == 6
    assert sum(sent) == 6
    assert set(Delivery.objects.values_list("status", "attempts")) == {("delivered", 1)}


def test_a_claim_that_has_ended_is_somebody_elses(mailbox: Mailbox) -> None:
    """NOTE.2"""
    person("ops", "operator")
    failed()
    tell()
    now = database_now_ms()
    slow = claim_delivery(webhook=None, now_ms=now, for_ms=1_000)
    assert slow is not None
    assert claim_delivery(webhook=None, now_ms=now + 999, for_ms=1_000) is None
    fast = claim_delivery(webhook=None, now_ms=now + 1_000, for_ms=1_000)
    assert fast is not None
    done = Outcome(status=DeliveryStatus.DELIVERED)
    assert not settle_delivery(claimed=slow, outcome=done, now=timezone.now())
    assert one().status == "waiting"
    assert settle_delivery(claimed=fast, outcome=done, now=timezone.now())
    assert (one().status, one().attempts) == ("delivered", 2)


DIES = """
import os
from workflows.operations import notifications_sending as sending
sending.settle_delivery = lambda **_: os._exit(9)
sending.send_due(None)
"""


def test_a_worker_that_is_killed_between_sending_and_writing_has_sent_what_is_sent_again(
    mailbox: Mailbox, processes: Processes
) -> None:
    """NOTE.2, INT.8: at least once, and with the same Message-ID."""
    person("ada", "approver")
    player = asking()
    tell()
    send()
    player.pass_time(HOUR)
    player.again()
    tell(hours=1)
    environment = {"EMAIL_URL": f"smtp://127.0.0.1:{mailbox.port}", "WAYPOST_BASE_URL": "https://waypost.example"}
    dead = processes.start_script(DIES, env=environment)
    assert dead.wait(timeout=60) == 9
    reminder = Delivery.objects.get(notification__kind="question_reminded")
    assert (reminder.status, reminder.attempts) == ("waiting", 1)
    assert len(mailbox.messages) == 2
    assert send() == 0, "the claim of the dead has not ended"
    assert send(later(sending.CLAIM_MS + 1)) == 1
    first, second = mailbox.messages[1:]
    assert first["Message-ID"] == second["Message-ID"] == reminder.message_id
    assert first["Date"] == second["Date"]
    assert Delivery.objects.get(pk=reminder.pk).status == "delivered"
    assert send(later(sending.CLAIM_MS + 1)) == 0


def test_a_server_that_hangs_delays_nothing_else(mailbox: Mailbox, hooks: Any) -> None:
    """NOTE.3"""
    from tests.notifications.worlds import hook, known

    known("deploy")
    hook(f"{hooks.address}/news")
    person("ops", "operator")
    failed()
    tell()
    mailbox.hangs = True
    courier = Courier()
    courier.look()
    assert mailbox.arrived.wait(30)
    assert hooks.arrived.wait(30)
    courier.look()
    assert len(hooks.asked) == 1
    mailbox.closing.set()
    courier.wait(30)
    assert set(Delivery.objects.values_list("person", "status")) == {("", "delivered"), ("ops", "waiting")}


def test_a_message_that_cannot_be_made_holds_up_no_other(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """NOTE.3"""
    person("ops", "operator")
    broken, sound = failed(), failed()
    tell()

    def made(fact: Any, run: Run) -> Any:
        if run.pk == broken:
            raise RuntimeError("no luck")
        return message_of(fact, run)

    monkeypatch.setattr(sending, "message_of", made)
    assert send() == 2
    rows = Delivery.objects.values_list("notification__run", "status", "error")
    assert set(rows) == {(broken, "waiting", "RuntimeError while sending."), (sound, "delivered", "")}


def test_who_gets_a_message_about_a_run_that_is_gone(mailbox: Mailbox, processes: Processes) -> None:
    person("ops", "operator")
    failed(workflow("  - { id: work, kind: shell, run: x }", name="deploy"))
    tell()
    assert processes.manage("prune_runs", "--keep", "0", "--yes").returncode == 0
    send()
    assert (one().status, one().error) == ("dropped", "The run is gone.")
    assert mailbox.messages == []
