"""Forks: a new run that begins at a past revision of another one, and what it would come to."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema

from workflows.api.callers import Needs
from workflows.api.looking import about_run
from workflows.api.problems import document
from workflows.api.shapes import Document, Given, RunNumber, Warned
from workflows.operations.access import require
from workflows.operations.api_keys import Caller
from workflows.operations.forking import ForkWish, fork, preview

router = Router(tags=["forks"])


class Fork(Given):
    """Where a fork begins and what is different in it. Neither ``begin_with`` nor ``at``: the usual point."""

    begin_with: str | None = Field(None, description="A visit (`v12`) or a path.")
    at: int | None = Field(None, ge=1, le=2**31 - 1, description="A revision.")
    params: dict[str, Any] = Field(default_factory=dict, description="Other values of parameters.")
    variables: dict[str, Any] = Field(default_factory=dict)
    outputs: dict[str, Any] = Field(default_factory=dict, description="By visit: `v4`.")
    plan: str | None = Field(None, description="A version, or `current`.")
    child: Literal["take", "new", "fork"] | None = None
    copy_workspace: bool = False
    title: str | None = None
    reason: str = ""
    request_id: str | None = Field(None, min_length=1, max_length=200)


class Forked(Schema):
    run: int
    origin: int
    revision: int
    created: bool
    queued: bool
    warnings: list[Warned]


class ForkShown(Document):
    """What a fork would keep, leave out and do anew."""

    revision: int
    visit: int | None
    version: int | None
    edits: dict[str, Any]
    children: list[int]
    repeated: list[str]
    doubtful: list[str]
    asked_anew: list[str]
    warnings: list[Warned]


@router.post("/{run}/fork", auth=Needs("operate"), response={200: Forked, 201: Forked})
def fork_run(request: HttpRequest, run: RunNumber, body: Fork) -> HttpResponse:
    """Fork a run; it stays as it is. 201, or 200 with the fork that this request id made before."""
    done = fork(_wish(run, body, about_run(request, run)))
    told = {
        "run": done.run_id,
        "origin": run,
        "revision": done.revision,
        "created": done.created,
        "queued": done.queued,
        "warnings": [one.as_json() for one in done.warnings],
    }
    return document(told, status=201 if done.created else 200)


@router.post("/{run}/fork/preview", auth=Needs("operate"), response=ForkShown)
def preview_fork(request: HttpRequest, run: RunNumber, body: Fork) -> HttpResponse:
    """What the fork would keep and do anew. Nothing is written."""
    caller = about_run(request, run)
    require(caller.actor, "fork_run", run=run)
    shown = preview(_wish(run, body, caller))
    told = {
        "revision": shown.revision,
        "visit": shown.visit,
        "version": shown.version,
        "edits": shown.edits,
        "children": shown.children,
        "kept": len(shown.kept),
        "left_out": len(shown.left_out),
        "repeated": shown.repeated,
        "doubtful": shown.doubtful,
        "asked_anew": shown.asked_anew,
        "warnings": [one.as_json() for one in shown.warnings],
    }
    return document(told)


def _wish(run: int, body: Fork, caller: Caller) -> ForkWish:
    return ForkWish(run_id=run, actor=caller.actor, **body.model_dump())
