"""Programs that call the API: with a key of somebody, or as somebody in a browser."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone

from workflows.models.api_key import KeyScope
from workflows.operations import api_keys
from workflows.operations.people import Actor

SHELL = Actor(name="shell:root", recorded="shell:root")


def person(*permissions: str, name: str = "ann", groups: tuple[str, ...] = (), **more: Any) -> Any:
    """A user with exactly these permissions and groups."""
    user = get_user_model()._default_manager.create_user(username=name, password=None, **more)
    found = list(Permission.objects.filter(content_type__app_label="workflows", codename__in=permissions))
    assert {one.codename for one in found} == set(permissions)
    user.user_permissions.set(found)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


def key_of(user: Any, *scopes: str, name: str = "ci", days: int | None = 1) -> str:
    """The text of a new key; without scopes it has all of them."""
    made = api_keys.create(
        owner=user.get_username(),
        name=name,
        scopes=scopes or tuple(KeyScope.values),
        days=days,
        actor=SHELL,
        now=timezone.now(),
    )
    return made.text


class Program:
    """Calls with a key, and reads what comes."""

    def __init__(self, key: str = "") -> None:
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The response; ``body`` is JSON, or text as it is."""
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.client.generic(
            method,
            f"/api/v1{path}",
            text if body is not None else "",
            content_type="application/json",
            query_params=query or None,
            headers=self.headers,
        )

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, **query)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, {} if body is None else body)


def program(*permissions: str, scopes: tuple[str, ...] = (), name: str = "ann", **more: Any) -> Program:
    """A program of a new person."""
    return Program(key_of(person(*permissions, name=name, **more), *scopes))
