"""People who look at pages: users with exactly the permissions that a test names."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.test import Client

LOOK = ("view_workflow", "view_run")


def visitor(*permissions: str, name: str = "ann", groups: tuple[str, ...] = (), **more: Any) -> Client:
    """A browser in which a user with these permissions is logged in."""
    user = get_user_model()._default_manager.create_user(username=name, password=None, **more)
    wanted = Permission.objects.filter(content_type__app_label="workflows", codename__in=permissions)
    found = list(wanted)
    assert {one.codename for one in found} == set(permissions)
    user.user_permissions.set(found)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    client = Client()
    client.force_login(user)
    return client
