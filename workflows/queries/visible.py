"""Runs that a person sees, in the form that lists need: quick where nothing is hidden, which is usual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workflows.models import Run, Workflow

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

_KEPT = "_waypost_hidden_workflows"


def seen_runs(user: AbstractUser | AnonymousUser) -> Any:
    """The same runs as ``Run.objects.visible_to(user)``. What is hidden is read once for a user object, as Django does
    with permissions; a database asked to check each of many runs against a subquery takes its time."""
    hidden = hidden_workflows(user)
    return Run.objects.exclude(workflow__in=hidden) if hidden else Run.objects.all()


def hidden_workflows(user: Any) -> list[int]:
    """The workflows that a person does not see."""
    if user.is_superuser:
        return []
    if not hasattr(user, _KEPT):
        seen = Workflow.objects.visible_to(user).values("pk")
        setattr(user, _KEPT, list(Workflow.objects.exclude(pk__in=seen).values_list("pk", flat=True)))
    found: list[int] = getattr(user, _KEPT)
    return found
