"""A worker as it is: it finds what happened, and writes to people and programs (promises NOTE)."""

from __future__ import annotations

import pytest

from tests.notifications.conftest import SECRET
from tests.notifications.mail import Mailbox
from tests.notifications.worlds import asking, failed, hook, known, person
from tests.processes import Processes
from tests.support.http_server import Server
from workflows.models import Delivery, Notification

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_workers_tell_everything_once(mailbox: Mailbox, hooks: Server, processes: Processes) -> None:
    """NOTE.1, NOTE.2: what happened before they came, too."""
    known("deploy")
    hook(f"{hooks.address}/news")
    person("ada", "approver"), person("ops", "operator")
    question, failure = asking().run_id, failed()
    environment = {
        "EMAIL_URL": f"smtp://127.0.0.1:{mailbox.port}",
        "WAYPOST_BASE_URL": "https://waypost.example",
        "WAYPOST_SECRET_HOOK": SECRET,
        "WAYPOST_WEBHOOK_NETWORKS": "127.0.0.0/8",
    }
    workers = [processes.start("run_worker", env=environment) for _ in range(2)]
    assert hooks.arrived.wait(60)
    while len(mailbox.messages) < 2:
        mailbox.arrived.clear()
        assert len(mailbox.messages) == 2 or mailbox.arrived.wait(60)
    for worker in workers:
        assert "drives" in worker.stdout.readline()  # before that a signal would end it at once
        worker.terminate()
        assert worker.wait(timeout=60) == 0
    subjects = sorted(message["Subject"] for message in mailbox.messages)
    assert subjects == [f"[Waypost] deploy #{failure} failed", f"[Waypost] pay #{question} waits for an approval"]
    assert len(hooks.asked) == 1
    assert Notification.objects.count() == 2
    assert Delivery.objects.count() == 3
