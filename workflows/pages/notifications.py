"""Notifications: what a person wants to hear of, the webhooks of a workflow, and what was sent (promises NOTE).

Links of messages lead to pages. Nothing is decided or changed by following one: this page here, too, changes by a form.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from workflows.conf import conf
from workflows.errors import Refusal
from workflows.models import Workflow
from workflows.models.event import TOLD_TYPES
from workflows.operations import notifications_wishes as wishes
from workflows.operations.access import may
from workflows.operations.notifications_audience import USUAL, Preference, preferences_of
from workflows.operations.notifications_text import WORDS
from workflows.pages.guard import FORM, POST, actor, page, visible_workflow
from workflows.pages.run_choices import number_in
from workflows.queries.notifications import DeliveryFilter, choosable_workflows, deliveries, webhooks_of
from workflows.statuses import About

LATEST = 10
ABOUT_WORDS = {
    About.EVERYTHING: "All runs that I may see",
    About.MINE: "Only my own: runs that I started, and questions that name me",
    About.CHOSEN: "Only runs of these workflows",
}


@page(methods=FORM, needs=None)
def preferences(request: HttpRequest) -> HttpResponse:
    """What the person who is logged in is told of by e-mail."""
    name = request.user.get_username()
    refusal = None
    if request.method == "POST":
        wanted = Preference(
            by_email=request.POST.get("by_email") == "1",
            kinds=frozenset(request.POST.getlist("kind")),
            about=request.POST.get("about", ""),
            workflows=frozenset(request.POST.getlist("workflow")),
        )
        try:
            wishes.choose(wanted, actor=actor(request))
        except Refusal as found:
            refusal = found
        else:
            messages.success(request, "Saved. It counts from now on, also for messages that are on their way.")
            return redirect("pages:notification_preferences")
    else:
        wanted = preferences_of([name]).get(name, USUAL)
    choosable = choosable_workflows(request.user)
    context = {
        "wanted": wanted,
        "refusal": refusal,
        "kinds": [(kind, WORDS[kind], kind in wanted.kinds) for kind in TOLD_TYPES],
        "abouts": [(about, words, about == wanted.about) for about, words in ABOUT_WORDS.items()],
        "workflows": [(one, one in wanted.workflows) for one in choosable],
        "email": getattr(request.user, "email", ""),
        "sends_email": conf().sends_email,
        "latest": _told(deliveries(DeliveryFilter(person=name), viewer=request.user, limit=LATEST).lines),
    }
    return render(request, "account/notifications.html", context, status=refusal.http_status if refusal else 200)


@page(needs="workflows.view_webhook")
def workflow_notifications(request: HttpRequest, name: str) -> HttpResponse:
    """Who is told of the runs of a workflow, and what became of each message."""
    return _shown(request, visible_workflow(request, name))


@page(methods=POST, needs="workflows.manage_webhook")
def webhook_add(request: HttpRequest, name: str) -> HttpResponse:
    row = visible_workflow(request, name)
    url, secret = (request.POST.get(field, "").strip() for field in ("url", "secret"))
    kinds = request.POST.getlist("kind")
    try:
        wishes.add_webhook(row.name, url=url, secret=secret, kinds=kinds, actor=actor(request))
    except Refusal as refusal:
        if refusal.code != "input.invalid":
            raise
        given = {"url": url, "secret": secret, "kinds": kinds}
        return _shown(request, row, refusal=refusal, given=given)
    messages.success(request, "The webhook is told of what happens from now on.")
    return redirect("pages:workflow_notifications", name=name)


@page(methods=POST, needs="workflows.manage_webhook")
def webhook_change(request: HttpRequest, name: str, number: int) -> HttpResponse:
    row = visible_workflow(request, name)
    wishes.change_webhook(number, request.POST.get("to", ""), actor=actor(request), workflow=row.name)
    return redirect("pages:workflow_notifications", name=name)


@page(methods=POST, needs="workflows.replay_delivery")
def delivery_replay(request: HttpRequest, name: str, number: int) -> HttpResponse:
    row = visible_workflow(request, name)
    wishes.replay(number, actor=actor(request), workflow=row.name)
    messages.success(request, "The message is sent again, under the same id.")
    return redirect("pages:workflow_notifications", name=name)


def _shown(
    request: HttpRequest, row: Workflow, *, refusal: Refusal | None = None, given: dict[str, Any] | None = None
) -> HttpResponse:
    faults: list[str] = []
    before = number_in("before", request.GET.get("before", "").strip(), faults)
    log = deliveries(DeliveryFilter(workflow=row.name, before=before), viewer=request.user)
    form = given or {"url": "", "secret": "", "kinds": list(TOLD_TYPES)}
    context = {
        "workflow": row,
        "webhooks": [(one, [WORDS.get(kind, kind) for kind in one.kinds]) for one in webhooks_of(row)],
        "lines": _told(log.lines),
        "next_before": log.next_before,
        "is_first": before is None,
        "faults": faults,
        "form": form,
        "kinds": [(kind, WORDS[kind], kind in form["kinds"]) for kind in TOLD_TYPES],
        "refusal": refusal,
        "may_manage": may(actor(request), wishes.MANAGE),
        "may_replay": may(actor(request), wishes.REPLAY),
    }
    return render(request, "workflows/notifications.html", context, status=refusal.http_status if refusal else 200)


#: The picture of a delivery, by its status, and its word.
_STATUSES = {
    "waiting": ("waiting", "on its way"),
    "delivered": ("succeeded", "delivered"),
    "given_up": ("failed", "given up"),
    "dropped": ("skipped", "dropped"),
}


def _told(lines: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "line": line,
            "kind": WORDS.get(line.kind, line.kind),
            "picture": _STATUSES.get(line.status, ("unknown", ""))[0],
            "status": _STATUSES.get(line.status, ("", line.status))[1],
        }
        for line in lines
    ]
