"""Keys of programs: a person makes them for programs that act in their name (promises KEY).

A key is ``wp_<id>_<secret>``; the secret has 256 bits and only its SHA-256 is stored. What a key may do is what its
owner may do, and of that only what its scopes name.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from workflows.conf import conf
from workflows.errors import Refusal
from workflows.jsonvalue import clean_text
from workflows.ledger import api_keys as ledger
from workflows.models import ApiKey
from workflows.models.api_key import KeyScope
from workflows.operations.access import require
from workflows.operations.people import Actor, user_actor

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

MAKE, REVOKE = "add_apikey", "revoke_apikey"
MOST_NAME = 80
USUAL_DAYS = 90
MOST_DAYS = 3_650
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)
_KEY = re.compile(r"wp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKey:
    """``text`` is the key itself: it is shown once and kept nowhere."""

    key: ApiKey
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls: a person, or a key in the name of one. ``scopes`` None: everything that the person may do."""

    actor: Actor
    user: AbstractUser
    key: ApiKey | None = None
    scopes: frozenset[str] | None = None


def create(
    *, owner: str, name: str, scopes: Sequence[str], days: int | None = USUAL_DAYS, actor: Actor, now: datetime
) -> MadeKey:
    """Make a key for ``owner``, good for so many days; None: until it is revoked.

    A person makes keys for themselves only. Raises ``access.denied``, ``user.not_found``, ``key.invalid``.
    """
    require(actor, MAKE, action="apikey.create")
    user = get_user_model()._default_manager.filter(username=owner, is_active=True).first()
    if actor.user is not None and actor.user.get_username() != owner:
        raise Refusal("access.denied", actor=actor.name, what=f"make a key for {owner}", permission=MAKE)
    if user is None:
        raise Refusal("user.not_found", user=owner)
    wanted = _checked(name, scopes, days)
    public_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    key = ledger.make_key(
        ledger.NewKey(
            public_id=public_id,
            secret_hash=_hash(secret),
            owner_id=user.pk,
            owner=owner,
            name=name.strip(),
            scopes=wanted,
            expires_at=None if days is None else now + timedelta(days=days),
            actor=actor.recorded,
            now=now,
        )
    )
    return MadeKey(key=key, text=f"wp_{public_id}_{secret}")


def _checked(name: str, scopes: Sequence[str], days: int | None) -> list[str]:
    """The scopes in their order, each once."""
    text = name.strip()
    if not (0 < len(text) <= MOST_NAME and text.isprintable()):
        raise Refusal("key.invalid", reason=f"A key has a name of 1 to {MOST_NAME} printable characters.")
    unknown = [scope for scope in scopes if scope not in KeyScope.values]
    if unknown or not scopes:
        what = f'There is no scope "{unknown[0][:40]}".' if unknown else "A key needs at least one scope."
        raise Refusal("key.invalid", reason=f"{what} Scopes: {', '.join(KeyScope.values)}.")
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise Refusal("key.invalid", reason=f"A key is good for 1 to {MOST_DAYS} days.")
    return [scope for scope in KeyScope.values if scope in scopes]


def revoke(public_id: str, *, actor: Actor, now: datetime) -> bool:
    """End a key for ever: one's own, or any for who may. False when it was revoked already.

    Raises ``key.not_found``, ``access.denied``.
    """
    key = None
    if _ID.fullmatch(public_id):
        key = ApiKey.objects.select_related("owner").filter(public_id=public_id).first()
    if key is None:
        raise Refusal("key.not_found", key=clean_text(public_id[:40])[0])
    is_own = actor.user is not None and actor.user.pk == key.owner_id
    if not is_own:
        require(actor, REVOKE, action="apikey.revoke")
    return ledger.revoke_key(public_id=public_id, actor=actor.recorded, now=now)


def caller_of_key(text: str, *, now: datetime) -> Caller:
    """Who calls with this key. Raises ``request.unauthenticated``, with the same words whatever is wrong with it."""
    match = _KEY.fullmatch(text)
    key = None
    if match is not None:
        key = ApiKey.objects.select_related("owner").filter(public_id=match[1]).first()
    if key is None or match is None or not hmac.compare_digest(key.secret_hash, _hash(match[2])):
        raise Refusal("request.unauthenticated", reason="This key is not known.")
    is_over = key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now)
    if is_over or not key.owner.is_active:
        raise Refusal("request.unauthenticated", reason="This key is no longer good.")
    return Caller(
        actor=user_actor(key.owner, through=f"key {key.name}"),
        user=key.owner,
        key=key,
        scopes=frozenset(json.loads(key.scopes)),
    )


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


# ---- how often a key may call ----------------------------------------------------------------------------------------


class Allotment:
    """The requests that this process may still let through, by key. They are taken from the minute's limit by the
    handful, so that most requests write nothing, and all processes together stay within the limit."""

    def __init__(self) -> None:
        self._left: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def spend(self, key: ApiKey, *, now: datetime) -> None:
        """Count one request. Raises ``request.too_many`` when the minute's requests are used up."""
        second = int(now.timestamp())
        minute = second // _MINUTE_S
        if self._take_own(key.pk, minute):
            return
        limit = conf().api_requests_per_minute
        for count in dict.fromkeys((max(limit // 20, 1), 1)):
            if self._asked(key.pk, count, limit, minute, now):
                with self._lock:
                    before = self._left.get(key.pk, (minute, 0))
                    left = before[1] if before[0] == minute else 0
                    self._left[key.pk] = (minute, left + count - 1)
                return
        wait = (minute + 1) * _MINUTE_S - second
        raise Refusal("request.too_many", limit=limit, wait=wait)

    def _take_own(self, key_id: int, minute: int) -> bool:
        with self._lock:
            of_minute, left = self._left.get(key_id, (minute, 0))
            if of_minute != minute or left == 0:
                return False
            self._left[key_id] = (minute, left - 1)
            return True

    def _asked(self, key_id: int, count: int, limit: int, minute: int, now: datetime) -> bool:
        try:
            return ledger.take_requests(key_id=key_id, count=count, limit=limit, minute=minute, now=now)
        except Refusal as refusal:
            if refusal.code != "store.contended":
                raise
            return True  # who only looks is not kept waiting by writers; an action meets the same lock and is refused

    def forget(self) -> None:
        """As after a start of the process."""
        with self._lock:
            self._left.clear()


allotment = Allotment()
