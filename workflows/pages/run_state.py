"""The run as it was, and who did what to it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from workflows.pages.guard import page
from workflows.pages.run_context import RunView, context_of, fork_address, number_in
from workflows.queries.audit import AuditFilter, audit_page
from workflows.queries.run_state import MOST_LISTED, differences, run_states


@page()
def state(request: HttpRequest, number: int, revision: int | None = None) -> HttpResponse:
    """The state at a revision, and how it differs from another one (by default the one before)."""
    view = RunView(request, number)
    asked = number_in(request, "revision")
    since = number_in(request, "since")
    if asked is not None:
        query = f"?since={since}" if since is not None else ""
        return HttpResponseRedirect(reverse("pages:run_state_at", args=[number, asked]) + query)
    shown = view.run.revision if revision is None else revision
    context = {**context_of(view, "run_state"), **_compared(view, shown, since)}
    return render(request, "runs/state.html", context)


def _compared(view: RunView, revision: int, since: int | None) -> dict[str, Any]:
    other = since if since is not None else revision - 1
    now, *former = run_states(view.run, revision, *([other] if other >= 1 else []))
    found = differences(former[0], now) if former else []
    number = view.run.pk
    return {
        "state": now,
        "since": other if other >= 1 else None,
        "since_given": since,
        "differences": found[:MOST_LISTED],
        "more_differences": max(len(found) - MOST_LISTED, 0),
        "earlier": reverse("pages:run_state_at", args=[number, revision - 1]) if revision > 1 else "",
        "later": reverse("pages:run_state_at", args=[number, revision + 1]) if revision < now.current else "",
        "fork": fork_address(number, f"?at={revision}") if view.request.user.has_perm("workflows.fork_run") else "",
    }


@page()
def audit(request: HttpRequest, number: int) -> HttpResponse:
    """What operators did to the run, and what they were refused."""
    view = RunView(request, number)
    shown = audit_page(AuditFilter(run=number, before=number_in(request, "before")), viewer=request.user)
    more = "" if shown.next_before is None else f"?before={shown.next_before}"
    context = {**context_of(view, "run_audit"), "entries": shown.entries, "more": more}
    return render(request, "runs/audit.html", context)
