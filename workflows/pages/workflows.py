"""Workflows: the list, one of them, its versions and their differences."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from workflows.errors import Refusal
from workflows.models import Workflow
from workflows.operations.access import may
from workflows.operations.versions import (
    PUBLISH,
    library_is_newer,
    publish_library_file,
    unpublished_files,
    version_definition,
)
from workflows.operations.workflows import Definition
from workflows.pages.guard import POST, actor, page, visible_workflow
from workflows.queries.graph import graph_of
from workflows.queries.plan_differences import line_differences, plan_changes
from workflows.queries.plan_tables import parameter_lines, step_lines
from workflows.queries.runs import RunFilter, run_list
from workflows.queries.schedules import schedule_list
from workflows.queries.workflow_pages import (
    about_document,
    groups_that_see,
    live_count,
    run_strips,
    versions_of,
    workflow_page,
)

LOOK = "workflows.view_workflow"
START = "workflows.start_run"
_RUNS_SHOWN = 10
_VERSIONS_SHOWN = 8


@page(needs=LOOK)
def workflow_list(request: HttpRequest) -> HttpResponse:
    """The published workflows with their latest runs, and what the library has beside them."""
    asked = {name: request.GET.get(name, "").strip()[:200] for name in ("text", "tag", "after")}
    found = workflow_page(request.user, text=asked["text"], tag=asked["tag"], after=asked["after"])
    next_page = urlencode({**{name: value for name, value in asked.items() if value}, "after": found.after})
    is_narrowed = bool(asked["text"] or asked["tag"])
    context = {
        "found": found,
        "asked": asked,
        "is_narrowed": is_narrowed,
        "next_page": next_page,
        "shelved": unpublished_files() if not is_narrowed and not asked["after"] else [],
        "may_publish": may(actor(request), PUBLISH),
    }
    return render(request, "workflows/list.html", context)


@page(needs=LOOK)
def workflow(request: HttpRequest, name: str) -> HttpResponse:
    """Everything about one workflow: what it does, what it takes, who may see it, how its runs went."""
    row = visible_workflow(request, name)
    definition, broken = _definition(row)
    strip = run_strips([row.pk]).get(row.pk, ())
    versions = versions_of(row, limit=_VERSIONS_SHOWN + 1)
    context = {
        **_plan_context(definition),
        "workflow": row,
        "broken": broken,
        "bars": strip,
        "live": live_count(row),
        "runs": run_list(RunFilter(workflow=row.name), limit=_RUNS_SHOWN) if _may_see_runs(request) else [],
        "versions": versions[:_VERSIONS_SHOWN],
        "has_more_versions": len(versions) > _VERSIONS_SHOWN,
        "groups": groups_that_see(row),
        "schedules": schedule_list(request.user, workflow=row.name) if _may_see_schedules(request) else [],
        "may_publish": may(actor(request), PUBLISH),
        "is_newer_in_library": library_is_newer(row),
    }
    return render(request, "workflows/detail.html", context)


def _may_see_schedules(request: HttpRequest) -> bool:
    return request.user.has_perm("workflows.view_schedule")


def _may_see_runs(request: HttpRequest) -> bool:
    return request.user.has_perm("workflows.view_run")


def _definition(row: Workflow, version: int | None = None) -> tuple[Definition | None, Refusal | None]:
    """A version, or why there is none that can be shown: never published, or damaged."""
    if version is None and row.current_id is None:
        return None, None
    try:
        return version_definition(row, version), None
    except Refusal as refusal:
        if refusal.code != "plan.corrupt":
            raise
        return None, refusal


def _plan_context(definition: Definition | None) -> dict[str, Any]:
    if definition is None:
        return {"plan": None}
    plan = definition.plan
    return {
        "plan": plan,
        "definition": definition,
        "about": about_document(plan.document),
        "graph": graph_of(plan),
        "steps": step_lines(plan),
        "parameters": parameter_lines(plan.params),
        "concurrency_key": str(plan.concurrency.key.source) if plan.concurrency is not None else "",
    }


@page(needs=LOOK)
def version_list(request: HttpRequest, name: str) -> HttpResponse:
    row = visible_workflow(request, name)
    return render(request, "workflows/versions.html", {"workflow": row, "versions": versions_of(row)})


@page(needs=LOOK)
def version(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """One version as it was published: its picture and its file."""
    row = visible_workflow(request, name)
    definition, broken = _definition(row, number)
    versions = versions_of(row)
    at = next((index for index, one in enumerate(versions) if one.version == number), None)
    if at is None:
        raise Refusal("plan.no_such_version", workflow=name, version=number)
    context = {
        **_plan_context(definition),
        "workflow": row,
        "broken": broken,
        "version": versions[at],
        "older": versions[at + 1] if at + 1 < len(versions) else None,
        "newer": versions[at - 1] if at else None,
        "current": next((one for one in versions if one.is_current), None),
        "may_publish": may(actor(request), PUBLISH),
    }
    return render(request, "workflows/version.html", context)


@page(needs=LOOK)
def source(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The file of a version, byte for byte as it was published."""
    row = visible_workflow(request, name)
    definition = version_definition(row, number)
    response = HttpResponse(definition.source, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{row.name}-{number}.yaml"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@page(needs=LOOK)
def compare(request: HttpRequest, name: str) -> HttpResponse:
    """Two versions side by side: their files line by line, their plans in words."""
    row = visible_workflow(request, name)
    versions = versions_of(row)
    numbers = [one.version for one in versions]
    if not numbers:
        raise Refusal("plan.no_such_version", workflow=name, version="that is published")
    new = _number(request, "to", numbers[0])
    old = _number(request, "from", next((number for number in numbers if number < new), new))
    before, after = version_definition(row, old), version_definition(row, new)
    context = {
        "workflow": row,
        "versions": versions,
        "old": old,
        "new": new,
        "lines": line_differences(before.source, after.source),
        "changes": plan_changes(before.plan.document, after.plan.document),
        "is_same_plan": before.hash == after.hash,
    }
    return render(request, "workflows/compare.html", context)


def _number(request: HttpRequest, name: str, usual: int) -> int:
    text = request.GET.get(name, "")
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Refusal("input.invalid", reason=f'"{text[:40]}" is not the number of a version.', advice="")
    return int(text)


@page(methods=POST, needs=f"workflows.{PUBLISH}")
def publish_from_library(request: HttpRequest, name: str) -> HttpResponse:
    """Make the library file of a name the current version of its workflow."""
    _, stored = publish_library_file(name, actor=actor(request))
    if stored.created:
        messages.success(request, f"Version {stored.version} of {name} is published.")
    else:
        messages.info(request, f"Version {stored.version} of {name} is the same plan; it stays current.")
    return redirect("pages:workflow", name=name)
