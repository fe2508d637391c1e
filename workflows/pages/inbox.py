"""The inbox and its questions: who may say what, and the form that says it (promises INT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url

from workflows.errors import Problem, Refusal
from workflows.models import Run
from workflows.operations.access import may
from workflows.operations.answering import ANSWER, Wish, answer, excuse
from workflows.pages.fields import FieldView, field_views, other_problems, typed
from workflows.pages.guard import FORM, GET, actor, page, visible_run
from workflows.queries.inbox import Inbox, ended, open_to_all, waiting_for
from workflows.queries.questions import question_of
from workflows.statuses import InterruptKind, InterruptStatus

_VIEWS = {"mine": waiting_for, "open": open_to_all, "ended": ended}
#: Characters of one shown value; `?all=1` shows the rest.
MOST_SHOWN = 8_000


@page(methods=GET)
def inbox(request: HttpRequest) -> HttpResponse:
    view = request.GET.get("show", "mine")
    if view not in _VIEWS:
        view = "mine"
    found: Inbox = _VIEWS[view](request.user)
    context = {"view": view, "inbox": found, "may_answer": may(actor(request), ANSWER)}
    if view == "mine":
        context["my_inbox"] = found
    return render(request, "inbox/inbox.html", context)


@page(methods=FORM)
def question(request: HttpRequest, number: int, visit: int) -> HttpResponse:
    """A question of a run. GET shows it and changes nothing; POST is the answer of the person that is logged in."""
    run = visible_run(request, number)
    if request.method != "POST":
        return _shown(request, run, visit)
    asked = question_of(run.pk, visit)
    try:
        given = _answer(request, run, asked)
    except Refusal as refusal:
        if refusal.code in ("run.not_found", "interrupt.not_found", "access.denied"):
            raise
        return _shown(request, run, visit, posted=request.POST, refusal=refusal)
    messages.success(request, given)
    return HttpResponseRedirect(resolve_url("pages:question", run.pk, visit))


def _answer(request: HttpRequest, run: Run, asked: Mapping[str, Any]) -> str:
    """Store the answer; what to tell the person then."""
    said = typed(asked["form"], request.POST)
    decision = request.POST.get("decision") or None
    wish = Wish(
        decision=decision,
        fields=said.given,
        from_text=said.from_text,
        comment=request.POST.get("comment", "").replace("\r\n", "\n"),
        attempt=_whole(request.POST.get("attempt")),
    )
    answered = answer(run.pk, asked["visit"], wish, actor=actor(request))
    if not answered.settled:
        return f"Your decision is recorded: {answered.votes} of {answered.quorum} that are needed."
    return "Your answer is recorded, and the run goes on." if answered.new else "You have said so already."


def _shown(
    request: HttpRequest,
    run: Run,
    visit: int,
    *,
    posted: Mapping[str, str] | None = None,
    refusal: Refusal | None = None,
) -> HttpResponse:
    asked = question_of(run.pk, visit)
    problems: tuple[Problem, ...] = refusal.problems if refusal is not None else ()
    fields = field_views(asked["form"], posted, problems)
    context = {
        "run": run,
        "question": asked,
        "is_open": asked["status"] == InterruptStatus.OPEN,
        "is_approval": asked["kind"] == InterruptKind.APPROVAL,
        "mine": next((vote for vote in asked["votes"] if vote["by"] == request.user.get_username()), None),
        "approvals": sum(1 for vote in asked["votes"] if vote["decision"] == "approved"),
        "fields": fields,
        "comment": posted.get("comment", "") if posted is not None else "",
        "unsent": _unsent(fields, posted) if refusal is not None else [],
        "refusal": refusal,
        "other_problems": other_problems(asked["form"], problems),
        "excuse": excuse(run.pk, visit, actor=actor(request)),
        "limit": 2_000_000 if request.GET.get("all") else MOST_SHOWN,
    }
    status = refusal.http_status if refusal is not None else 200
    return render(request, "inbox/question.html", context, status=status)


def _unsent(fields: list[FieldView], posted: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """What was typed and is not stored, to be copied by whoever typed it."""
    found = [(field.label, field.value) for field in fields if field.value]
    comment = posted.get("comment", "") if posted is not None else ""
    return [*found, ("Comment", comment)] if comment else found


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None
