"""Pages and command of notifications: everybody chooses, webhooks are managed, messages are sent again (NOTE, WEB.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.commands.support import manage
from tests.notifications.mail import Mailbox
from tests.notifications.worlds import SHELL, actor, asking, failed, hook, known, person, send, tell, told
from tests.support.http_server import Server
from tests.support.rows import all_rows
from workflows.models import AuditEntry, Delivery, NotificationPreference, Webhook, Workflow, WorkflowAccess
from workflows.operations import notifications_wishes as wishes
from workflows.operations.notifications_audience import USUAL, preferences_of

pytestmark = pytest.mark.django_db(transaction=True)

MINE = "/account/notifications/"
DEPLOY = "/workflows/deploy/notifications/"
HARM = "https://example.com/<script>alert(1)</script>"


def browser(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def text(response: Any) -> str:
    return str(response.content.decode())


def test_everybody_chooses_for_themselves(mailbox: Mailbox) -> None:
    """NOTE.4"""
    person("ada", "approver"), known("pay", "deploy")
    client = browser("ada")
    page = text(client.get(MINE))
    assert page.count("checked") == 6, "everything by e-mail is usual"
    assert "ada@example.com" in page
    data = {"by_email": "1", "kind": ["question_asked"], "about": "chosen", "workflow": ["pay"]}
    response = client.post(MINE, data)
    assert (response.status_code, response.headers["Location"]) == (302, MINE)
    (found,) = preferences_of(["ada"]).values()
    assert (found.kinds, found.about, found.workflows) == ({"question_asked"}, "chosen", {"pay"})
    assert '<option value="pay" selected>' in text(client.get(MINE))
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("ada", "preference.change")
    client.post(MINE, {"about": "mine"})
    assert not preferences_of(["ada"])["ada"].by_email
    assert NotificationPreference.objects.count() == 1


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"about": "nothing"}, 422),
        ({"about": "mine", "kind": ["run_danced"]}, 422),
        ({"about": "chosen", "workflow": ["deploy"]}, 404),
        ({"about": "chosen", "workflow": ["there_is_none"]}, 404),
    ],
)
def test_what_cannot_be_chosen_is_refused(data: dict[str, Any], status: int) -> None:
    """WEB.2: a workflow that somebody may not see does not exist."""
    person("ada", "approver"), known("deploy")
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="others"))
    assert browser("ada").post(MINE, data).status_code == status
    assert preferences_of(["ada"]).get("ada", USUAL) == USUAL
    assert not AuditEntry.objects.exists()


def test_a_shell_chooses_nothing() -> None:
    with pytest.raises(wishes.Refusal) as caught:
        wishes.choose(USUAL, actor=SHELL)
    assert caught.value.code == "input.invalid"


def test_looking_at_a_link_of_a_message_changes_nothing(mailbox: Mailbox) -> None:
    """NOTE.5: whoever, or whatever, follows it."""
    person("ada", "approver")
    asking()
    tell()
    send()
    body = mailbox.messages[0].get_content()
    links = [word.removeprefix("https://waypost.example") for word in body.split() if word.startswith("https://")]
    assert len(links) == 2
    before = all_rows()
    for link in links:
        assert Client().get(link).status_code == 302, "a login is asked for"
        assert browser("ada").get(link).status_code == 200
        browser("ada").head(link)
    assert all_rows() == before


def test_an_admin_adds_switches_and_removes_a_webhook() -> None:
    """NOTE.6"""
    person("boss", "admin"), known("deploy")
    client = browser("boss")
    data = {"url": "https://example.com/hook?token=abc", "secret": "hook", "kind": ["run_failed", "run_blocked"]}
    assert client.post(f"{DEPLOY}add/", data).status_code == 302
    webhook = Webhook.objects.get()
    page = text(client.get(DEPLOY))
    assert "https://example.com/hook?…" in page
    assert "token=abc" not in page
    change = f"{DEPLOY}webhooks/{webhook.pk}/"
    client.post(change, {"to": "off"})
    assert "Switch on" in text(client.get(DEPLOY))
    assert client.post(change, {"to": "sideways"}).status_code == 422
    client.post(change, {"to": "remove"})
    assert "No program is told." in text(client.get(DEPLOY))
    assert client.post(change, {"to": "on"}).status_code == 404


@pytest.mark.parametrize(
    "data",
    [
        {"url": HARM, "secret": "hook", "kind": "run_failed"},
        {"url": "http://127.0.0.1:8000/", "secret": "hook", "kind": "run_failed"},
        {"url": "https://example.com/", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "kind": "run_failed"},
        {"url": "https://example.com/", "secret": "hook"},
        {"url": "https://example.com/", "secret": "hook", "kind": "run_danced"},
    ],
)
def test_a_webhook_that_cannot_be_is_refused_beside_what_was_typed(data: dict[str, Any]) -> None:
    """NOTE.6, WEB.1"""
    person("boss", "admin"), known("deploy")
    response = browser("boss").post(f"{DEPLOY}add/", data)
    assert response.status_code == 422
    assert "<script>alert" not in text(response)
    assert f'name="secret" value="{data["secret"]}"' in text(response)
    assert not Webhook.objects.exists()


def test_the_log_tells_what_became_of_each_message_and_sends_again(hooks: Server, mailbox: Mailbox) -> None:
    """NOTE.2"""
    known("deploy")
    hook(f"{hooks.address}/news")
    person("ops", "operator")
    hooks.answers("/news", "", 500)
    failed()
    tell()
    send()
    client = browser("ops")
    page = text(client.get(DEPLOY))
    assert "The answer was 500, not 2xx." in page
    assert "delivered" in page
    mailed, waits = Delivery.objects.get(person="ops"), Delivery.objects.get(person="")
    assert page.count("Send again") == 1
    assert client.post(f"{DEPLOY}deliveries/{waits.pk}/again/").status_code == 409
    assert client.post(f"/workflows/pay/notifications/deliveries/{mailed.pk}/again/").status_code == 404
    assert client.post(f"{DEPLOY}deliveries/{mailed.pk}/again/").status_code == 302
    send()
    assert len(mailbox.messages) == 2
    assert len({message["Message-ID"] for message in mailbox.messages}) == 1
    assert "sent again by" in text(client.get(DEPLOY))
    assert "Written to you" in text(client.get(MINE))
    assert text(client.get(MINE)).count("A run failed") == 3


def test_a_long_log_has_pages(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """WEB.3"""
    from workflows.pages import notifications
    from workflows.queries.notifications import deliveries

    monkeypatch.setattr(notifications, "deliveries", lambda wanted, viewer: deliveries(wanted, viewer=viewer, limit=2))
    for name in ("op1", "op2", "op3"):
        person(name, "operator")
    failed()
    tell()
    client = browser("op1")
    first = text(client.get(DEPLOY))
    last = Delivery.objects.order_by("-pk")[1].pk
    assert f"?before={last}" in first
    assert "op1" in text(client.get(f"{DEPLOY}?before={last}"))
    assert client.get(f"{DEPLOY}?before=x").status_code == 200


def test_messages_about_hidden_workflows_are_shown_to_nobody_else(mailbox: Mailbox) -> None:
    """WEB.2"""
    person("ops", "operator")
    failed()
    tell()
    WorkflowAccess.objects.create(workflow=Workflow.objects.get(), group=Group.objects.create(name="others"))
    client = browser("ops")
    assert client.get(DEPLOY).status_code == 404
    assert "deploy" not in text(client.get(MINE)).split("Written to you")[1]


def test_the_command_lists_sends_again_and_tries(hooks: Server, mailbox: Mailbox) -> None:
    """NOTE.2"""
    person("ops", "operator"), person("kim", "operator", email="")
    known("deploy")
    news = hook(f"{hooks.address}/news?token=t0ps3cret")
    assert manage("notifications", "list").out == "Nothing was sent.\n"
    run = failed()
    tell()
    send()
    listed = manage("notifications", "list", "--run", str(run)).out.splitlines()
    assert listed[0].split() == ["DELIVERY", "RUN", "KIND", "TO", "STATUS", "TRIES", "ERROR"]
    assert len(listed) == 3
    assert "t0ps3cret" not in manage("notifications", "list", "--json").out
    rows = json.loads(manage("notifications", "list", "--to", "ops", "--status", "delivered", "--json").out)
    assert [(row["run"], row["person"], row["attempts"]) for row in rows] == [(run, "ops", 1)]
    assert manage("notifications", "list", "--workflow", "pay").out == "Nothing was sent.\n"

    again = manage("notifications", "replay", str(rows[0]["delivery"]), "--json")
    assert (again.code, json.loads(again.out)["delivery"]) == (0, Delivery.objects.latest("pk").pk)
    assert manage("notifications", "replay", str(rows[0]["delivery"])).code == 1
    assert manage("notifications", "replay", "99999").code == 2
    send()

    assert manage("notifications", "test", "--to", "ops").out == "sent to ops@example.com\n"
    assert mailbox.messages[-1]["Subject"] == "[Waypost] A test"
    assert manage("notifications", "test", "--webhook", str(news.pk)).code == 0
    assert json.loads(hooks.asked[-1].body)["type"] == "test"
    hooks.answers("/news", "", 404)
    refused = manage("notifications", "test", "--webhook", str(news.pk))
    assert (refused.code, refused.err) == (
        1,
        f"error: not sent to {hooks.address}/news?…: The answer was 404, not 2xx.\n",
    )
    assert [
        manage("notifications", "test", *words).code
        for words in (["--to", "kim"], ["--to", "eve"], ["--webhook", "9999"])
    ] == [2, 2, 2]
    assert len(told()) == 3, "tests are written nowhere"
    assert actor("ops").name == "ops"
