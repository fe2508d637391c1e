"""Bulk actions: choose runs one by one or by what is filtered, look at what will happen, then follow it (ABR.4)."""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url

from workflows.errors import Refusal
from workflows.models import RunFilter
from workflows.operations import bulk as operation
from workflows.operations.access import may, require
from workflows.pages.guard import FORM, POST, actor, is_fragment, page
from workflows.pages.run_choices import chosen
from workflows.queries.bulk import bulk_list
from workflows.queries.run_list import newest_number, run_page

#: Runs that the preview names, and results of a page.
MOST_NAMED = 20
RESULTS = 100
#: How long one request works on the runs, in seconds; the page asks again until it is over.
SLICE_S = 2.0
#: What each action does, in words.
WORDS = {
    "cancel": "Cancel: steps that run are stopped, closing steps run, and it is final",
    "abandon": "Abandon: end at once, without closing steps; can be resumed",
    "resume": "Resume: lift holds, open failed and abandoned runs again",
    "retry": "Retry now: end the pauses before next tries, open failed runs again",
    "pause": "Pause: start nothing new until somebody resumes",
}


@page()
def bulk_index(request: HttpRequest) -> HttpResponse:
    return render(request, "bulk/list.html", {"actions": bulk_list()})


@page(methods=FORM)
def bulk_new(request: HttpRequest) -> HttpResponse:
    """The preview; nothing happens before its form is sent."""
    given = request.POST if request.method == "POST" else request.GET
    action = given.get("action", "")
    meant = _meant(request)
    refusal = None
    if request.method == "POST":
        try:
            return _created(request, action, meant)
        except Refusal as found:
            if found.code not in ("input.invalid", "bulk.conflict", "bulk.too_many"):
                raise
            refusal = found
    seen = operation.preview(action, meant, actor=actor(request))
    context = {
        "action": action,
        "words": WORDS.get(action, action),
        "preview": seen,
        "needs_reason": operation.ACTIONS[action].needs_reason,
        "most": operation.MOST_RUNS,
        "rows": run_page(meant, request.user, limit=MOST_NAMED).rows,
        "kept": [*_kept(request), *([("up_to", str(meant.before - 1))] if meant.before else [])],
        "request_id": given.get("request_id") or uuid.uuid4().hex,
        "reason": given.get("reason", ""),
        "refusal": refusal,
    }
    return render(request, "bulk/new.html", context, status=refusal.http_status if refusal is not None else 200)


def _created(request: HttpRequest, action: str, meant: RunFilter) -> HttpResponse:
    number = operation.create(
        action,
        meant,
        actor=actor(request),
        reason=request.POST.get("reason", "").replace("\r\n", "\n"),
        request_id=request.POST.get("request_id", "").replace("\0", ""),
    )
    return HttpResponseRedirect(resolve_url("pages:bulk", number))


def _meant(request: HttpRequest) -> RunFilter:
    """The runs that were ticked, or all that the filter of the list finds.

    A filter that cannot be understood as a whole is refused: it must not mean more runs than was thought.
    """
    given = request.POST if request.method == "POST" else request.GET
    if given.get("scope") != "all":
        numbers = [int(text) for text in given.getlist("run") if text.isascii() and text.isdigit() and len(text) < 19]
        if not numbers:
            raise Refusal("input.invalid", reason="No run is chosen.", advice="Go back and tick at least one run.")
        return RunFilter(numbers=tuple(dict.fromkeys(numbers)))
    wanted = chosen(given)
    if wanted.faults:
        raise Refusal("input.invalid", reason=f"The filter cannot be used: {' '.join(wanted.faults)}")
    return replace(wanted.filter, before=_newest(given.get("up_to", "")) + 1, after=None)


def _newest(text: str) -> int:
    """The newest run that the preview knew: what was started after it is not meant."""
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return newest_number()


def _kept(request: HttpRequest) -> list[tuple[str, str]]:
    """What chose the runs, for the form that sends it again."""
    given = request.POST if request.method == "POST" else request.GET
    left_out = {"csrfmiddlewaretoken", "action", "reason", "request_id", "before", "after", "up_to"}
    return [(name, value) for name, values in given.lists() if name not in left_out for value in values if value]


@page()
def bulk(request: HttpRequest, number: int) -> HttpResponse:
    """How far a bulk action is, with a result for each run."""
    return render(request, "bulk/bulk.html", _context(request, number))


@page(methods=POST)
def bulk_carry_on(request: HttpRequest, number: int) -> HttpResponse:
    """Do some of the runs. The page asks for it again and again; without scripts a button does."""
    _require(request, number)
    operation.carry_on(number, seconds=SLICE_S)
    if is_fragment(request):
        return render(request, "parts/bulk.html", _context(request, number))
    return HttpResponseRedirect(resolve_url("pages:bulk", number))


@page(methods=POST)
def bulk_abort(request: HttpRequest, number: int) -> HttpResponse:
    """Leave the runs that were not done yet as they are."""
    if operation.abort(number, actor=actor(request)):
        messages.success(request, "Stopped. The runs that were not done yet stay as they are.")
    else:
        messages.info(request, "It was over already.")
    return HttpResponseRedirect(resolve_url("pages:bulk", number))


def _require(request: HttpRequest, number: int) -> None:
    """Whoever made it may go on with it, and whoever may do the same."""
    who, stored = actor(request), operation.progress(number)
    if stored.actor != who.recorded:
        require(who, operation.ACTIONS[stored.action].permission, action="bulk.carry_on")


def _context(request: HttpRequest, number: int) -> dict[str, object]:
    who, stored = actor(request), operation.progress(number)
    after = request.GET.get("after", "")
    results = operation.results(
        number, actor=who, after=int(after) if after.isdigit() and len(after) < 10 else 0, limit=RESULTS + 1
    )
    is_mine = stored.actor == who.recorded
    return {
        "bulk": stored,
        "results": results[:RESULTS],
        "next": results[RESULTS - 1]["position"] if len(results) > RESULTS else None,
        "may_carry_on": is_mine or may(who, operation.ACTIONS[stored.action].permission),
        "finished": stored.total - stored.left,
    }
