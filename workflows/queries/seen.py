"""What a person may see of a run and its workflow, as documents: hidden ones look as if they did not exist, and values
of sensitive steps are left out (promise WEB.2)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from workflows.definitions.compiler import compiled
from workflows.errors import Refusal
from workflows.jsonvalue import clean_text
from workflows.models import Run, Workflow
from workflows.queries.history import state_at
from workflows.queries.runs import run_document
from workflows.queries.visible import hidden_workflows, seen_runs

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser

SEE_SENSITIVE = "workflows.view_sensitive"


def seen_run(run_id: int, user: AbstractUser | AnonymousUser) -> Run:
    """The row of a run. Raises ``run.not_found``, also for what this person may not see."""
    rows = Run.objects.visible_to(user).select_related("workflow", "plan")
    run: Run | None = rows.defer("plan__document", "plan__source").filter(pk=run_id).first()
    if run is None:
        raise Refusal("run.not_found", run=run_id)
    return run


def seen_workflow(name: str, user: AbstractUser | AnonymousUser) -> Workflow:
    """The row of a workflow. Raises ``workflow.not_found``, also for what this person may not see."""
    workflow: Workflow | None = None
    if "\0" not in name:  # PostgreSQL takes no such text, not even to look for it
        rows = Workflow.objects.visible_to(user).select_related("current")
        workflow = rows.defer("current__document", "current__source").filter(name=name).first()
    if workflow is None:
        raise Refusal("workflow.not_found", name=clean_text(name)[0])
    return workflow


def seen_document(run_id: int, user: AbstractUser | AnonymousUser) -> dict[str, Any]:
    """The document of a run (``runs.run_document``), for who may see it."""
    run = seen_run(run_id, user)
    return _without_hidden(run, _without_hidden_runs(run_document(run_id), user), user)


def seen_state(run_id: int, revision: int, user: AbstractUser | AnonymousUser) -> dict[str, Any]:
    """The state of a run at a revision (``history.state_at``), for who may see it."""
    run = seen_run(run_id, user)
    return _without_hidden(run, state_at(run_id, revision), user)


def _without_hidden(run: Run, document: dict[str, Any], user: AbstractUser | AnonymousUser) -> dict[str, Any]:
    """``hidden`` names the steps whose outputs were left out."""
    hidden = set() if user.has_perm(SEE_SENSITIVE) else sensitive_steps(run)
    for visit in document["visits"]:
        if visit["step"] in hidden:
            visit["output"] = None
    return document | {"hidden": sorted({visit["step"] for visit in document["visits"]} & hidden)}


def _without_hidden_runs(document: dict[str, Any], user: AbstractUser | AnonymousUser) -> dict[str, Any]:
    """Runs of workflows that this person may not see are not named: neither relatives nor who holds a place."""
    if not hidden_workflows(user):
        return document
    reasons, origin = document["reasons"], document["fork_of"]
    named = {*document["children"], *(fork["run"] for fork in document["forks"])}
    named |= {number for reason in reasons for number in (*reason.get("holders", ()), reason.get("child"))}
    named |= {origin["run"]} if origin is not None else set()
    seen = set(seen_runs(user).filter(pk__in=named - {None}).values_list("pk", flat=True))
    return document | {
        "children": [number for number in document["children"] if number in seen],
        "forks": [fork for fork in document["forks"] if fork["run"] in seen],
        "fork_of": origin if origin is None or origin["run"] in seen else origin | {"run": None},
        "reasons": [_seen_reason(reason, seen) for reason in reasons],
    }


def _seen_reason(reason: dict[str, Any], seen: Collection[int]) -> dict[str, Any]:
    told = dict(reason)
    if "holders" in told:
        told["holders"] = [number for number in told["holders"] if number in seen]
    if "child" in told and told["child"] not in seen:
        del told["child"], told["child_status"]
    return told


def sensitive_steps(run: Run) -> set[str]:
    """The steps of a run that are marked as sensitive; none when its plan cannot be read (PLAN.2)."""
    try:
        plan = compiled(run.plan.hash, run.plan.document)
    except Refusal:
        return set()
    return {step.id for step in plan.steps.values() if step.sensitive}
