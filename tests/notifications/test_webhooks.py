"""Webhooks: signed, only where they may go, tried again, sent again on request (promises NOTE, WEB.2)."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from typing import Any

import pytest
from django.contrib.auth.models import Group

from tests.notifications.conftest import SECRET
from tests.notifications.test_email import DIES, later
from tests.notifications.worlds import SHELL, actor, asking, failed, hook, known, person, send, tell
from tests.processes import Processes
from tests.support.http_server import Asked, Server
from tests.support.rows import all_rows
from workflows.errors import Refusal
from workflows.models import AuditEntry, Delivery, Webhook, Workflow, WorkflowAccess
from workflows.operations import notifications_sending as sending
from workflows.operations import notifications_webhook as webhooks
from workflows.operations import notifications_wishes as wishes

pytestmark = pytest.mark.django_db(transaction=True)


def one() -> Delivery:
    return Delivery.objects.get()


def verified(asked: Asked, secret: str = SECRET) -> dict[str, Any]:
    """The document of a webhook, its signature checked by another program than the one that made it."""
    stamp = asked.headers["webhook-timestamp"]
    assert abs(int(stamp) - time.time()) < 300
    key = base64.b64decode(secret.removeprefix("whsec_")).hex()
    signed = f"{asked.headers['webhook-id']}.{stamp}.".encode() + asked.body
    words = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key}", "-binary"]
    done = subprocess.run(words, input=signed, capture_output=True, check=True)
    assert asked.headers["webhook-signature"] == f"v1,{base64.b64encode(done.stdout).decode()}"
    document: dict[str, Any] = json.loads(asked.body)
    return document


@pytest.fixture
def news(hooks: Server) -> Webhook:
    known("deploy", "pay")
    return hook(f"{hooks.address}/news?token=t0ps3cret")


def test_a_webhook_is_signed_and_says_what_happened(hooks: Server, news: Webhook) -> None:
    """NOTE.5, NOTE.6"""
    run = failed(title="Friday")
    tell()
    send()
    (asked,) = hooks.asked
    document = verified(asked)
    data = document["data"]
    assert (asked.method, document["type"]) == ("POST", "run.failed")
    assert (data["run"], data["workflow"], data["title"], data["status"]) == (run, "deploy", "Friday", "failed")
    assert data["url"] == f"https://waypost.example/runs/{run}/"
    assert b"hunter2" not in asked.body
    assert asked.headers["webhook-id"] == one().message_id
    assert (one().status, one().response_code) == ("delivered", 200)


def test_a_published_example_of_the_signature() -> None:
    """NOTE.6"""
    key = webhooks.key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = webhooks.signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_hears_of_its_workflow_and_of_what_it_wants(hooks: Server, news: Webhook) -> None:
    """NOTE.4"""
    hook(f"{hooks.address}/pay", "question_asked", workflow="pay")
    run = asking().run_id
    tell()
    send()
    (asked,) = hooks.asked
    data = verified(asked)["data"]
    assert (asked.target, data["question"], data["visit"]) == ("/pay", "approval", 1)
    assert data["url"] == f"https://waypost.example/runs/{run}/questions/1/"
    assert b"7321" not in asked.body


@pytest.mark.parametrize("status", [302, 400, 404, 500, 503])
def test_whatever_is_no_success_is_tried_again(hooks: Server, news: Webhook, status: int) -> None:
    """NOTE.2, NOTE.3, NOTE.6: a redirect is an answer like others."""
    failed()
    tell()
    hooks.answers("/news", "secret words", status, {"Location": f"{hooks.address}/elsewhere"})
    send()
    assert (one().status, one().response_code, one().error) == ("waiting", status, f"The answer was {status}, not 2xx.")
    hooks.answers("/news", "")
    send(later(60_000))
    first, second = hooks.asked
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [asked.target for asked in hooks.asked] == ["/news?token=t0ps3cret"] * 2
    verified(second)
    assert (one().status, one().attempts) == ("delivered", 2)


def test_a_receiver_may_ask_for_a_longer_pause_and_say_that_it_is_gone(hooks: Server, news: Webhook) -> None:
    """NOTE.3"""
    failed()
    tell()
    hooks.answers("/news", "", 429, {"Retry-After": "3600"})
    send()
    assert send(later(3_500_000)) == 0
    hooks.answers("/news", "", 410)
    assert send(later(3_700_000)) == 1
    assert (one().status, one().response_code) == ("given_up", 410)


def test_a_receiver_that_never_answers_is_left(hooks: Server, news: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    """NOTE.3"""
    monkeypatch.setattr(webhooks, "MOST_SECONDS", 0.3)
    failed()
    tell()
    hooks.on("/news", lambda conversation: conversation.wait_until_gone())
    send()
    assert (one().status, one().error) == ("waiting", "No answer within 0 s.")
    assert hooks.gone.wait(10)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, 'Secret "hook" has no value on this server. Set WAYPOST_SECRET_HOOK for the workers.'),
        ("plain", 'The secret must begin with "whsec_".'),
        ("whsec_%%%", 'After "whsec_" the secret must be Base64.'),
        ("whsec_c2hvcnQ=", "The key has 5 bytes; it must have 24 to 64."),
    ],
)
def test_without_a_key_nothing_is_sent(
    hooks: Server, news: Webhook, monkeypatch: pytest.MonkeyPatch, value: str | None, error: str
) -> None:
    """NOTE.6"""
    monkeypatch.delenv("WAYPOST_SECRET_HOOK")
    if value is not None:
        monkeypatch.setenv("WAYPOST_SECRET_HOOK", value)
    failed()
    tell()
    send()
    assert hooks.asked == []
    assert (one().status, one().error) == ("waiting", error)


def test_no_value_of_a_secret_is_stored(hooks: Server, news: Webhook) -> None:
    """NOTE.6"""
    failed()
    tell()
    send()
    told = repr({name: rows for name, rows in all_rows().items() if name != "Webhook"})
    assert SECRET not in repr(all_rows())
    assert "t0ps3cret" not in told, "the query of an address may be one"


def test_private_addresses_are_not_connected_to(hooks: Server, news: Webhook, settings: Any) -> None:
    """NOTE.6: also where a name leads there."""
    settings.WAYPOST_WEBHOOK_NETWORKS = []
    failed()
    tell()
    send()
    assert hooks.asked == []
    assert one().error == "The network address of the host is not public, and nothing allows it."


@pytest.mark.parametrize(
    ("address", "permitted"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:0:10.0.0.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::169.254.169.254", False),
        ("64:ff9b:1::10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("fec0::1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("192.168.7.1", True),
    ],
)
def test_public_addresses_and_networks_of_the_settings_are_permitted(
    settings: Any, address: str, permitted: bool
) -> None:
    """NOTE.6"""
    settings.WAYPOST_WEBHOOK_NETWORKS = ["192.168.7.0/24"]
    assert webhooks.is_permitted(address) == permitted


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://user:word@example.com/",
        "https://example.com/#part",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://example.com/\r\nHost: evil",
        "https://exämple.com/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
        "https://example.com/" + "x" * 2_000,
    ],
)
def test_addresses_that_no_webhook_may_have(url: str) -> None:
    """NOTE.6"""
    known("deploy")
    with pytest.raises(Refusal) as caught:
        hook(url)
    assert caught.value.code == "input.invalid"
    assert not Webhook.objects.exists()


def test_what_is_switched_off_or_removed_is_told_nothing(hooks: Server, news: Webhook) -> None:
    failed()
    tell()
    assert wishes.change_webhook(news.pk, "off", actor=SHELL)
    assert not wishes.change_webhook(news.pk, "off", actor=SHELL)
    send()
    assert (one().status, one().error) == ("dropped", "The webhook is off.")
    failed()
    tell()
    assert Delivery.objects.count() == 1
    assert wishes.change_webhook(news.pk, "on", actor=SHELL)
    assert wishes.change_webhook(news.pk, "remove", actor=SHELL)
    with pytest.raises(Refusal) as caught:
        wishes.change_webhook(news.pk, "on", actor=SHELL)
    assert caught.value.code == "webhook.not_found"
    assert hooks.asked == []
    actions = AuditEntry.objects.order_by("pk").values_list("action", "workflow")
    assert list(actions) == [("webhook.add", "deploy"), *[("webhook.change", "deploy")] * 3]


def test_a_message_is_sent_again_on_request_under_the_same_id(hooks: Server, news: Webhook) -> None:
    """NOTE.2"""
    failed()
    tell()
    with pytest.raises(Refusal) as caught:
        wishes.replay(one().pk, actor=SHELL)
    assert caught.value.code == "delivery.waits"
    send()
    first = one()
    made = wishes.replay(first.pk, actor=SHELL)
    send()
    again = Delivery.objects.get(pk=made)
    assert (again.round, again.message_id, again.status) == (2, first.message_id, "delivered")
    assert [asked.headers["webhook-id"] for asked in hooks.asked] == [first.message_id] * 2
    assert AuditEntry.objects.latest("pk").action == "delivery.replay"
    with pytest.raises(Refusal) as caught:
        wishes.replay(9_999, actor=SHELL)
    assert caught.value.code == "delivery.not_found"


def test_a_worker_that_is_killed_between_sending_and_writing_sends_the_same_again(
    hooks: Server, news: Webhook, processes: Processes
) -> None:
    """NOTE.2"""
    failed()
    tell()
    script = DIES.replace("send_due(None)", f"send_due({news.pk})")
    environment = {"WAYPOST_SECRET_HOOK": SECRET, "WAYPOST_WEBHOOK_NETWORKS": "127.0.0.0/8"}
    assert processes.start_script(script, env=environment).wait(timeout=60) == 9
    assert (one().status, one().attempts) == ("waiting", 1)
    assert send(later(sending.CLAIM_MS + 1)) == 1
    first, second = hooks.asked
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    verified(first), verified(second)
    assert one().status == "delivered"


def test_who_lacks_the_right_changes_nothing_and_is_audited(hooks: Server, news: Webhook) -> None:
    """WEB.2"""
    person("ops", "operator"), person("viv", "viewer"), person("boss", "admin")
    failed()
    tell()
    send()
    delivery = one().pk
    before = {name: rows for name, rows in all_rows().items() if name != "AuditEntry"}
    acts = [
        lambda: wishes.add_webhook(
            "deploy", url="https://a.example/", secret="hook", kinds=["run_failed"], actor=actor("ops")
        ),
        lambda: wishes.change_webhook(news.pk, "off", actor=actor("ops")),
        lambda: wishes.replay(delivery, actor=actor("viv")),
    ]
    for act in acts:
        with pytest.raises(Refusal) as caught:
            act()
        assert caught.value.code == "access.denied"
    assert {name: rows for name, rows in all_rows().items() if name != "AuditEntry"} == before
    denied = AuditEntry.objects.filter(allowed=False).order_by("pk").values_list("actor", "action")
    assert list(denied) == [("ops", "webhook.add"), ("ops", "webhook.change"), ("viv", "delivery.replay")]
    assert wishes.change_webhook(news.pk, "off", actor=actor("boss"))
    assert wishes.replay(delivery, actor=actor("ops"))


def test_webhooks_of_hidden_workflows_are_not_there(hooks: Server, news: Webhook) -> None:
    """WEB.2"""
    person("boss", "admin")
    WorkflowAccess.objects.create(
        workflow=Workflow.objects.get(name="deploy"), group=Group.objects.create(name="others")
    )
    with pytest.raises(Refusal) as caught:
        wishes.change_webhook(news.pk, "off", actor=actor("boss"))
    assert caught.value.code == "workflow.not_found"
    assert Webhook.objects.get().is_on
