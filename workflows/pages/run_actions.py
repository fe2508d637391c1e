"""What a person does to a run: always a POST, always through ``operations``, which ask for the permission.

What can be undone is one press; the rest has a page that says what will happen and asks for a reason. A refusal leaves
what was typed in place.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from workflows.errors import Refusal
from workflows.jsonvalue import read_json
from workflows.operations import runs as operations
from workflows.operations.access import words_of
from workflows.operations.driving import carry_out_cancel
from workflows.operations.people import Actor
from workflows.operations.signals import signal, signal_names, steer
from workflows.pages import guard
from workflows.pages.run_context import RunView
from workflows.queries.run_choices import skippable
from workflows.statuses import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One action. ``explains`` is what happens, in sentences; ``more`` gives what else its page needs."""

    title: str
    button: str
    explains: str
    permissions: tuple[str, ...]
    carry_out: Callable[[int, Actor, QueryDict], str]
    needs_reason: bool = False
    takes_reason: bool = True
    is_danger: bool = False
    fields: str = ""
    more: Callable[[RunView], dict[str, Any]] = lambda view: {}


@guard.page(methods=guard.FORM)
def action(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """Ask for an action, or carry it out. Raises ``run.not_found`` for what this person may not see."""
    view = RunView(request, number)
    form = FORMS.get(verb)
    if form is None:
        raise Refusal("visit.not_found", run=number, what=f"action {verb[:20]}")
    if request.method != "POST":
        _refuse_without_permission(request, form)
        return _asked(view, form, verb)
    try:
        said = form.carry_out(number, guard.actor(request), request.POST)
    except Refusal as refusal:
        return _asked(view, form, verb, refusal)
    messages.success(request, f"Run {number} {said}.")
    return HttpResponseRedirect(reverse("pages:run", args=[number]))


def _refuse_without_permission(request: HttpRequest, form: Form) -> None:
    """Who may not do it is not asked for a reason either. A POST is refused, and audited, by the operation."""
    if not any(request.user.has_perm(f"workflows.{name}") for name in form.permissions):
        name = form.permissions[0]
        raise Refusal("access.denied", actor=request.user.get_username(), what=words_of(name), permission=name)


def _asked(view: RunView, form: Form, verb: str, refusal: Refusal | None = None) -> HttpResponse:
    given = view.request.POST if view.request.method == "POST" else view.request.GET
    context = {
        "head": view.head,
        "form": form,
        "verb": verb,
        "refusal": refusal,
        "given": {name: given.get(name, "") for name in ("reason", "visit", "name", "payload", "text")},
        "request_key": given.get("key") or uuid.uuid4().hex,
        **form.more(view),
    }
    status = refusal.http_status if refusal is not None else 200
    return render(view.request, "runs/action.html", context, status=status)


# ---- one function for each action ------------------------------------------------------------------------------------


def _reason(given: QueryDict) -> str:
    return given.get("reason", "").strip()


def _cancel(number: int, actor: Actor, given: QueryDict) -> str:
    is_new = operations.cancel(number, actor=actor, reason=_reason(given), request_id=given.get("key") or None)
    if operations.ends_without_steps(number):
        carry_out_cancel(number)
        return "is cancelled" if is_new else "was cancelled already"
    if operations.is_driven(number):
        return "is being cancelled by its worker"
    return "is being cancelled; a worker runs its closing steps"


def _pause(number: int, actor: Actor, given: QueryDict) -> str:
    is_new = operations.pause(number, actor=actor, reason=_reason(given), request_id=given.get("key") or None)
    return "is held: what runs goes on, nothing new starts" if is_new else "was held already"


def _resume(number: int, actor: Actor, given: QueryDict) -> str:
    how = operations.resume(number, actor=actor, reason=_reason(given))
    return {"released": "is no longer held", "reopened": "is open again", "woken": "will be looked at again"}[how]


def _retry(number: int, actor: Actor, given: QueryDict) -> str:
    how = operations.retry(number, actor=actor, reason=_reason(given))
    return {"hurried": "tries again now", "reopened": "is open again at the step that failed"}[how]


def _skip(number: int, actor: Actor, given: QueryDict) -> str:
    text = given.get("visit", "").removeprefix("v")
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    visit = operations.skip(number, actor=actor, reason=_reason(given), visit=wanted)
    return f"goes on: v{visit} counts as skipped"


def _signal(number: int, actor: Actor, given: QueryDict) -> str:
    name, text = given.get("name", "").strip(), given.get("payload", "").strip()
    if not name:
        raise Refusal("input.invalid", reason="The signal needs a name.")
    value, problems = read_json(text) if text else (None, [])
    if problems:
        raise Refusal("input.invalid", reason=problems[0].message.replace("The file is", "The payload is", 1))
    is_new = signal(number, name, value, actor=actor, request_id=given.get("key") or None)
    return f'has the signal "{name}"' if is_new else "had this signal already"


def _steer(number: int, actor: Actor, given: QueryDict) -> str:
    steer(number, given.get("text", ""), actor=actor, request_id=given.get("key") or None)
    return "has the text; it waits for a step that takes it"


def _abandon(number: int, actor: Actor, given: QueryDict) -> str:
    abandoned = operations.abandon(number, actor=actor, reason=_reason(given))
    return f"is abandoned; it was {abandoned.was}"


def _signals(view: RunView) -> dict[str, Any]:
    names = signal_names(view.plan) if view.plan is not None else None
    return {"signals": names.fixed if names else (), "signals_are_complete": bool(names and names.is_complete)}


def _skippable(view: RunView) -> dict[str, Any]:
    return {"choices": skippable(view.run), "is_failed": view.head.status == RunStatus.FAILED}


FORMS: dict[str, Form] = {
    "cancel": Form(
        title="Cancel",
        button="Cancel the run",
        explains="Running steps are stopped, nothing new starts, closing steps run, and the run ends as cancelled. "
        "Its child runs are cancelled, too. A cancelled run does not go on again; it can be forked.",
        permissions=("cancel_run",),
        carry_out=_cancel,
        is_danger=True,
    ),
    "pause": Form(
        title="Pause",
        button="Pause the run",
        explains="Steps that run go on to their end and nothing new starts. Deadlines of questions go on; timers and "
        "retries wait until the run is resumed.",
        permissions=("hold_run",),
        carry_out=_pause,
    ),
    "resume": Form(
        title="Resume",
        button="Resume the run",
        explains="A hold is lifted. A failed or abandoned run is open again at the step that failed: the next try is "
        "the next attempt of the same step, and what succeeded stays. A blocked run is looked at again.",
        permissions=("reopen_run", "hold_run"),
        carry_out=_resume,
    ),
    "retry": Form(
        title="Retry now",
        button="Retry now",
        explains="Steps that wait for their next attempt try again at once. The attempts they have left stay the same.",
        permissions=("reopen_run",),
        carry_out=_retry,
    ),
    "skip": Form(
        title="Skip a step",
        button="Skip this step",
        explains="The step counts as skipped and the run goes on after it. This stays visible on the run for ever.",
        permissions=("reopen_run",),
        carry_out=_skip,
        needs_reason=True,
        is_danger=True,
        fields="skip",
        more=_skippable,
    ),
    "signal": Form(
        title="Send a signal",
        button="Send",
        explains="The signal is kept until a step of the run that waits for it takes it.",
        permissions=("start_run",),
        carry_out=_signal,
        takes_reason=False,
        fields="signal",
        more=_signals,
    ),
    "steer": Form(
        title="Steer",
        button="Send",
        explains="The text goes to the next try of a step that takes such words (models and agents). Until then it "
        "stays in the messages of the run.",
        permissions=("hold_run",),
        carry_out=_steer,
        takes_reason=False,
        fields="steer",
    ),
    "abandon": Form(
        title="Abandon",
        button="Abandon the run",
        explains="The run ends at once, also its closing steps; its child runs go with it, its questions are closed, "
        "and its slots are free. What runs is stopped by its worker; what already happened is not undone. "
        "Resuming undoes a wrong abandon.",
        permissions=("abandon_run",),
        carry_out=_abandon,
        needs_reason=True,
        is_danger=True,
    ),
}
