"""Make and change a schedule: its times, its parameters as fields, and what it does when runs meet or times pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render, resolve_url

from workflows.definitions.plan import Plan
from workflows.definitions.validation.schedules import time_zones
from workflows.errors import Problem, Refusal
from workflows.models import Workflow
from workflows.operations import schedules as operation
from workflows.operations.access import may, words_of
from workflows.operations.schedules import Wish
from workflows.operations.versions import version_definition
from workflows.pages.fields import PREFIX, other_problems
from workflows.pages.guard import FORM, actor, page, visible_workflow
from workflows.pages.schedules import LOOK
from workflows.pages.start_fields import default_texts, start_fields, texts_of, typed_values
from workflows.queries.schedules import ScheduleRow, schedule_of
from workflows.queries.workflow_pages import workflow_page
from workflows.statuses import CatchUp, IfRunning

#: Workflows that a person can choose from.
_MOST_CHOICES = 500
IF_RUNNING = {
    IfRunning.SKIP: "leave the time out",
    IfRunning.QUEUE: "wait for its end; one time waits, further ones are left out",
    IfRunning.CANCEL: "cancel it, and start after its end",
}
CATCH_UP = {
    CatchUp.NONE: "leave them out",
    CatchUp.LAST: "start one run, for the last of them",
    CatchUp.ALL: "start a run for each, one after the other, at most 100",
}
_OWN_FIELDS = frozenset({"cron", "timezone"})


@dataclass(slots=True, kw_only=True)
class Form:
    """A form as it is at the moment. ``texts`` are the fields of the parameters."""

    cron: str = ""
    timezone: str = "UTC"
    title: str = ""
    if_running: str = str(IfRunning.SKIP)
    catch_up: str = str(CatchUp.LAST)
    edition: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    refusal: Refusal | None = None

    def own_problems(self, name: str) -> list[Problem]:
        return [problem for problem in self.problems if problem.path == name]


@page(methods=FORM, needs=LOOK)
def schedule_new(request: HttpRequest) -> HttpResponse:
    """Choose a workflow, then make a schedule of it."""
    if request.method != "POST":
        _refuse_without(request, "add_schedule")
    name = (request.POST if request.method == "POST" else request.GET).get("workflow", "")
    if not name:
        if request.method == "POST":
            raise Refusal("input.invalid", reason="No workflow is chosen.")
        found = workflow_page(request.user, limit=_MOST_CHOICES)
        return render(request, "schedules/choose.html", {"rows": found.rows})
    row = visible_workflow(request, name)
    plan = version_definition(row).plan
    if request.method != "POST":
        return _shown(request, row, plan, Form(cron="0 2 * * *", texts=default_texts(plan.params)))
    form = _posted(request.POST)
    try:
        number = 0 if _is_preview(request) else operation.create(row.name, _wish(plan, form), actor=actor(request))
    except Refusal as refusal:
        return _refused(request, row, plan, form, refusal)
    if not number:
        return _shown(request, row, plan, form)
    messages.success(request, f"Schedule {number} is made.")
    return HttpResponseRedirect(resolve_url("pages:schedule", number))


@page(methods=FORM, needs=LOOK)
def schedule_edit(request: HttpRequest, number: int) -> HttpResponse:
    """Change a schedule that a person made."""
    stored = schedule_of(number, request.user)
    if request.method != "POST":
        _refuse_without(request, "change_schedule")
    if stored.is_removed:
        raise Refusal("schedule.not_found", schedule=number)
    row = visible_workflow(request, stored.workflow)
    plan = version_definition(row).plan
    if request.method != "POST":
        if stored.of_file:
            raise Refusal("schedule.of_file", schedule=number, workflow=stored.workflow)
        return _shown(request, row, plan, _filled(stored, plan), stored)
    form = _posted(request.POST)
    try:
        if _is_preview(request):
            return _shown(request, row, plan, form, stored)
        edition = int(form.edition) if form.edition.isascii() and form.edition.isdigit() else 0
        operation.change(number, _wish(plan, form, stored), edition=edition, actor=actor(request))
    except Refusal as refusal:
        return _refused(request, row, plan, form, refusal, stored)
    messages.success(request, f"Schedule {number} is changed; its runs are yours from now on.")
    return HttpResponseRedirect(resolve_url("pages:schedule", number))


def _refuse_without(request: HttpRequest, permission: str) -> None:
    who = actor(request)
    if not may(who, permission):
        raise Refusal("access.denied", actor=who.name, what=words_of(permission), permission=permission)


def _is_preview(request: HttpRequest) -> bool:
    return request.POST.get("action") == "preview"


def _posted(posted: QueryDict) -> Form:
    return Form(
        cron=posted.get("cron", "").strip(),
        timezone=posted.get("timezone", "").strip(),
        title=posted.get("title", ""),
        if_running=posted.get("if_running", ""),
        catch_up=posted.get("catch_up", ""),
        edition=posted.get("edition", ""),
        texts={name: str(text) for name, text in posted.items() if name.startswith(PREFIX)},
    )


def _filled(stored: ScheduleRow, plan: Plan) -> Form:
    """Sensitive parameters are left empty: they stay what they are unless something is typed."""
    return Form(
        cron=stored.cron,
        timezone=stored.timezone,
        title=stored.title,
        if_running=stored.if_running,
        catch_up=stored.catch_up,
        edition=str(stored.edition),
        texts=texts_of(plan.params, stored.params, hide=True),
    )


def _wish(plan: Plan, form: Form, stored: ScheduleRow | None = None) -> Wish:
    typed = typed_values(plan.params, form.texts)
    given = dict(typed.given)
    for declaration in plan.params if stored is not None else ():
        name = declaration["name"]
        if declaration.get("sensitive") and name not in given and stored is not None and name in stored.params:
            given[name] = stored.params[name]
    return Wish(
        cron=form.cron,
        timezone=form.timezone,
        params=given,
        from_text=typed.from_text,
        if_running=form.if_running,
        catch_up=form.catch_up,
        title=form.title,
    )


def _refused(
    request: HttpRequest, row: Workflow, plan: Plan, form: Form, refusal: Refusal, stored: ScheduleRow | None = None
) -> HttpResponse:
    if refusal.http_status in (403, 404) or refusal.code == "schedule.of_file":
        raise refusal
    if refusal.code == "schedule.invalid":
        form.problems = refusal.problems
    else:
        form.refusal = refusal
    return _shown(request, row, plan, form, stored, status=refusal.http_status)


def _shown(
    request: HttpRequest, row: Workflow, plan: Plan, form: Form, stored: ScheduleRow | None = None, *, status: int = 200
) -> HttpResponse:
    next_times: list[datetime] = []
    if not form.problems:
        form.problems = tuple(operation.timetable_problems(form.cron, form.timezone))
    if not form.own_problems("cron") and not form.own_problems("timezone"):
        next_times = operation.next_times(form.cron, form.timezone)
    others = [one for one in other_problems(plan.params, form.problems) if one.path not in _OWN_FIELDS]
    context = {
        "workflow": row,
        "schedule": stored,
        "form": form,
        "fields": start_fields(plan.params, form.texts, form.problems),
        "problems": others,
        "cron_problems": form.own_problems("cron"),
        "zone_problems": form.own_problems("timezone"),
        "count": len(form.problems) if request.method == "POST" else 0,
        "next_times": next_times,
        "zones": sorted(time_zones()),
        "if_running": [(str(value), words) for value, words in IF_RUNNING.items()],
        "catch_up": [(str(value), words) for value, words in CATCH_UP.items()],
    }
    return render(request, "schedules/form.html", context, status=status)
