"""A mail server and an HTTP server of this machine, and settings that lead to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notifications.mail import Mailbox, receiving
from tests.support.http_server import Server, serving


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with receiving() as found:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_TIMEOUT = 10
        settings.WAYPOST_SENDS_EMAIL = True
        settings.WAYPOST_BASE_URL = "https://waypost.example"
        yield found


@pytest.fixture
def hooks(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        settings.WAYPOST_WEBHOOK_NETWORKS = ["127.0.0.0/8"]
        settings.WAYPOST_BASE_URL = "https://waypost.example"
        monkeypatch.setenv("WAYPOST_SECRET_HOOK", SECRET)
        yield server


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
