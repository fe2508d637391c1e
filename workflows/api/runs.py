"""Runs: started, listed, shown, as they were at a revision, exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Field, Query, Router, Schema
from pydantic import ConfigDict

from workflows.api.callers import Needs, caller_of
from workflows.api.looking import about_run, looker
from workflows.api.problems import document
from workflows.api.shapes import (
    MOST_ID,
    Given,
    RunDocument,
    RunList,
    RunNumber,
    RunState,
    VersionNumber,
    Warned,
)
from workflows.errors import Refusal
from workflows.models import RunFilter
from workflows.operations.access import sees_workflow
from workflows.operations.api_keys import Caller
from workflows.operations.exporting import export_run
from workflows.operations.runs import Start, start
from workflows.operations.versions import version_definition
from workflows.operations.workflows import Definition, named_definition
from workflows.queries.run_list import PAGE, RunRow, run_page
from workflows.queries.runs import moment_text
from workflows.queries.seen import seen_document, seen_state, seen_workflow
from workflows.statuses import LIVE_STATUSES, RunStatus, WaitsFor

router = Router(tags=["runs"])

_GROUPS = {
    "live": [status.value for status in RunStatus if status in LIVE_STATUSES],
    "ended": [status.value for status in RunStatus if status not in LIVE_STATUSES],
}
_STATUSES = {status: [status] for status in RunStatus.values} | _GROUPS
Id = Annotated[int, Field(ge=0, le=MOST_ID)]
Text = Annotated[str, Field(max_length=200)]


class Wanted(Schema):
    """The filters of the list on the pages, by the same names."""

    model_config = ConfigDict(extra="forbid")

    workflow: Text | None = None
    status: list[str] = Field(
        default_factory=list, description="A status, `live` or `ended`; several are any of them.", max_length=20
    )
    by: Text | None = Field(None, description="Who started it.")
    text: Text | None = Field(None, description="A part of the title, or a number.")
    key: Text | None = Field(None, description="The concurrency key.")
    error: Text | None = Field(None, description="The code of the error that ended it.")
    waits_for: WaitsFor | None = None
    stalled: bool = Field(False, description="Could go on, and no worker drives it.")
    parent: Id | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    ended_from: datetime | None = None
    ended_to: datetime | None = None
    before: Id | None = Field(None, description="Runs with smaller numbers: the next page.")
    after: Id | None = Field(None, description="Runs with larger numbers: the page before.")
    limit: int = Field(PAGE, ge=1, le=200)


class NewRun(Given):
    """A wish to start a run. The same key with the same parameters and version is the same run."""

    workflow: str = Field(min_length=1, max_length=63)
    params: dict[str, Any] = Field(default_factory=dict)
    key: str | None = Field(None, description="Idempotency key, unique within the workflow.", min_length=1)
    title: str = ""
    version: VersionNumber | None = Field(None, description="A published version; the current one if left out.")
    priority: int = Field(0, ge=-100, le=100)
    over_limit: str | None = Field(None, description="Why to start beside a full concurrency key.")
    start_at: datetime | None = Field(None, description="Nobody drives the run before; with a time zone.")


class Started(Schema):
    run: int
    created: bool = Field(description="false: the key named a run that was there.")
    queued: bool = Field(description="It waits in line for a slot of its concurrency key.")
    warnings: list[Warned]


@router.get("", auth=Needs("read"), response=RunList)
def list_runs(request: HttpRequest, wanted: Query[Wanted]) -> HttpResponse:
    """Runs that you may see, the newest first; by number from page to page, so that none is missed or shown twice."""
    caller = looker(request)
    page = run_page(_filter(wanted), caller.user, limit=wanted.limit)
    return document({"runs": [_row(row) for row in page.rows], "older": page.older, "newer": page.newer})


@router.post("", auth=Needs("start"), response={200: Started, 201: Started})
def start_run(request: HttpRequest, body: NewRun) -> HttpResponse:
    """Start a run: 201, or 200 with the run that was started with this key before."""
    caller = caller_of(request)
    started = start(
        Start(
            definition=_definition(caller, body),
            actor=caller.actor,
            given=body.params,
            title=body.title,
            key=body.key,
            origin="api",
            over_limit=body.over_limit or None,
            priority=body.priority,
            start_at=body.start_at,
        )
    )
    told = {
        "run": started.run_id,
        "created": started.created,
        "queued": started.queued,
        "warnings": [one.as_json() for one in started.warnings],
    }
    return document(told, status=201 if started.created else 200)


@router.get("/{run}", auth=Needs("read"), response=RunDocument)
def show_run(request: HttpRequest, run: RunNumber) -> HttpResponse:
    """Everything about a run."""
    return document(seen_document(run, looker(request).user))


@router.get("/{run}/revisions/{revision}", auth=Needs("read"), response=RunState)
def show_revision(request: HttpRequest, run: RunNumber, revision: VersionNumber) -> HttpResponse:
    """The run as it was once a revision was committed."""
    return document(seen_state(run, revision, looker(request).user))


@router.post("/{run}/export", auth=Needs("operate"), response=dict[str, Any])
def export(request: HttpRequest, run: RunNumber, with_children: bool = False) -> HttpResponseBase:
    """The run with its history, plans and values as one document, for an archive or `runs import`. It is audited."""
    caller = about_run(request, run)
    pieces = export_run(run, actor=caller.actor, with_children=with_children)
    response = StreamingHttpResponse(pieces, content_type="application/json")
    response.headers["Content-Disposition"] = f'attachment; filename="run-{run}.json"'
    return response


def _definition(caller: Caller, body: NewRun) -> Definition:
    """Raises ``workflow.not_found`` in the same words for what is not there and for what may not be seen."""
    if not sees_workflow(caller.user, body.workflow):
        raise Refusal("workflow.not_found", name=body.workflow)
    if body.version is not None:
        return version_definition(seen_workflow(body.workflow, caller.user), body.version)
    try:
        return named_definition(body.workflow, viewer=caller.user)
    except Refusal as refusal:
        if refusal.code != "workflow.not_found":
            raise
        raise Refusal("workflow.not_found", name=body.workflow) from None


def _filter(wanted: Wanted) -> RunFilter:
    statuses: list[str] = []
    for word in wanted.status:
        if word not in _STATUSES:
            advice = f"Statuses: {', '.join(_STATUSES)}."
            raise Refusal("input.invalid", reason=f'query.status: "{word[:40]}" is no status.', advice=advice)
        statuses += _STATUSES[word]
    return RunFilter(
        workflow=wanted.workflow,
        statuses=tuple(dict.fromkeys(statuses)),
        started_by=wanted.by,
        text=wanted.text,
        concurrency_key=wanted.key,
        parent=wanted.parent,
        waits_for=wanted.waits_for,
        is_stalled=wanted.stalled,
        error_code=wanted.error,
        created_from=_moment(wanted.created_from),
        created_to=_moment(wanted.created_to),
        ended_from=_moment(wanted.ended_from),
        ended_to=_moment(wanted.ended_to),
        before=wanted.before,
        after=wanted.after,
    )


def _moment(value: datetime | None) -> datetime | None:
    """Without a zone it is in the time zone of the site, as on the pages."""
    if value is None:
        return None
    try:
        aware = timezone.make_aware(value) if timezone.is_naive(value) else value
        return aware.astimezone(timezone.get_default_timezone())
    except (OverflowError, ValueError):
        raise Refusal("input.invalid", reason="query: a moment is too far away.") from None


def _row(row: RunRow) -> Mapping[str, Any]:
    told = asdict(row)
    del told["workflow_title"], told["took"]
    moments = {name: moment_text(told[name]) for name in ("created_at", "started_at", "ended_at")}
    return {"run": told.pop("number"), **told, **moments, "causes": list(row.causes)}
