"""Schedules: the list, one with its next times and what became of the others, and what a person does to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url

from workflows.errors import Refusal
from workflows.operations import schedules as operation
from workflows.operations.access import may, words_of
from workflows.operations.people import Actor
from workflows.pages.guard import FORM, actor, page, visible_workflow
from workflows.queries.schedules import (
    MOST_FIRES,
    ScheduleRow,
    fires_of,
    next_of,
    schedule_list,
    schedule_of,
    shown_params,
)

LOOK = "workflows.view_schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What can be done to a schedule. ``explains`` is what will happen; ``said`` and ``was_so`` what did."""

    title: str
    button: str
    explains: str
    permission: str
    said: str
    was_so: str = ""
    needs_reason: bool = False
    is_danger: bool = False


ACTIONS = {
    "pause": Action(
        title="Pause",
        button="Pause",
        explains="No time of it starts a run until somebody resumes it. A time that waits for an earlier run is "
        "dropped; runs that go on are not touched. What passes in the meantime is not made up for.",
        permission="pause_schedule",
        said="is paused",
        was_so="was paused already",
    ),
    "resume": Action(
        title="Resume",
        button="Resume",
        explains="It goes on with its first time from now on. What passed while it was paused is not made up for.",
        permission="pause_schedule",
        said="goes on",
        was_so="was not paused",
    ),
    "run-now": Action(
        title="Run now",
        button="Run now",
        explains="A run is started at once with the parameters of the schedule, in your name, whatever else runs. The "
        "times of the schedule stay as they are.",
        permission="start_run",
        said="",
        needs_reason=True,
    ),
    "delete": Action(
        title="Delete",
        button="Delete",
        explains="It starts no more runs. Its runs, and what became of its times, stay.",
        permission="delete_schedule",
        said="is deleted",
        is_danger=True,
    ),
}


@page(needs=LOOK)
def schedule_index(request: HttpRequest) -> HttpResponse:
    """All schedules that this person sees, those of one workflow with ``?workflow=``."""
    name = request.GET.get("workflow", "")
    if name:
        visible_workflow(request, name)
    context = {
        "schedules": schedule_list(request.user, workflow=name),
        "narrowed_to": name,
        "may_add": may(actor(request), "add_schedule"),
    }
    return render(request, "schedules/list.html", context)


@page(needs=LOOK)
def schedule(request: HttpRequest, number: int) -> HttpResponse:
    row = schedule_of(number, request.user)
    fires = fires_of(row, limit=MOST_FIRES + 1)
    who = actor(request)
    context = {
        "schedule": row,
        "params": shown_params(row),
        "next_times": next_of(row),
        "fires": fires[:MOST_FIRES],
        "has_more": len(fires) > MOST_FIRES,
        "may_pause": may(who, "pause_schedule"),
        "may_change": may(who, "change_schedule"),
        "may_delete": may(who, "delete_schedule"),
        "may_start": may(who, "start_run"),
    }
    return render(request, "schedules/schedule.html", context)


@page(methods=FORM, needs=LOOK)
def schedule_action(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """Ask for an action, or carry it out."""
    row = schedule_of(number, request.user)
    what = ACTIONS.get(verb)
    if what is None or row.is_removed:
        raise Refusal("schedule.not_found", schedule=number)
    if request.method != "POST":
        _refuse_without_permission(request, what)
        return _asked(request, row, what)
    try:
        return _VERBS[verb](request, row, what)
    except Refusal as refusal:
        if refusal.http_status in (403, 404):
            raise
        return _asked(request, row, what, refusal)


def _refuse_without_permission(request: HttpRequest, what: Action) -> None:
    """Who may not do it is not asked for a reason either. A POST is refused, and audited, by the operation."""
    who = actor(request)
    if not may(who, what.permission):
        raise Refusal("access.denied", actor=who.name, what=words_of(what.permission), permission=what.permission)


def _asked(request: HttpRequest, row: ScheduleRow, what: Action, refusal: Refusal | None = None) -> HttpResponse:
    context = {
        "schedule": row,
        "action": what,
        "refusal": refusal,
        "reason": request.POST.get("reason", ""),
        "request_id": request.POST.get("request_id") or uuid.uuid4().hex,
    }
    status = refusal.http_status if refusal is not None else 200
    return render(request, "schedules/action.html", context, status=status)


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").replace("\r\n", "\n")


def _simple(do: Callable[..., bool | None]) -> Callable[[HttpRequest, ScheduleRow, Action], HttpResponse]:
    def carry_out(request: HttpRequest, row: ScheduleRow, what: Action) -> HttpResponse:
        who: Actor = actor(request)
        if do(row.number, actor=who, reason=_reason(request)) is False:
            messages.info(request, f"Schedule {row.number} {what.was_so}.")
        else:
            messages.success(request, f"Schedule {row.number} {what.said}.")
        return HttpResponseRedirect(resolve_url("pages:schedule", row.number))

    return carry_out


def _run_now(request: HttpRequest, row: ScheduleRow, what: Action) -> HttpResponse:
    started = operation.run_now(
        row.number, actor=actor(request), reason=_reason(request), request_id=request.POST.get("request_id", "")
    )
    if not started.created:
        messages.info(request, f"This form had started run {started.run_id} already; no other run was started.")
    return redirect("pages:run", number=started.run_id)


_VERBS = {
    "pause": _simple(operation.pause),
    "resume": _simple(operation.resume),
    "delete": _simple(operation.remove),
    "run-now": _run_now,
}
