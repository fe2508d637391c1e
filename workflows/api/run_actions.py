"""What is done to a run: cancel, pause, resume, retry, skip, steer, signal, abandon, reconcile. Always a POST."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Router, Schema

from workflows.api.callers import Needs
from workflows.api.looking import about_run
from workflows.api.shapes import Because, BecauseAtOnce, Given, RunNumber, SentOnce
from workflows.operations import runs as operations
from workflows.operations.driving import carry_out_cancel
from workflows.operations.reconciling import Told, reconcile
from workflows.operations.signals import signal, steer

router = Router(tags=["run actions"])
MOST_VISIT = 2**31 - 1


class Accepted(Schema):
    """``new`` false: the same was asked for before."""

    run: int
    new: bool


class Resumed(Schema):
    run: int
    how: Literal["released", "reopened", "woken", "hurried"]


class AboutVisit(Schema):
    run: int
    visit: int


class Abandoned(Schema):
    run: int
    was: str = Field(description="Its status before.")


class Skip(BecauseAtOnce):
    visit: int | None = Field(None, ge=1, le=MOST_VISIT, description="Needed when several steps wait.")


class Signal(Given):
    name: str = Field(min_length=1)
    payload: Any = None
    request_id: str | None = Field(None, min_length=1, max_length=200)


class Steer(SentOnce):
    text: str = Field(min_length=1)


class Reconcile(BecauseAtOnce):
    """What became of an attempt whose worker died. *happened* with ``error_code``: it failed."""

    decision: Literal["happened", "did_not", "stop"]
    visit: int | None = Field(None, ge=1, le=MOST_VISIT, description="Needed when several steps wait.")
    outcome: str | None = None
    output: Any = None
    error_code: str | None = None
    message: str = ""
    exit_code: int | None = Field(None, ge=-255, le=255)


@router.post("/{run}/cancel", auth=Needs("operate"), response=Accepted)
def cancel_run(request: HttpRequest, run: RunNumber, body: SentOnce) -> Any:
    """Stop what runs, do the closing steps, end as cancelled; child runs too."""
    caller = about_run(request, run)
    is_new = operations.cancel(run, actor=caller.actor, reason=body.reason, request_id=body.request_id)
    if operations.ends_without_steps(run):
        carry_out_cancel(run)
    return {"run": run, "new": is_new}


@router.post("/{run}/pause", auth=Needs("operate"), response=Accepted)
def pause_run(request: HttpRequest, run: RunNumber, body: SentOnce) -> Any:
    """Hold a run: what runs goes on to its end, nothing new starts."""
    caller = about_run(request, run)
    is_new = operations.pause(run, actor=caller.actor, reason=body.reason, request_id=body.request_id)
    return {"run": run, "new": is_new}


@router.post("/{run}/resume", auth=Needs("operate"), response=Resumed)
def resume_run(request: HttpRequest, run: RunNumber, body: Because) -> Any:
    """Lift a hold, or open a failed or abandoned run again at the step that failed."""
    caller = about_run(request, run)
    return {"run": run, "how": operations.resume(run, actor=caller.actor, reason=body.reason)}


@router.post("/{run}/retry", auth=Needs("operate"), response=Resumed)
def retry_run(request: HttpRequest, run: RunNumber, body: Because) -> Any:
    """Try again now what waits for its next attempt, or what failed."""
    caller = about_run(request, run)
    return {"run": run, "how": operations.retry(run, actor=caller.actor, reason=body.reason)}


@router.post("/{run}/skip", auth=Needs("operate"), response=AboutVisit)
def skip_step(request: HttpRequest, run: RunNumber, body: Skip) -> Any:
    """Let a step count as skipped: the one that failed the run, or one that waits."""
    caller = about_run(request, run)
    return {"run": run, "visit": operations.skip(run, actor=caller.actor, reason=body.reason, visit=body.visit)}


@router.post("/{run}/abandon", auth=Needs("operate"), response=Abandoned)
def abandon_run(request: HttpRequest, run: RunNumber, body: BecauseAtOnce) -> Any:
    """End a run at once, also its closing steps; resuming undoes it."""
    caller = about_run(request, run)
    return {"run": run, "was": operations.abandon(run, actor=caller.actor, reason=body.reason).was}


@router.post("/{run}/signal", auth=Needs("start"), response=Accepted)
def signal_run(request: HttpRequest, run: RunNumber, body: Signal) -> Any:
    """Send a signal; it is kept until a step that waits for it takes it."""
    caller = about_run(request, run)
    is_new = signal(run, body.name, body.payload, actor=caller.actor, request_id=body.request_id)
    return {"run": run, "new": is_new}


@router.post("/{run}/steer", auth=Needs("operate"), response=Accepted)
def steer_run(request: HttpRequest, run: RunNumber, body: Steer) -> Any:
    """Tell the next try of a step that takes such words what to do."""
    caller = about_run(request, run)
    accepted = steer(run, body.text, actor=caller.actor, reason=body.reason, request_id=body.request_id)
    return {"run": run, "new": accepted.new}


@router.post("/{run}/reconcile", auth=Needs("operate"), response=AboutVisit)
def reconcile_run(request: HttpRequest, run: RunNumber, body: Reconcile) -> Any:
    """Say what became of a step whose worker died while it ran."""
    caller = about_run(request, run)
    told = Told(**body.model_dump(exclude={"visit"}))
    return {"run": run, "visit": reconcile(run, told, actor=caller.actor, visit=body.visit)}
