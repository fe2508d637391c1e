"""Looks: whether somebody may look at runs or workflows at all."""

from __future__ import annotations

from django.http import HttpRequest

from workflows.api.callers import caller_of
from workflows.errors import Refusal
from workflows.operations.access import words_of
from workflows.operations.api_keys import Caller
from workflows.queries.seen import seen_run

RUNS, WORKFLOWS = "view_run", "view_workflow"


def looker(request: HttpRequest, permission: str = RUNS) -> Caller:
    """Who looks. Raises ``access.denied``; a denied look is not audited, as on the pages."""
    caller = caller_of(request)
    if not caller.user.has_perm(f"workflows.{permission}"):
        raise Refusal("access.denied", actor=caller.actor.name, what=words_of(permission), permission=permission)
    return caller


def about_run(request: HttpRequest, run: int) -> Caller:
    """Who acts on a run: somebody who may see it. Raises ``access.denied``, ``run.not_found``."""
    caller = looker(request)
    seen_run(run, caller.user)
    return caller
