"""The audit: who did what, and who was not allowed to. Nothing can be changed here."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workflows.pages.guard import page
from workflows.pages.run_choices import moment_in, number_in
from workflows.queries.audit import AuditFilter, audit_actions, audit_page, existing_runs

_TEXTS = ("actor", "action", "workflow", "run", "since", "until", "allowed")
MOST_TEXT = 200


@page(needs="workflows.view_auditentry")
def audit(request: HttpRequest) -> HttpResponse:
    shown = {name: request.GET.get(name, "").strip()[:MOST_TEXT] for name in _TEXTS}
    faults: list[str] = []
    wanted = AuditFilter(
        actor=shown["actor"] or None,
        action=shown["action"] or None,
        workflow=shown["workflow"] or None,
        run=number_in("run", shown["run"], faults),
        since=moment_in("since", shown["since"], faults),
        until=moment_in("until", shown["until"], faults),
        allowed={"yes": True, "no": False}.get(shown["allowed"]),
        before=number_in("before", request.GET.get("before", "").strip(), faults),
    )
    found = audit_page(wanted, viewer=request.user)
    older = request.GET.copy()
    older["before"] = str(found.next_before or "")
    context = {
        "shown": shown,
        "faults": faults,
        "page": found,
        "actions": audit_actions(),
        "existing": existing_runs(entry["run"] for entry in found.entries),
        "is_filtered": any(shown.values()),
        "is_first": wanted.before is None,
        "older": older.urlencode() if found.next_before else "",
    }
    return render(request, "audit.html", context)
