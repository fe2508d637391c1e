"""Access: who may do what, and to what (promise WEB.2).

Every operation that changes something calls ``require`` first. The operator's shell may do everything; users need the
permission of the action and have to see the workflow it is about (docs/people.md).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils import timezone

from workflows.errors import Refusal
from workflows.ledger.auditing import audit
from workflows.models import Run, Workflow
from workflows.operations.people import Actor

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

_APP = "workflows"


def may(actor: Actor, permission: str) -> bool:
    """Whether an actor has a permission, given by its codename such as ``cancel_run``."""
    words_of(permission)
    return actor.user is None or actor.user.has_perm(f"{_APP}.{permission}")


def sees_run(user: AbstractUser | AnonymousUser, run: int) -> bool:
    """Whether there is such a run and the user may look at it."""
    return user.has_perm(f"{_APP}.view_run") and Run.objects.visible_to(user).filter(pk=run).exists()


def hidden_names(user: AbstractUser | AnonymousUser) -> frozenset[str]:
    """Names of the workflows that a user may not know of."""
    seen = Workflow.objects.visible_to(user).values("pk")
    return frozenset(Workflow.objects.exclude(pk__in=seen).values_list("name", flat=True))


def sees_workflow(user: AbstractUser | AnonymousUser, workflow: str) -> bool:
    """Whether the user may look at a workflow, by its name; one without a row has no access to restrict it."""
    if not user.has_perm(f"{_APP}.view_workflow"):
        return False
    named = Workflow.objects.filter(name=workflow)
    return not named.exists() or named.visible_to(user).exists()


def require(
    actor: Actor, permission: str, *, run: int | None = None, workflow: str | None = None, action: str = ""
) -> None:
    """Refuse an action that the actor may not do. A denied one is audited, in a transaction of its own.

    ``permission`` is a codename of the models (``cancel_run``); ``action`` is how the audit names it, by default made
    of the permission (``run.cancel``). Raises ``run.not_found`` or ``workflow.not_found`` for what a user cannot see,
    whether it is there or not, and ``access.denied``.
    """
    words = words_of(permission)
    user = actor.user
    if user is None:
        return
    refusal = _hidden(user, run, workflow)
    if refusal is None and user.has_perm(f"{_APP}.{permission}"):
        return
    if _exists(run, workflow):
        audit(
            actor=actor.recorded,
            action=action or action_of(permission),
            at=timezone.now(),
            run=run,
            workflow=workflow or "",
            allowed=False,
            data={"permission": permission},
        )
    raise refusal or Refusal("access.denied", actor=actor.name, what=words, permission=permission)


def action_of(permission: str) -> str:
    """How the audit names what a permission is for: ``run.cancel`` for ``cancel_run``."""
    verb, _, noun = permission.rpartition("_")
    return f"{noun}.{verb}"


@cache
def _words() -> dict[str, str]:
    words: dict[str, str] = {}
    for model in apps.get_app_config(_APP).get_models():
        options: Any = model._meta
        for verb in options.default_permissions:
            words[f"{verb}_{options.model_name}"] = f"{verb} {options.verbose_name_plural}"
        words |= {codename: name.removeprefix("Can ") for codename, name in options.permissions}
    return words


def words_of(permission: str) -> str:
    """What a permission allows, in words: ``cancel runs``. KeyError: there is none of this codename."""
    return _words()[permission]


def _hidden(user: AbstractUser | AnonymousUser, run: int | None, workflow: str | None) -> Refusal | None:
    if run is not None and not sees_run(user, run):
        return Refusal("run.not_found", run=run)
    if workflow is not None and not sees_workflow(user, workflow):
        return Refusal("workflow.not_found", name=workflow)
    return None


def _exists(run: int | None, workflow: str | None) -> bool:
    """What is not there cannot be denied: only guesses at numbers would fill the audit."""
    if run is not None:
        return bool(Run.objects.filter(pk=run).exists())
    return workflow is None or bool(Workflow.objects.filter(name=workflow).exists())
