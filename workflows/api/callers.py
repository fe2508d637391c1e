"""Callers: people by their session, programs by a key; and which scope an operation asks of a key."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest
from django.utils import timezone
from ninja.utils import check_csrf

from workflows.errors import Refusal
from workflows.models.api_key import KeyScope
from workflows.operations.api_keys import Caller, allotment, caller_of_key
from workflows.operations.people import user_actor

SAFE = ("GET", "HEAD", "OPTIONS")


class Needs:
    """The door of an operation: finds out who calls, and refuses a key without the scope.

    Without a scope it is ``read`` for what only looks, and ``operate`` for the rest. Raises
    ``request.unauthenticated``, ``request.csrf``, ``request.too_many``, ``key.scope``.
    """

    def __init__(self, scope: str = "") -> None:
        if scope and scope not in KeyScope.values:
            raise ValueError(f"There is no scope {scope}.")
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        caller = identify(request)
        scope = self.scope or ("read" if request.method in SAFE else "operate")
        if caller.scopes is not None and scope not in caller.scopes:
            raise Refusal("key.scope", key=f"Key {caller.key.name}" if caller.key else "This key", scope=scope)
        return caller


def identify(request: HttpRequest) -> Caller:
    """Who calls. A request that brings a key is never taken for the person of a session beside it."""
    given = request.headers.get("Authorization", "")
    if given:
        scheme, _, text = given.partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal("request.unauthenticated", reason="The header Authorization does not begin with Bearer.")
        now = timezone.now()
        caller = caller_of_key(text.strip(), now=now)
        if caller.key is not None:
            allotment.spend(caller.key, now=now)
        return caller
    if not request.user.is_authenticated:
        raise Refusal("request.unauthenticated", reason="Nobody is logged in, and there is no key.")
    if request.method not in SAFE and check_csrf(request) is not None:
        raise Refusal("request.csrf")
    return Caller(actor=user_actor(request.user), user=cast(Any, request.user))


def caller_of(request: HttpRequest) -> Caller:
    """Who calls, as its door found out."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]  # ninja sets it
