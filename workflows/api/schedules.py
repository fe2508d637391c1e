"""Schedules: listed, shown with their next times, made, changed, paused, resumed, removed, started at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Field, Path, Query, Router, Schema

from workflows.api.callers import Needs
from workflows.api.looking import looker
from workflows.api.problems import document
from workflows.api.shapes import MOST_ID, Because, BecauseAtOnce, Document, Given
from workflows.operations import schedules as operations
from workflows.operations.api_keys import Caller
from workflows.operations.schedules import MOST_CRON, MOST_KEY, MOST_TITLE, Wish
from workflows.queries.schedules import (
    MOST_FIRES,
    ScheduleRow,
    fires_of,
    next_of,
    schedule_list,
    schedule_of,
    shown_params,
)
from workflows.queries.seen import seen_workflow

router = Router(tags=["schedules"])
SCHEDULES = "view_schedule"
ScheduleNumber = Annotated[int, Path(ge=1, le=MOST_ID, description="The number of a schedule.")]


class ScheduleShown(Document):
    """A schedule. ``next_at`` null: it is paused, or no time of it ever comes. ``last``: its last time."""

    schedule: int
    workflow: str
    cron: str
    timezone: str
    params: dict[str, Any]
    if_running: str
    catch_up: str
    owner: str
    edition: int = Field(description="Counts its changes; a change names the one it was made from.")
    next_at: str | None
    paused_at: str | None


class ScheduleList(Schema):
    schedules: list[ScheduleShown]


class Terms(Given):
    cron: str = Field(description="Five fields: minute hour day month weekday.", max_length=MOST_CRON)
    timezone: str = Field("UTC", max_length=100)
    params: dict[str, Any] = Field(default_factory=dict, description="The parameters of its runs.")
    if_running: Literal["skip", "queue", "cancel"] = "skip"
    catch_up: Literal["none", "last", "all"] = "last"
    title: str = Field("", max_length=MOST_TITLE)


class NewSchedule(Terms):
    workflow: str = Field(min_length=1, max_length=63)


class ChangedSchedule(Terms):
    edition: int = Field(ge=1, le=2**31 - 1, description="The one that was looked at: a newer one is not lost.")


class Changed(Schema):
    """``changed`` false: it was so already."""

    schedule: int
    changed: bool


class AtOnce(BecauseAtOnce):
    request_id: str | None = Field(None, min_length=1, max_length=MOST_KEY)


class Started(Schema):
    """``created`` false: the same request had started it."""

    schedule: int
    run: int
    created: bool


@router.get("", auth=Needs("read"), response=ScheduleList)
def list_schedules(request: HttpRequest, workflow: Annotated[str, Query(max_length=63)] = "") -> Any:
    """The schedules that you may see, those of one workflow if it is named."""
    caller = looker(request, SCHEDULES)
    if workflow:
        seen_workflow(workflow, caller.user)
    return document({"schedules": [_shown(row) for row in schedule_list(caller.user, workflow=workflow)]})


@router.get("/{schedule}", auth=Needs("read"), response=ScheduleShown)
def show_schedule(
    request: HttpRequest,
    schedule: ScheduleNumber,
    limit: Annotated[int, Query(ge=1, le=200, description="Times that have come.")] = MOST_FIRES,
) -> Any:
    """One schedule with its `next_times`, and `fires`: what became of the times that have come, the latest first."""
    row = schedule_of(schedule, looker(request, SCHEDULES).user)
    times = {"next_times": [at.isoformat() for at in next_of(row)]}
    return document(_shown(row) | times | {"fires": [fire.as_json() for fire in fires_of(row, limit=limit)]})


@router.post("", auth=Needs("schedules"), response={201: ScheduleShown})
def make_schedule(request: HttpRequest, body: NewSchedule) -> Any:
    """Make a schedule of a workflow. Its runs are yours."""
    caller = looker(request, SCHEDULES)
    number = operations.create(body.workflow, _wish(body), actor=caller.actor)
    return document(_shown(schedule_of(number, caller.user)), status=201)


@router.put("/{schedule}", auth=Needs("schedules"), response=ScheduleShown)
def change_schedule(request: HttpRequest, schedule: ScheduleNumber, body: ChangedSchedule) -> Any:
    """Change what a schedule says, unless it stands in a file. Its runs are yours from then on."""
    caller = _about(request, schedule)
    operations.change(schedule, _wish(body), edition=body.edition, actor=caller.actor)
    return document(_shown(schedule_of(schedule, caller.user)))


@router.post("/{schedule}/pause", auth=Needs("schedules"), response=Changed)
def pause_schedule(request: HttpRequest, schedule: ScheduleNumber, body: Because) -> Any:
    """Let no time of it start a run."""
    is_new = operations.pause(schedule, actor=_about(request, schedule).actor, reason=body.reason)
    return {"schedule": schedule, "changed": is_new}


@router.post("/{schedule}/resume", auth=Needs("schedules"), response=Changed)
def resume_schedule(request: HttpRequest, schedule: ScheduleNumber, body: Because) -> Any:
    """Let it go on with its first time from now on."""
    is_new = operations.resume(schedule, actor=_about(request, schedule).actor, reason=body.reason)
    return {"schedule": schedule, "changed": is_new}


@router.post("/{schedule}/run-now", auth=Needs("start"), response=Started)
def run_schedule_now(request: HttpRequest, schedule: ScheduleNumber, body: AtOnce) -> Any:
    """Start a run with its parameters at once, in your name, whatever else runs."""
    started = operations.run_now(
        schedule, actor=_about(request, schedule).actor, reason=body.reason, request_id=body.request_id or ""
    )
    return {"schedule": schedule, "run": started.run_id, "created": started.created}


@router.post("/{schedule}/delete", auth=Needs("schedules"), response=Changed)
def delete_schedule(request: HttpRequest, schedule: ScheduleNumber, body: Because) -> Any:
    """Remove a schedule, unless it stands in a file. Its runs stay."""
    operations.remove(schedule, actor=_about(request, schedule).actor, reason=body.reason)
    return {"schedule": schedule, "changed": True}


def _about(request: HttpRequest, schedule: int) -> Caller:
    caller = looker(request, SCHEDULES)
    schedule_of(schedule, caller.user)
    return caller


def _shown(row: ScheduleRow) -> dict[str, Any]:
    return row.as_json() | {"params": shown_params(row)}


def _wish(body: Terms) -> Wish:
    return Wish(
        cron=body.cron,
        timezone=body.timezone,
        params=body.params,
        if_running=body.if_running,
        catch_up=body.catch_up,
        title=body.title,
    )
