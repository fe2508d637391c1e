"""The page of a run and what is behind its tabs. Every address works by itself; htmx only keeps it fresh."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workflows.errors import Refusal
from workflows.pages.guard import page
from workflows.pages.run_context import RunView, context_of, number_in
from workflows.queries.excerpts import excerpts
from workflows.queries.run_events import EVENT_PAGE, event_lines, event_types, last_page_after, messages_of
from workflows.queries.run_steps import SHOWS, step_page
from workflows.queries.visit_page import visit_page


@page()
def run(request: HttpRequest, number: int) -> HttpResponse:
    """What most people want to know, on one page: why, timeline, graph, input and output."""
    view = RunView(request, number)
    return render(request, "runs/run.html", {**context_of(view, "run"), **overview(view)})


def overview(view: RunView) -> dict[str, Any]:
    """Timeline, graph, input and output of a run, and the step that is looked at beside them."""
    context = {**view.timeline(), **view.graph(), **_values(view)}
    panel = number_in(view.request, "panel")
    if panel is None:
        return context
    try:
        return {**context, "panel": visit_of(view, panel), "is_panel": True}
    except Refusal:  # an address with a step that is not there still shows the run
        return context


def _values(view: RunView) -> dict[str, Any]:
    row = view.run
    found = excerpts([row.params_digest, row.output_digest])
    has_output = row.is_final and not view.head.error
    return {"params": found[row.params_digest], "output": found[row.output_digest] if has_output else None}


@page()
def steps(request: HttpRequest, number: int) -> HttpResponse:
    """The same as the timeline as a table, for screen readers, paper, and very long runs."""
    view = RunView(request, number)
    return render(request, "runs/steps.html", {**context_of(view, "run_steps"), **listed_steps(view)})


def listed_steps(view: RunView) -> dict[str, Any]:
    asked = view.request.GET
    show = asked.get("show", "") if asked.get("show", "") in SHOWS else ""
    listed = step_page(view.run, after=number_in(view.request, "after") or 0, step=asked.get("step", ""), show=show)
    return {"listed": listed, "step": asked.get("step", ""), "show": show, "shows": SHOWS}


@page()
def visit(request: HttpRequest, number: int, visit: int) -> HttpResponse:
    """One step with everything about it, as a page of its own."""
    view = RunView(request, number)
    return render(request, "runs/visit.html", {**context_of(view, "visit"), "panel": visit_of(view, visit)})


def visit_of(view: RunView, visit: int) -> dict[str, Any]:
    """A visit and what the surface knows about it: whether its values are hidden from this person."""
    hidden = view.hides_values_of(visit)
    found = visit_page(
        view.run,
        visit,
        view.request.user,
        hidden=hidden,
        outcome=view.request.GET.get("items", ""),
        first=number_in(view.request, "from") or 0,
    )
    return {"visit": found, "is_hidden": hidden}


@page()
def events(request: HttpRequest, number: int) -> HttpResponse:
    """The event log. Without a cursor it shows the newest page, and follows the run."""
    view = RunView(request, number)
    return render(request, "runs/events.html", {**context_of(view, "run_events"), **listed_events(view)})


def listed_events(view: RunView) -> dict[str, Any]:
    asked = view.request
    after = number_in(asked, "after")
    types = [type for type in asked.GET.getlist("type") if type]
    only = number_in(asked, "visit")
    is_narrowed = bool(types) or only is not None
    start = after if after is not None else 0 if is_narrowed else last_page_after(view.run)
    listed = event_lines(view.run, after=start, types=types, visit=only)
    return {
        "listed": listed,
        "after": start,
        "types": event_types(view.run),
        "chosen": types,
        "only_visit": only,
        "before": max(start - EVENT_PAGE, 0) if start and not is_narrowed else None,
    }


@page()
def messages(request: HttpRequest, number: int) -> HttpResponse:
    """What was said to the run from outside, and what became of it."""
    view = RunView(request, number)
    return render(request, "runs/messages.html", {**context_of(view, "run_messages"), "inbox": messages_of(view.run)})
