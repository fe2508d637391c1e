"""Pieces of the pages of a run: one poll that says what has changed, and the step beside the timeline."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render

from workflows.pages import run
from workflows.pages.guard import page
from workflows.pages.run_context import RunView, context_of, number_in, token_of
from workflows.queries.run_events import event_lines, messages_of

#: What is renewed on the page of each tab besides its head.
_TABS = {"run": run.overview, "run_steps": run.listed_steps}


@page()
def live(request: HttpRequest, number: int) -> HttpResponse:
    """What has changed since the token of ``If-None-Match``: pieces that replace those with the same ids, or 304."""
    view = RunView(request, number)
    token = token_of(view)
    seen = request.headers.get("If-None-Match", "")
    if seen == token:
        return _fresh(HttpResponseNotModified(), token)
    tab = request.GET.get("tab", "run")
    context = {**context_of(view, tab), **_changed(view, tab), "is_piece": True}
    if seen.split(".")[0].strip('"') == str(view.run.revision):
        context["is_same_revision"] = True
    return _fresh(render(request, "runs/parts/live.html", context), token)


def _changed(view: RunView, tab: str) -> dict[str, Any]:
    if tab == "run_events":
        types = [type for type in view.request.GET.getlist("type") if type]
        after = number_in(view.request, "cursor") or 0
        listed = event_lines(view.run, after=after, types=types, visit=number_in(view.request, "visit"))
        return {"listed": listed, "chosen": types}
    if tab == "run_messages":
        return {"inbox": messages_of(view.run)}
    if tab == "visit":
        panel = number_in(view.request, "panel")
        return {"panel": run.visit_of(view, panel)} if panel else {}
    return _TABS[tab](view) if tab in _TABS else {}


@page()
def visit(request: HttpRequest, number: int, visit: int) -> HttpResponse:
    """A step beside the timeline."""
    view = RunView(request, number)
    context = {"head": view.head, "panel": run.visit_of(view, visit), "is_panel": True, "verbs": view.verbs}
    return render(request, "runs/parts/visit_panel.html", context)


def _fresh(response: HttpResponse, token: str) -> HttpResponse:
    response.headers["ETag"] = token
    response.headers["Cache-Control"] = "private, no-store"
    return response
