"""Webhooks: a signed request to an address that a team has chosen, as Standard Webhooks describes them
(https://www.standardwebhooks.com).

Headers ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``: ``v1,`` and the Base64 of HMAC-SHA256 over
``id.timestamp.body``, by a key that is a secret of the server (``whsec_`` and Base64). Redirects are not followed, the
body of the response is not read, and only public network addresses are connected to unless a setting allows more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from workflows.conf import conf
from workflows.engine.secrets import SecretMissing, read_secret
from workflows.errors import Refusal
from workflows.ledger.notifying import Outcome
from workflows.models import Webhook
from workflows.statuses import DeliveryStatus
from workflows.steps.http_body import retry_after_ms
from workflows.steps.http_messages import Answer, Header, NoAnswer, Request

#: How long one request may take in all, in seconds.
MOST_SECONDS = 20.0
MOST_URL = 2_000
_PREFIX = "whsec_"
#: Bytes of a key, as Standard Webhooks has it.
_KEY_LENGTHS = range(24, 65)
_HIGHEST_PORT = 65_535
#: IPv6 networks whose addresses carry one of IPv4, which may be private (NAT64, 6to4, compatible, translated), and the
#: site-local ones: Python takes them for public.
_CARRYING = tuple(
    ip_network(one) for one in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "::ffff:0:0:0/96", "fec0::/10")
)


class UnusableSecret(ValueError):
    """The value of a secret is no key; the message says why and never holds it."""


def post(webhook: Webhook, *, message_id: str, document: Mapping[str, Any]) -> Outcome:
    """Send a document to a webhook. Statuses 2xx are success, 410 ends the tries, everything else is tried again."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    try:
        key = key_of(read_secret(webhook.secret))
    except (SecretMissing, UnusableSecret) as error:
        return Outcome(status=DeliveryStatus.WAITING, error=str(error))
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Waypost",
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": signature(key, message_id, stamp, body),
    }
    request = Request(
        method="POST",
        address=webhook.url,
        headers=tuple(Header(name=name, value=value.encode()) for name, value in headers.items()),
        content=body,
        expected=frozenset(range(300, 400)),
        body_limit=0,
        permits=is_permitted,
    )
    from workflows.steps.http_client import send  # slow to import

    try:
        answer = send(
            request,
            stop=threading.Event(),
            stop_reason=lambda: None,
            deadline=time.monotonic() + MOST_SECONDS,
            log=[],
        )
    except NoAnswer as error:
        why = f"No answer within {MOST_SECONDS:.0f} s." if error.stopped else str(error)
        return Outcome(status=DeliveryStatus.WAITING, error=why)
    return _judged(answer)


def _judged(answer: Answer) -> Outcome:
    code = answer.status
    if HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES:
        return Outcome(status=DeliveryStatus.DELIVERED, response_code=code)
    if code == HTTPStatus.GONE:
        return Outcome(status=DeliveryStatus.GIVEN_UP, response_code=code, error="The address is gone for good (410).")
    pause_ms = retry_after_ms(answer.headers.get("retry-after"), answer.headers.get("date")) or 0
    return Outcome(
        status=DeliveryStatus.WAITING, response_code=code, due_ms=pause_ms, error=f"The answer was {code}, not 2xx."
    )


def signature(key: bytes, message_id: str, stamp: str, body: bytes) -> str:
    """
    >>> key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    >>> signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = hmac.new(key, f"{message_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def key_of(secret: str) -> bytes:
    """The key in ``whsec_…``. Raises :class:`UnusableSecret`."""
    if not secret.startswith(_PREFIX):
        raise UnusableSecret(f'The secret must begin with "{_PREFIX}".')
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise UnusableSecret(f'After "{_PREFIX}" the secret must be Base64.') from None
    if len(key) not in _KEY_LENGTHS:
        raise UnusableSecret(f"The key has {len(key)} bytes; it must have {_KEY_LENGTHS[0]} to {_KEY_LENGTHS[-1]}.")
    return key


def is_permitted(address: str) -> bool:
    """Whether webhooks may go to a network address: a public one, or one of the networks of the settings."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in network for network in conf().webhook_networks):
        return True
    return found.is_global and not found.is_multicast and not any(found in network for network in _CARRYING)


def checked_url(url: str) -> str:
    """An address that webhooks may have. Raises ``input.invalid``."""
    fault = _fault(url)
    if fault:
        advice = (
            "Such as https://example.com/hooks/waypost. `WAYPOST_WEBHOOK_NETWORKS` names private networks that may be."
        )
        raise Refusal("input.invalid", reason=f"The address of a webhook {fault}.", advice=advice)
    return url


def _fault(url: str) -> str:
    if len(url) > MOST_URL:
        return f"has at most {MOST_URL:,} characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "cannot be read"
    if not url.isascii() or any(char <= " " or char in '"<>\\^`{|}\x7f' for char in url):
        return "holds plain letters, digits and signs only"
    if parts.scheme not in ("http", "https") or not host:
        return "begins with https:// or http:// and a host"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "has neither a user name nor a fragment"
    if port is not None and not 0 < port <= _HIGHEST_PORT:
        return "has no such port"
    try:
        return "" if is_permitted(host) else "must not be an address of a private network"
    except ValueError:
        return ""  # a name: its network address is looked at when something is sent
