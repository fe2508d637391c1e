"""Keys of programs: made, revoked, and how often they are used (promises KEY)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.errors import Refusal
from workflows.ledger.auditing import record_audit
from workflows.ledger.transactions import ledger_transaction
from workflows.models import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key as it is stored. ``owner_id`` is a user; ``actor`` is who makes it, as it is recorded."""

    public_id: str
    secret_hash: str
    owner_id: int
    owner: str
    name: str
    scopes: Sequence[str]
    expires_at: datetime | None
    actor: str
    now: datetime


def _find_lost(new: NewKey) -> ApiKey | None:
    found: ApiKey | None = ApiKey.objects.filter(public_id=new.public_id).first()
    return found


@ledger_transaction(already_mine=_find_lost)
def make_key(new: NewKey) -> ApiKey:
    """Store a key; the audit says who made it, for whom and for what."""
    key: ApiKey = ApiKey.objects.create(
        public_id=new.public_id,
        secret_hash=new.secret_hash,
        owner_id=new.owner_id,
        name=new.name,
        scopes=json.dumps(list(new.scopes)),
        created_at=new.now,
        created_by=new.actor,
        expires_at=new.expires_at,
    )
    told = {"key": new.public_id, "name": new.name, "owner": new.owner, "scopes": list(new.scopes)}
    record_audit(actor=new.actor, action="apikey.create", at=new.now, data=told)
    return key


@ledger_transaction
def revoke_key(*, public_id: str, actor: str, now: datetime) -> bool:
    """End a key for ever; False when that was done before. Loses with ``key.not_found``."""
    key: ApiKey | None = ApiKey.objects.select_related("owner").filter(public_id=public_id).first()
    if key is None:
        raise Refusal("key.not_found", key=public_id)
    if not ApiKey.objects.revoke(key=key, by=actor, now=now):
        return False
    told = {"key": key.public_id, "name": key.name, "owner": key.owner.get_username()}
    record_audit(actor=actor, action="apikey.revoke", at=now, data=told)
    return True


@ledger_transaction
def take_requests(*, key_id: int, count: int, limit: int, minute: int, now: datetime) -> bool:
    """Allot requests of a minute to this process; False when fewer than ``count`` are left of ``limit``."""
    return bool(ApiKey.objects.take(key_id=key_id, count=count, limit=limit, minute=minute, now=now))
