"""Verbs of keys in worlds where they have something to do. See ``verbs``."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from django.contrib.auth import get_user_model

from tests.attacks.verbs import Call, attacked
from tests.support.plans import START
from workflows.ledger import api_keys
from workflows.models import ApiKey


def _new() -> api_keys.NewKey:
    user, _ = get_user_model()._default_manager.get_or_create(username="ann")
    return api_keys.NewKey(
        public_id=uuid4().hex[:12],
        secret_hash="0" * 64,
        owner_id=user.pk,
        owner="ann",
        name="ci",
        scopes=["read"],
        expires_at=None,
        actor="ann",
        now=START,
    )


def _key() -> ApiKey:
    return api_keys.make_key(_new())


@attacked(api_keys.make_key)
def make_key() -> Call:
    return partial(api_keys.make_key, _new())


@attacked(api_keys.revoke_key)
def revoke_key() -> Call:
    return partial(api_keys.revoke_key, public_id=_key().public_id, actor="bob", now=START)


@attacked(api_keys.take_requests)
def take_requests() -> Call:
    return partial(api_keys.take_requests, key_id=_key().pk, count=5, limit=60, minute=7, now=START)
